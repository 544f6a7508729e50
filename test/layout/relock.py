#!/usr/bin/env python3
"""A client of relock's protocol with redis-py, which requirements.txt names: it replays the vectors, and locks.

    relock.py ADDRESS vectors            run every vector, and say which differ
    relock.py ADDRESS lock NAME          do what the lines on stdin say to the plain lock NAME, and answer each:
                                         take, try, renew, release
"""
import hashlib, json, os, pathlib, queue, sys, threading, time

import redis

HERE = pathlib.Path(__file__).resolve().parent
LUA = HERE.parent.parent / "lua"
NAMES = [f.stem for f in sorted(LUA.glob("*.lua")) if not f.stem.startswith("shared_")]


def connect(address):
    host, port = address.rsplit(":", 1)
    return redis.Redis(host=host, port=int(port), decode_responses=True)


def subscribe(server, channels):
    """A subscription that the server has confirmed."""
    inbox = server.pubsub()
    inbox.subscribe(*channels)
    for _ in channels:
        inbox.get_message(timeout=None)
    return inbox


def code(name):
    """The lines of a file without comments and blank lines, and where which shared parts belong."""
    lines, parts, at = [], [], 0
    for line in (LUA / (name + ".lua")).read_text().split("\n"):
        line = line.rstrip(" \t\r")
        bare = line.lstrip(" \t")
        if bare.startswith("-- uses:"):
            parts += [(part, len(lines)) for part in bare[len("-- uses:"):].split()]
        elif bare and not bare.startswith("--"):
            lines.append(line)
    return lines, parts


def source(name):
    """What EVAL sends, and SHA-1 of which EVALSHA sends."""
    lines, parts = code(name)
    text, sent = [], 0
    for part, at in parts:
        text += lines[sent:at] + code("shared_" + part)[0]
        sent = at
    return "".join(line + "\n" for line in text + lines[sent:])


def sha1(name):
    return hashlib.sha1(source(name).encode()).hexdigest()


# The vectors.

STEP = 10_000  # ms to which lives are rounded up


