package lua_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"
)

// A crowd is some locks, the last of whose keys is another's.
var (
	manyHashes = []string{"h0", "h1", "h2", "h3", "h4", "h5"}
	manyQueues = []string{"q0", "q1", "q2", "q3", "q4", "q5"}
)

// storedInAll is all that the locks' keys contain, and how long the hashes last.
func (b *bench) storedInAll(now int64) map[string]string {
	all := map[string]string{}
	for i, hash := range manyHashes {
		if b.Exists(hash) && b.Type(hash) != "hash" {
			all[hash] = b.Type(hash)
			continue
		}
		for field, value := range b.stored(hash, manyQueues[i], now) {
			all[hash+" "+field] = value
		}
		all[hash] = b.TTL(hash).String()
	}
	return all
}

// stateAll states the same of a party's session in each of the locks: on many by one
// call, on one by a call each. Returns how many are held, and how many are not.
func stateAll(t *testing.T, many, one *bench, p party, ttl, op, writes, reads int) (held, left int) {
	t.Helper()
	args := p.states(ttl, op, writes, reads)
	for range manyHashes[1:] {
		args = append(args, p.identity(), p.field(), op, writes, reads)
	}
	reply := many.run(t, "hold", manyHashes, args...)
	if len(reply) < 1+len(manyHashes) || len(reply)%2 == 0 {
		t.Fatalf("hold of %d answers %v", len(manyHashes), reply)
	}
	waiting := map[int64]any{}
	for pairs := reply[1+len(manyHashes):]; len(pairs) > 0; pairs = pairs[2:] {
		waiting[pairs[0].(int64)] = pairs[1]
	}
	for i, hash := range manyHashes {
		alone := one.run(t, "hold", []string{hash}, p.states(ttl, op, writes, reads)...)
		var count any
		if len(alone) == 3 {
			alone, count = alone[:2], alone[2]
		}
		if ttl > 0 && waiting[int64(i+1)] != count {
			t.Fatalf("hold of many says that %v wait for %s, a hold of it alone %v", waiting[int64(i+1)], hash, count)
		}
		want := alone[len(alone)-1]
		if _, failed := want.(string); failed {
			want = int64(-5)
		}
		if reply[1+i] != want {
			t.Fatalf("hold of many says %v of %s, a hold of it alone %v", reply[1+i], hash, alone)
		}
		if len(alone) == 2 && alone[0] != reply[0] {
			t.Fatalf("hold of many says that it is %v, a hold of one %v", reply[0], alone[0])
		}
		if want.(int64) > 0 {
			held++
		} else {
			left++
		}
	}
	return held, left
}

// TestAHoldOfManyDoesToEachWhatAHoldOfOneDoes sends the same requests to two servers.
// Sessions are stated by one command on the first, and by one each on the other.
// Fails when that command renews a session that is another's, late, or one of several,
// when it leaves one that holds alone, when it says other of a session than hold of it
// alone, and when one lock's error ends the others' renewal.
func TestAHoldOfManyDoesToEachWhatAHoldOfOneDoes(t *testing.T) {
	many, one := newBench(t), newBench(t)
	for _, b := range []*bench{many, one} {
		_, _ = b.Push("h5", "the last lock's key is another's")
	}
	rng := rand.New(rand.NewPCG(3, 4))
	now := time.UnixMilli(1_800_000_000_000)
	held, left := 0, 0
	for n := range 600 {
		now = now.Add(time.Duration(rng.IntN(20_000)) * 10 * time.Microsecond)
		many.SetTime(now)
		one.SetTime(now)
		i := rng.IntN(len(manyHashes) - 1)
		keys := []string{manyHashes[i], manyQueues[i]}
		p := party{fmt.Sprintf("n%021d", rng.IntN(3)), "cccccccccccccccccccccccccccccccc", []string{"a", "an owner with blanks 1 2\nand more", "größer"}[rng.IntN(3)], []string{"", "2/5 "}[rng.IntN(2)]}
		reads := rng.IntN(4)
		switch rng.IntN(5) {
		case 0, 1:
			args := p.asks(rng, now, []string{"plain", "plain", "fair", "rw"}[rng.IntN(4)], reads == 0)
			many.run(t, "acquire", keys, args...)
			one.run(t, "acquire", keys, args...)
		case 2:
			many.run(t, "release", keys, p.leaves(0)...)
			one.run(t, "release", keys, p.leaves(0)...)
		default:
			h, l := stateAll(t, many, one, p, rng.IntN(5)*rng.IntN(300), 1+rng.IntN(30), rng.IntN(3), 1+rng.IntN(2))
			held, left = held+h, left+l
		}
		if a, b := many.storedInAll(now.UnixMilli()), one.storedInAll(now.UnixMilli()); !maps.Equal(a, b) {
			t.Fatalf("step %d: hold of many left\n%v, holds of one\n%v", n, a, b)
		}
	}
	if held < 20 || left < 20 {
		t.Errorf("%d held, %d not: too few to say anything", held, left)
	}
	t.Log(held, left)
}
