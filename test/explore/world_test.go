package explore_test

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/wire"
)

// The explorer runs the real client and the real scripts under a scheduler that
// decides, from a list of numbers, what happens next: which command arrives,
// which reply and which message is delivered, lost or doubled, who begins, ends,
// cancels, dies or freezes, and when time passes. Between two decisions every
// goroutine is blocked, so that the same list gives the same run.

// A world is one run of one schedule.
type world struct {
	t      *testing.T
	setup  setup
	srv    *redistest.Server
	wire   *redis.Client // how commands reach the server, and nothing else does
	began  time.Time
	known  map[string]bool // scripts that the server knows
	procs  []*process
	names  []string // of the locks
	census census
	trace  func(format string, args ...any) // nil: no trace

	mu      sync.Mutex // guards the following fields and flights' and ears' state; no I/O under it
	flights []*flight
	order   int
	ids     map[string]string // what is random, by what it is called in a trace
	arrived chan struct{}     // cap 1: something has come on its way

	// The scheduler's own, touched by no other goroutine:

	calls   []*wish
	holds   []*holding
	wrong   string // the first violation
	stores  map[string]*store
	amnesty map[string]time.Duration // until when two may hold, after data was lost or a holder removed
	fair    bool                     // no process has been cut off for long enough to lose a turn
	faulty  bool                     // any fault has been injected
	dumb    bool                     // an inbox became half open before it was acknowledged
	crowded bool                     // the crowd has come
	expired map[string]bool          // locks that count waiters whose queue has expired
}

// A process is one client with a network of its own.
type process struct {
	world  *world
	index  int
	client *relock.Client
	rdb    *redis.Client
	ears   []*ear
	dead   bool
	frozen bool
	barred bool          // from subscribing; guarded by world.mu
	closed chan struct{} // closed when a dead client has closed

	// Handles that goroutines share:

	locks   map[string]*relock.Lock
	rwlocks map[string]*relock.RWLock
}

// A wish is one call that wants a lock.
type wish struct {
	by    *process
	name  string
	what  string
	owner string // named, or ""
	read  bool
	rw    *relock.RWLock // of a read/write lock
	stop  context.CancelFunc
	done  chan struct{} // closed when hold and err are set
	hold  *relock.Hold
	err   error
	at    time.Duration // when it returned
	began time.Duration
	ended bool // the scheduler has seen that it is done
	tries bool // it is a TryAcquire
	wait  time.Duration
	ttl   time.Duration
	fixed bool   // it has no watchdog
	first error  // of the hold, when the call returned it
	crowd bool   // one of many
	lent  bool   // the owner is what an anonymous hold calls its own
	upset string // when a hook of it does not return, and how

	shares bool // its handle
	hangs  bool // it does not release its hold until everything ends
}

// A holding is a hold that its process has not begun to release.
type holding struct {
	*wish
	token    int64
	since    time.Duration
	state    int // 0: held, 1: being released, 2: over
	released chan struct{}
	result   error
	lost     bool
	fell     bool       // its process has begun to downgrade it
	down     chan error // of a downgrade under way
}

// A store is a resource that is fenced.
type store struct {
	top   int64
	owner string
}

// scriptIn returns the name of the script that a command runs.
func scriptIn(args []any) string {
	if len(args) < 2 {
		return fmt.Sprint(args...)
	}
	for name, s := range wire.Scripts() {
		if args[1] == s.SHA || args[1] == s.Source {
			return name
		}
	}
	return fmt.Sprint(args[0])
}

func sourceSHA(source any) string {
	sum := sha1.Sum([]byte(source.(string)))
	return hex.EncodeToString(sum[:])
}

// newWorld needs a bubble.
func newWorld(t *testing.T, s setup) *world {
	w := &world{
		t: t, setup: s, srv: redistest.Start(t), began: time.Now(), known: map[string]bool{}, expired: map[string]bool{}, ids: map[string]string{},
		arrived: make(chan struct{}, 1), stores: map[string]*store{}, amnesty: map[string]time.Duration{}, fair: true,
	}
	w.wire = w.srv.Client(t, func(o *redis.Options) {
		o.Protocol, o.DisableIdentity, o.MaxRetries = 2, true, -1
	})
	for _, s := range wire.Scripts() {
		w.known[s.SHA] = true
	}
	for i := range s.names {
		w.names = append(w.names, fmt.Sprintf("lock%d", i))
	}
	for range s.procs {
		w.addProcess()
	}
	if s.warm {
		w.pump()
	}
	return w
}