def stored(server):
    state = {}
    for key in server.keys("*"):
        one = {"life": -(-server.pttl(key) // STEP) * STEP}
        if server.type(key) == "hash":
            one["hash"] = server.hgetall(key)
        else:
            one["zset"] = {member: "%d" % score for member, score in server.zrange(key, 0, -1, withscores=True)}
        state[key] = one
    return state


def replay(server, vector):
    """Returns in which fields the server differs from the vector."""
    server.flushall()
    for key, one in vector["before"].items():
        if one.get("hash"):
            server.hset(key, mapping=one["hash"])
        if one.get("zset"):
            server.zadd(key, one["zset"])
        server.pexpire(key, one["life"])
    inbox = subscribe(server, vector["hears"] + ["the end"])
    frozen = (HERE / "frozen.lua").read_text()
    frozen = frozen.replace("SECONDS", str(vector["now"] // 1_000_000)).replace("MICROS", str(vector["now"] % 1_000_000))
    try:
        reply = server.eval(frozen + source(vector["script"]), len(vector["keys"]), *vector["keys"], *vector["args"])
    except redis.ResponseError as refused:
        reply = {"error": str(refused)}
    after, messages = stored(server), []
    server.publish("the end", "")
    for message in inbox.listen():
        if message["channel"] == "the end":
            break
        messages.append([message["channel"], message["data"]])
    inbox.close()
    got = {"sha1": sha1(vector["script"]), "reply": reply, "after": after, "messages": messages}
    return ["%s is %s, want %s" % (what, got[what], vector[what]) for what in got if got[what] != vector[what]]


def vectors(address):
    server, failed, passed, seen = connect(address), 0, 0, set()
    for file in sorted((HERE / "vectors").glob("*.json")):
        for vector in json.loads(file.read_text()):
            seen.add(vector["script"])
            differing = replay(server, vector)
            for one in differing:
                print("FAIL %s, %s: %s" % (vector["script"], vector["case"], one))
            failed, passed = failed + bool(differing), passed + (not differing)
    for name in set(NAMES) - seen:
        print("FAIL script %s has no vector" % name)
        failed += 1
    print("%d vectors passed, %d failed" % (passed, failed))
    return failed


# The lock.

def nonce():
    import base64
    return base64.urlsafe_b64encode(os.urandom(16)).rstrip(b"=").decode()


class Lock:
    """A plain lock without a named owner: one hold at a time."""

    KEEP = 600_000
    INBOX = "relock:inbox:"

    def __init__(self, address, name, ttl=30_000):
        for part in "%{}":
            name = name.replace(part, "%%%02X" % ord(part))
        self.keys = ["relock:h:{%s}" % name, "relock:q:{%s}" % name]
        self.server, self.ttl, self.client = connect(address), ttl, nonce()
        self.scripts = {}
        self.layout = next(l for l in code("shared_record")[0] if l.startswith("local layout")).split("'")[1]
        self.heard = queue.Queue()
        inbox = subscribe(self.server, [self.INBOX + self.client])
        threading.Thread(target=self.listen, args=[inbox], daemon=True).start()

    def listen(self, inbox):
        for message in inbox.listen():
            self.heard.put(message["data"])

    def run(self, script, keys, *args):
        """EVALSHA, after which redis-py loads the script if the server does not know it."""
        if script not in self.scripts:
            self.scripts[script] = self.server.register_script(source(script))
        return self.scripts[script](keys, args)

    def ask(self, place):
        """One request. Returns the token, or None and for how many ms not to ask again."""
        self.op += 1
        seconds, micros = self.server.time()
        not_after = seconds * 1_000_000 + micros + 10_000_000
        self.asked = time.monotonic()
        reply = self.run("acquire", self.keys, "plain" + self.layout, not_after, "%d 0 %s" % (self.KEEP, self.INBOX),
                         self.identity, self.owner, "%d 1 0 %d " % (self.op, self.ttl), 1, self.ttl + self.KEEP, place)
        if isinstance(reply, str):
            return int(reply), 0
        if len(reply) == 2:
            return int(reply[0]), 0
        if reply[2] == 1:
            return reply[4], 0
        if reply[2] == 2:
            self.place = reply[3]
            return None, max(min(reply[4], self.ttl // 3), 1)
        if reply[2] == 3:
            return None, 0
        raise redis.ResponseError("acquire: %r" % reply)

    def begin(self):
        self.op, self.nonce, self.place = 0, nonce(), 0
        self.owner = "o:~%s:1" % self.nonce[:8]
        self.identity = "%s %s %s" % (self.nonce, self.client, self.owner)

    def attempt(self):
        self.begin()
        return self.ask(-1)[0]

    def take(self, waits=lambda: None):
        """Waits for the lock, and returns the token and how it came: free, woken or asked."""
        self.begin()
        token, wait = self.ask(0)
        if token:
            return token, "free"
        waits()
        while True:
            try:
                message = self.heard.get(timeout=wait / 1000).split(" ")
            except queue.Empty:
                message = ["look", self.nonce]
            if message[0] == "grant" and message[1] == self.nonce:
                self.op = int(message[2])
                return int(message[4]), "woken"
            if message[0] == "look" and message[1] == self.nonce:
                token, wait = self.ask(self.place)
                if token:
                    return token, "asked"

    def renew(self):
        """Returns how many ms are left of the lease; 0: the lock is lost."""
        self.op += 1
        reply = self.run("hold", self.keys[:1], self.ttl, self.ttl + self.KEEP, self.identity, self.owner, self.op, 1, 0)
        return reply[1]

    def release(self):
        """Returns whether it was held until now."""
        reply = self.run("release", self.keys, self.identity, self.owner, 0, "%d %s" % (self.KEEP, self.INBOX))
        return reply == 2 or reply[0] == 2


def lock(address, name):
    one = Lock(address, name)
    say = lambda *words: print(*words, flush=True)
    for line in sys.stdin:
        order = line.strip()
        try:
            if order == "take":
                say("held", *one.take(lambda: say("waits")))
            elif order == "try":
                token = one.attempt()
                say(*(["held", token] if token else ["busy"]))
            elif order == "renew":
                say("left", one.renew())
            elif order == "release":
                say("released" if one.release() else "lost")
        except redis.ResponseError as refused:
            say("refused", refused)


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[2] == "vectors":
        sys.exit(1 if vectors(sys.argv[1]) else 0)
    if len(sys.argv) == 4 and sys.argv[2] == "lock":
        sys.exit(lock(sys.argv[1], sys.argv[3]))
    sys.exit(__doc__)
