package wire_test

import "strings"

// deadlines are the latest of those that the keys tell of.
func (f found) deadlines() (hash, queue int64) {
	for member, score := range f.queue {
		switch {
		case strings.HasPrefix(member, "r"):
			queue = max(queue, -score-far)
		case strings.HasPrefix(member, "-"):
			queue = max(queue, -score)
		}
	}
	alone, _ := f.alone()
	return max(queue, alone.until), queue
}

// lifetimes: a key lasts for TokenKeep after the last deadline, and its TTL never
// moves earlier while there is one.
func (x trial) lifetimes() {
	x.w.t.Helper()
	b, f, keep := x.before, x.after, wireKeep.Milliseconds()
	hash, queue := f.deadlines()
	if f.hashEnds == -1 || f.queueEnds == -1 {
		x.errorf("a key has no end")
	}
	if hash > f.now && f.hashEnds < hash+keep {
		x.errorf("the hash ends %d ms after the last deadline", f.hashEnds-hash)
	}
	if queue > f.now && f.queueEnds < queue+keep {
		x.errorf("the queue ends %d ms after its last deadline", f.queueEnds-queue)
	}
	if hash > f.now && b.hashEnds > f.hashEnds {
		x.errorf("the hash ends %d ms earlier than it did", b.hashEnds-f.hashEnds)
	}
	if most := f.now + wireLong.Milliseconds() + keep; f.hashEnds > most || f.queueEnds > most {
		x.errorf("a key outlives everybody")
	}
	if was, _ := b.deadlines(); was > b.now && hash == 0 && f.hashEnds > f.now+keep && !x.say.brief {
		x.errorf("the hash of a lock that nobody wants any more lasts %d ms", f.hashEnds-f.now)
	}
}
