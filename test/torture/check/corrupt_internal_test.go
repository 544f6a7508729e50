package check

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/relock-go/relock/test/torture/history"
)

// A corruption changes one thing in a correct history of a run without faults
// that allow two holders, and says under which names that must be found. It
// returns false where the history has no place for it.
type corruption struct {
	name  string
	kinds []string
	want  []Name
	do    func(x *tale, s *story, r *rand.Rand) bool
}

var corruptions = append(permitCorruptions, []corruption{
	{"two holders", []string{"plain", "fair", "rw"}, []Name{LeaseOverlap, NoOrder}, func(x *tale, s *story, r *rand.Rand) bool {
		a := pick(r, s.held(), func(c *call) bool { return c.certain() && !c.read && c.end()-c.acquired > ms/2 })
		if a == nil {
			return false
		}
		at := (a.acquired - start) / 1000
		x.micro(at+1, 99, history.Call, history.Event{Kind: x.kind, Mode: "w", TTL: 1000})
		x.micro(at+100, 99, history.Acquired, history.Event{Token: a.token + 1_000_000, Until: a.acquired + 900*ms})
		x.micro(at+5000, 99, history.Releasing, history.Event{})
		x.micro(at+5010, 99, history.Released, history.Event{})
		return true
	}},
	{"a token twice", []string{"plain", "fair", "rw", "semaphore"}, []Name{TokenRepeated}, func(x *tale, s *story, r *rand.Rand) bool {
		held := s.held()
		a, b := pick(r, held, anonymous), pick(r, held, anonymous)
		if a == nil || a == b {
			return false
		}
		return x.change(b, history.Acquired, func(e *history.Event) { e.Token = a.token })
	}},
	{"two tokens changed over", []string{"plain", "fair"}, []Name{TokenFell, NoOrder}, func(x *tale, s *story, r *rand.Rand) bool {
		a, b := follow(r, s)
		if a == nil || !anonymous(a) || !anonymous(b) {
			return false
		}
		return x.change(a, history.Acquired, func(e *history.Event) { e.Token = b.token }) &&
			x.change(b, history.Acquired, func(e *history.Event) { e.Token = a.token })
	}},
	{"a release that is dropped", []string{"plain", "fair"}, []Name{LeaseOverlap}, func(x *tale, s *story, r *rand.Rand) bool {
		a, b := follow(r, s)
		if a == nil || !anonymous(a) || b.acquired >= a.until || a.died != 0 {
			return false
		}
		x.events = slices.DeleteFunc(x.events, func(e history.Event) bool {
			return e.Worker == a.worker && e.ID == a.id && (e.What == history.Releasing || e.What == history.Released)
		})
		return !slices.ContainsFunc(x.events, func(e history.Event) bool { return e.What == history.Died && e.Worker == a.worker && e.T < b.acquired })
	}},
	{"a stale effect that is taken", []string{"plain", "fair", "rw"}, []Name{StaleEffect}, func(x *tale, _ *story, _ *rand.Rand) bool {
		i := slices.IndexFunc(x.events, func(e history.Event) bool { return e.What == history.Effect && e.Err == "stale" })
		if i >= 0 {
			x.events[i].Err = ""
		}
		return i >= 0
	}},
	{"a valid holder's effect refused", []string{"plain", "fair"}, []Name{FreshRefused}, func(x *tale, _ *story, r *rand.Rand) bool {
		for range 100 {
			e := &x.events[r.IntN(len(x.events))]
			if e.What == history.Effect && e.Err == "" {
				e.Err = "stale"
				return true
			}
		}
		return false
	}},
	{"two turns changed over", []string{"fair"}, []Name{Overtaken}, func(x *tale, s *story, r *rand.Rand) bool {
		a, b := follow(r, s)
		if a == nil || !anonymous(a) || !anonymous(b) || b.queued == 0 || a.queued == 0 || b.began <= a.queued ||
			!a.confirmed || !b.confirmed || b.queued >= a.acquired || b.acquired >= a.until || a.died != 0 || b.died != 0 ||
			slices.ContainsFunc(x.events, func(e history.Event) bool {
				return e.What == history.Fault && e.T < b.acquired && e.Until > a.began-1000*ms
			}) {
			return false
		}
		x.exchange(a, b)
		return true
	}},
	{"a grant that comes late", []string{"plain", "fair"}, []Name{LostWakeup}, func(x *tale, s *story, r *rand.Rand) bool {
		a, b := follow(r, s)
		if a == nil || !a.confirmed || b.queued == 0 || b.began > a.released || b.acquired <= a.released || s.troubled(a, b) ||
			slices.ContainsFunc(x.events, func(e history.Event) bool {
				return e.What == history.Fault && e.T < b.acquired && e.Until > a.released-2500*ms
			}) {
			return false
		}
		for i := range x.events {
			if e := &x.events[i]; e.T > a.released {
				e.T += 3000 * ms
				if e.Until != 0 {
					e.Until += 3000 * ms
				}
			}
		}
		return true
	}},
	{"a downgrade that is not noted", []string{"rw"}, []Name{LeaseOverlap, NoOrder}, func(x *tale, s *story, _ *rand.Rand) bool {
		for _, a := range s.held() {
			met := func(b *call) bool {
				return b.read && !a.sameOwner(b) && b.certain() && b.acquired < a.end() && b.end() > a.acquired
			}
			if a.downgraded != 0 && a.certain() && slices.ContainsFunc(s.held(), met) {
				x.events = slices.DeleteFunc(x.events, func(e history.Event) bool {
					return e.What == history.Downgrade && e.Worker == a.worker && e.ID == a.id
				})
				return true
			}
		}
		return false
	}},
}...)

