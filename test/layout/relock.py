#!/usr/bin/env python3
"""A client of relock's protocol with Python's standard library: it replays the vectors, and locks.

    relock.py ADDRESS vectors            run every vector, and say which differ
    relock.py ADDRESS lock NAME          do what the lines on stdin say to the plain lock NAME, and answer each:
                                         take, try, renew, release
"""
import hashlib, json, os, pathlib, queue, socket, sys, threading, time

HERE = pathlib.Path(__file__).resolve().parent
LUA = HERE.parent.parent / "lua"
NAMES = [f.stem for f in sorted(LUA.glob("*.lua")) if not f.stem.startswith("shared_")]


class Refused(Exception):
    """Redis has answered with an error."""


class Connection:
    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)))
        self.stream = self.socket.makefile("rb")

    def send(self, *args):
        parts = [b"*%d\r\n" % len(args)]
        for arg in args:
            arg = arg if isinstance(arg, bytes) else str(arg).encode()
            parts.append(b"$%d\r\n%s\r\n" % (len(arg), arg))
        self.socket.sendall(b"".join(parts))

    def read(self):
        line = self.stream.readline()
        if not line:
            raise EOFError("the server has closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            return Refused(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            if rest == b"-1":
                return None
            return self.stream.read(int(rest) + 2)[:-2].decode()
        if kind == b"*":
            return None if rest == b"-1" else [self.read() for _ in range(int(rest))]
        raise ValueError("a reply begins with %r" % line)

    def call(self, *args):
        self.send(*args)
        reply = self.read()
        if isinstance(reply, Refused):
            raise reply
        return reply


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


def stored(redis):
    state = {}
    for key in redis.call("KEYS", "*"):
        one = {"life": -(-redis.call("PTTL", key) // STEP) * STEP}
        if redis.call("TYPE", key) == "hash":
            flat = redis.call("HGETALL", key)
            one["hash"] = dict(zip(flat[::2], flat[1::2]))
        else:
            flat = redis.call("ZRANGE", key, 0, -1, "WITHSCORES")
            one["zset"] = {m: "%d" % float(s) for m, s in zip(flat[::2], flat[1::2])}
        state[key] = one
    return state


def replay(redis, address, vector):
    """Returns in which fields the server differs from the vector."""
    redis.call("FLUSHALL")
    for key, one in vector["before"].items():
        for field, value in one.get("hash", {}).items():
            redis.call("HSET", key, field, value)
        for member, score in one.get("zset", {}).items():
            redis.call("ZADD", key, score, member)
        redis.call("PEXPIRE", key, one["life"])
    inbox = Connection(address)
    for channel in vector["hears"] + ["the end"]:
        inbox.call("SUBSCRIBE", channel)
    frozen = (HERE / "frozen.lua").read_text()
    frozen = frozen.replace("SECONDS", str(vector["now"] // 1_000_000)).replace("MICROS", str(vector["now"] % 1_000_000))
    try:
        reply = redis.call("EVAL", frozen + source(vector["script"]), len(vector["keys"]), *vector["keys"], *vector["args"])
    except Refused as refused:
        reply = {"error": str(refused)}
    after, messages = stored(redis), []
    redis.call("PUBLISH", "the end", "")
    while True:
        _, channel, payload = inbox.read()
        if channel == "the end":
            break
        messages.append([channel, payload])
    inbox.socket.close()
    got = {"sha1": sha1(vector["script"]), "reply": reply, "after": after, "messages": messages}
    return ["%s is %s, want %s" % (what, got[what], vector[what]) for what in got if got[what] != vector[what]]


def vectors(address):
    redis, failed, passed, seen = Connection(address), 0, 0, set()
    for file in sorted((HERE / "vectors").glob("*.json")):
        for vector in json.loads(file.read_text()):
            seen.add(vector["script"])
            differing = replay(redis, address, vector)
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
        self.redis, self.ttl, self.client = Connection(address), ttl, nonce()
        self.layout = next(l for l in code("shared_record")[0] if l.startswith("local layout")).split("'")[1]
        self.heard, inbox = queue.Queue(), Connection(address)
        inbox.call("SUBSCRIBE", self.INBOX + self.client)
        threading.Thread(target=self.listen, args=[inbox], daemon=True).start()

    def listen(self, inbox):
        while True:
            self.heard.put(inbox.read()[2])

    def run(self, script, keys, *args):
        try:
            return self.redis.call("EVALSHA", sha1(script), len(keys), *keys, *args)
        except Refused as refused:
            if not str(refused).startswith("NOSCRIPT"):
                raise
            return self.redis.call("EVAL", source(script), len(keys), *keys, *args)

    def ask(self, place):
        """One request. Returns the token, or None and for how many ms not to ask again."""
        self.op += 1
        clock = self.redis.call("TIME")
        not_after = int(clock[0]) * 1_000_000 + int(clock[1]) + 10_000_000
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
        raise Refused("acquire: %r" % reply)

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
        except Refused as refused:
            say("refused", refused)


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[2] == "vectors":
        sys.exit(1 if vectors(sys.argv[1]) else 0)
    if len(sys.argv) == 4 and sys.argv[2] == "lock":
        sys.exit(lock(sys.argv[1], sys.argv[3]))
    sys.exit(__doc__)