func (w *world) addProcess() {
	p := &process{
		world: w, index: len(w.procs), closed: make(chan struct{}),
		locks: map[string]*relock.Lock{}, rwlocks: map[string]*relock.RWLock{},
	}
	p.rdb = redis.NewClient(&redis.Options{
		Addr: "192.0.2.1:6379", Dialer: p.dial, Protocol: 2, DisableIdentity: true, MaxRetries: -1,
	})
	p.rdb.AddHook(p)
	c, err := relock.New(alone{p.rdb}, relock.ReleaseTimeout(2*w.setup.ttl), relock.TokenKeep(time.Minute), relock.Trace(w.hooks()))
	if err != nil {
		panic(err)
	}
	rig.SetClock(c, clock.New(time.Now, nil))
	p.client = c
	w.procs = append(w.procs, p)
	w.ids[rig.ID(c)] = fmt.Sprintf("c%d", p.index)
	if w.setup.warm {
		rig.Listen(c)
		synctest.Wait()
	}
}

func (w *world) now() time.Duration { return time.Since(w.began) }

// violate notes what must not be. The first one counts.
func (w *world) violate(format string, args ...any) {
	if w.wrong == "" {
		w.wrong = w.plain(fmt.Sprintf(format, args...), true)
		w.say("VIOLATION: %s", w.wrong)
	}
}

func (w *world) say(format string, args ...any) {
	if w.trace != nil {
		w.trace("%9.4f  %s", w.now().Seconds(), w.plain(fmt.Sprintf(format, args...), true))
	}
}

// rest waits until nothing goes on by itself, and notes what has become of calls.
func (w *world) rest() {
	synctest.Wait()
	w.fly(func(*flight) bool { return true }) // names what has come
	w.collect()
	w.check()
}

// pump delivers everything that is under way, until nothing is.
func (w *world) pump() {
	for range 2000 {
		w.rest()
		switch all := w.fly(func(f *flight) bool { return !f.orphan }); {
		case len(all) > 0 && !all[0].landed:
			w.execute(all[0])
		case len(all) > 0:
			w.deliver(all[0])
		default:
			ears := w.heard()
			if len(ears) == 0 {
				return
			}
			w.hand(ears[0])
		}
	}
	w.violate("commands without end: more than 2000 without any time passing")
}

func (w *world) deliver(f *flight) {
	w.answer(f, errDeliver)
	synctest.Wait()
}

// hand delivers the first frame at an ear.
func (w *world) hand(e *ear) {
	frame := w.take(e)
	e.acked = true
	w.sees(e, payload(frame))
	e.next <- frame
	synctest.Wait()
}

// pass lets time pass: d, or less where something comes on its way.
func (w *world) pass(d time.Duration) {
	select {
	case <-w.arrived: // that came before
	default:
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-w.arrived:
	}
	w.rest()
}

// live lets time pass while everything is delivered at once.
func (w *world) live(d time.Duration) {
	end := w.now() + d
	for w.pump(); w.now() < end && w.wrong == ""; w.pump() {
		w.pass(end - w.now())
	}
}

// kill ends a process: its commands that have not arrived never do, or do late.
func (w *world) kill(p *process, halfOpen bool) {
	w.mu.Lock()
	p.dead = true
	var own []*flight
	for _, f := range w.flights {
		if f.from == p && !f.orphan {
			own = append(own, f)
		}
	}
	ears := p.ears
	w.mu.Unlock()
	for _, f := range own {
		w.answer(f, errCut)
	}
	for _, e := range ears {
		if halfOpen {
			w.mu.Lock()
			e.deaf, e.waits = true, nil
			w.mu.Unlock()
			_ = e.near.SetDeadline(time.Now()) // the client reads no more
		} else {
			e.cut()
		}
	}
	go func() {
		defer close(p.closed)
		_ = p.client.Close()
	}()
	synctest.Wait()
}