func anonymous(c *call) bool { return c.owner == "" && c.certain() }

func pick(r *rand.Rand, held []*call, fits func(*call) bool) *call {
	held = slices.DeleteFunc(slices.Clone(held), func(c *call) bool { return !fits(c) })
	if len(held) == 0 {
		return nil
	}
	return held[r.IntN(len(held))]
}

// follow picks two certain holds, one after the other.
func follow(r *rand.Rand, s *story) (a, b *call) {
	held := slices.DeleteFunc(s.held(), func(c *call) bool { return !c.certain() })
	if len(held) < 2 {
		return nil, nil
	}
	i := r.IntN(len(held) - 1)
	if a, b = held[i], held[i+1]; a.end() > b.acquired {
		return nil, nil
	}
	return a, b
}

// troubled says that something else may explain why a call waited.
func (s *story) troubled(a, b *call) bool {
	return slices.ContainsFunc(s.calls, func(c *call) bool {
		return c != a && c != b && c.began < b.acquired && (c.died != 0 && c.died+2000*ms > b.began || c.acquired != 0 && c.acquired < b.acquired && c.released+3000*ms > b.acquired && c.released > a.released || c.acquired != 0 && !c.confirmed && c.acquired+4000*ms > b.began)
	})
}

// micro adds an event at a time in µs.
func (x *tale) micro(at int64, w int, what history.What, e history.Event) {
	e.T, e.Worker, e.ID, e.Lock, e.What = start+at*1000, w, 1, lock, what
	x.events = append(x.events, e)
}

func (x *tale) change(c *call, what history.What, do func(*history.Event)) bool {
	for i := range x.events {
		if e := &x.events[i]; e.What == what && e.Worker == c.worker && e.ID == c.id {
			do(e)
			return true
		}
	}
	return false
}

// exchange gives each of two calls what the other got.
func (x *tale) exchange(a, b *call) {
	for i := range x.events {
		e := &x.events[i]
		switch e.What {
		case history.Acquired, history.Trusted, history.Lost, history.Releasing, history.Released, history.Effect, history.Downgrade:
			if e.Worker == a.worker && e.ID == a.id {
				e.Worker, e.ID = b.worker, b.id
			} else if e.Worker == b.worker && e.ID == b.id {
				e.Worker, e.ID = a.worker, a.id
			}
		}
	}
}

func TestSingleCorruptionsAreAlwaysCaught(t *testing.T) {
	runs := 300
	if testing.Short() {
		runs = 30
	}
	for _, c := range corruptions {
		t.Run(c.name, func(t *testing.T) {
			done := 0
			for seed := range runs {
				kind := c.kinds[seed%len(c.kinds)]
				x := simulate(uint64(seed), kind, seed%2 == 0, false, 60)
				r := rand.New(rand.NewPCG(uint64(seed), 1))
				s := x.input().stories[lock]
				corrupted := false
				for try := 0; try < 50 && !corrupted; try++ {
					corrupted = c.do(x, s, r)
				}
				if !corrupted {
					continue
				}
				done++
				names, report := verdict(x.input())
				for _, want := range c.want {
					if !slices.Contains(names, want) {
						t.Fatalf("seed %d (%s): %q was not caught:\n%s", seed, kind, want, report.Markdown())
					}
				}
			}
			if done < runs/10 {
				t.Errorf("only %d of %d histories had a place for it", done, runs)
			}
		})
	}
}
