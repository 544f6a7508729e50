package nemesis

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/test/torture/history"
	"github.com/relock-go/relock/test/torture/proxy"
	"github.com/relock-go/relock/test/torture/server"
)

// A Victim is a worker as it is now.
type Victim struct {
	Number int
	Link   *proxy.Link
	Signal func(sig syscall.Signal)
}

// A Site is where harm is done.
type Site struct {
	Deployment *server.Deployment
	Clock      *server.Clock
	Workers    int // how many there are at any time
	Victim     func(slot int) Victim
	Replace    func(slot int) error // kills a worker and starts another one
	Locks      []*relock.Lock       // for ForceUnlock, past every proxy
	SHAs       []string             // of the scripts
	Out        *history.Writer

	turn chan struct{} // of who changes servers, or looks at what has changed

	mu        sync.Mutex // guards the following fields
	counts    map[string]int
	failed    []error
	failovers []span
}

// The weather of a round: faults come in storms, and between two storms the
// locks have time for what can be judged without faults alone, as fair order.
const (
	Quiet = 8 * time.Second
	Storm = 14 * time.Second
)

// storms says whether faults are injected at some time of a round that has a
// quiet beginning of the given length.
func storms(since, quiet time.Duration) bool {
	return since%(quiet+Storm) >= quiet
}

// Watch notes the failovers that nobody injected, until the function it returns is
// called: also after Run, since servers may fail over when the last fault is over.
func (s *Site) Watch() (stop func()) {
	s.turn = make(chan struct{}, 1)
	if !s.Deployment.FailsOver() {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { s.watchRoles(ctx) })
	return sync.OnceFunc(func() { cancel(); watching.Wait() })
}

// Run injects what the lanes say, until ctx ends, while Watch watches. Every fault is
// healed when it returns.
func (s *Site) Run(ctx context.Context, lanes Lanes, quiet time.Duration) {
	var running sync.WaitGroup
	begin := time.Now()
	for _, steps := range lanes {
		running.Go(func() {
			for _, step := range steps {
				ok := sleep(ctx, step.Gap)
				for ok && !storms(time.Since(begin), quiet) {
					ok = sleep(ctx, 100*time.Millisecond)
				}
				if !ok {
					return
				}
				s.inject(context.WithoutCancel(ctx), step)
			}
		})
	}
	running.Wait()
}

// sleep waits. It returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	over := time.NewTimer(d)
	defer over.Stop()
	select {
	case <-over.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Counts returns how many faults of each kind there were, and the errors of
// those that could not be injected as they should.
func (s *Site) Counts() (map[string]int, []error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts, s.failed
}

// note writes a fault down, when it is over.
func (s *Site) note(e history.Event) {
	e.What, e.Worker, e.Until = history.Fault, -1, history.Now()
	s.Out.Add(e)
	s.Out.Flush()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts = map[string]int{}
	}
	if e.Fault == history.Failover {
		s.failovers = append(s.failovers, span{e.T, e.Until})
	}
	s.counts[e.Fault]++
}

func (s *Site) fail(step Step, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = append(s.failed, fmt.Errorf("%s: %w", step, err))
}

// limit bounds the injection of one fault.
const limit = 40 * time.Second

func (s *Site) inject(ctx context.Context, step Step) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	e := history.Event{T: history.Now(), Fault: step.Kind, On: s.Deployment.Name}
	var err error
	switch step.Kind {
	case history.KillWorker, history.StopWorker:
		err = s.worker(step, e)
	case history.Cut, history.HalfOpen, history.Slow, history.Swallow, history.Delay, history.NoSubscribe, history.DeadPool:
		s.link(step, e)
	case history.ClientKill, history.ScriptFlush, history.FlushAll, history.Maxmemory:
		err = s.command(ctx, step, e)
	case history.ClockForward, history.ClockBack:
		s.step(step, e)
	case history.ForceUnlock:
		err = s.force(ctx, step, e)
	default:
		s.turn <- struct{}{}
		err = s.server(ctx, step, e)
		<-s.turn
	}
	if err != nil {
		s.fail(step, err)
	}
}

func (s *Site) worker(step Step, e history.Event) error {
	slot := step.Target % s.Workers
	v := s.Victim(slot)
	e.On = fmt.Sprintf("worker %d", v.Number)
	if step.Kind == history.KillWorker {
		err := s.Replace(slot)
		s.note(e)
		return err
	}
	v.Signal(syscall.SIGSTOP)
	sleep(context.Background(), step.For)
	v.Signal(syscall.SIGCONT)
	s.note(e)
	return nil
}

func (s *Site) link(step Step, e history.Event) {
	v := s.Victim(step.Target % s.Workers)
	e.On = fmt.Sprintf("link %d", v.Number)
	switch step.Kind {
	case history.Cut:
		heal := v.Link.Cut()
		sleep(context.Background(), step.For)
		heal()
	case history.HalfOpen:
		if step.Arg%3 == 0 {
			v.Link.HalfOpenSubscribers()
			break
		}
		heal := v.Link.Hole()
		sleep(context.Background(), step.For)
		heal()
	case history.NoSubscribe:
		heal := v.Link.Unsubscribe()
		sleep(context.Background(), step.For)
		heal()
	case history.DeadPool:
		v.Link.Silence()
	case history.Slow:
		heal := v.Link.Slow(time.Duration(1+step.Arg%40) * time.Millisecond)
		sleep(context.Background(), step.For)
		heal()
	default:
		s.trap(v, step)
	}
	s.note(e)
}

// trap loses replies to one script, or delays requests.
func (s *Site) trap(v Victim, step Step) {
	fates := []proxy.Fate{proxy.Swallow, proxy.CutReply}
	if step.Kind == history.Delay {
		fates = []proxy.Fate{proxy.Delay, proxy.Late}
	}
	late := time.Duration(step.Arg%1500) * time.Millisecond
	disarm := v.Link.Arm(proxy.Trap{
		Fate: fates[step.Arg%2], SHA: s.SHAs[step.Arg/2%len(s.SHAs)], Skip: step.Arg % 5, N: 1 + step.Arg%4, For: late,
	})
	sleep(context.Background(), step.For)
	disarm()
	if step.Kind == history.Delay {
		sleep(context.Background(), late) // the last one may have been caught just now
	}
}

// step moves the clock, and moves it back: two steps, of which each is a fault.
func (s *Site) step(step Step, e history.Event) {
	by := time.Duration(100+step.Arg%1900) * time.Millisecond
	to, back := history.ClockForward, history.ClockBack
	if step.Kind == history.ClockBack {
		to, back = back, to
	}
	e.Fault, e.By = to, int64(by)
	if to == history.ClockForward {
		s.Clock.Set(by)
	} else {
		s.Clock.Set(-by)
	}
	s.note(e)
	sleep(context.Background(), step.For)
	e.T, e.Fault = history.Now(), back
	s.Clock.Set(0)
	s.note(e)
	// A counter that is lost while the clock is behind it is beyond the guarantees.
	sleep(context.Background(), by)
}

func (s *Site) force(ctx context.Context, step Step, e history.Event) error {
	lock := s.Locks[step.Target%len(s.Locks)]
	e.Lock = lock.Name()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	_, err := lock.ForceUnlock(ctx)
	s.note(e) // an error does not mean that it has not worked
	if err != nil && s.Deployment.Primary().RDB.Ping(ctx).Err() != nil {
		return nil // a server is down: that is another fault's
	}
	return err
}
