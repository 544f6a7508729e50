package explore_test

import (
	"fmt"
	"strings"

	"github.com/relock-go/relock/internal/key"
)

// touches reports whether the command is about the lock.
func (f *flight) touches(s stored) bool {
	hash, _ := f.args[3].(string)
	for _, q := range s.queue {
		for _, name := range f.from.world.names {
			if key.For("relock", name).Hash == hash {
				for _, mine := range readLock(f.from.world.srv.Direct(), name).queue {
					if mine.nonce == q.nonce {
						return true
					}
				}
			}
		}
	}
	return false
}

// requests are those of an acquire: nonce and place.
func (f *flight) requests() (all []struct {
	nonce string
	place int64
},
) {
	if f.script != "acquire" {
		return nil
	}
	const head, each, placeAt = 3 + 2 + 3, 6, 5
	for i := head; i+each <= len(f.args); i += each {
		identity, _ := f.args[i].(string)
		nonce, _, _ := strings.Cut(identity, " ")
		place, _ := f.args[i+placeAt].(int64)
		all = append(all, struct {
			nonce string
			place int64
		}{nonce, place})
	}
	return all
}

// states reports whether the command states counts, and asks for no lease.
func (f *flight) states() bool {
	return f.script == "hold" && fmt.Sprintf("%v %v", f.args[2], f.args[4]) == "1 0"
}

func (f *flight) place(nonce string) int64 {
	for _, r := range f.requests() {
		if r.nonce == nonce {
			return r.place
		}
	}
	return -1
}

// joins reports whether a nonce's owner got the lock under another nonce, which the
// command does not ask for.
func (f *flight) joins(nonce, owner string, has map[string]string) bool {
	for other, its := range has {
		if its == owner && other != nonce && f.asks(nonce) && !f.asks(other) {
			return true
		}
	}
	return false
}

func (f *flight) asks(nonce string) bool {
	for _, r := range f.requests() {
		if r.nonce == nonce {
			return true
		}
	}
	return false
}
