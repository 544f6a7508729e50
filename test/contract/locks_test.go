package contract_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// listed are the locks that match, by name, and what went wrong with others.
func listed(t *testing.T, c *relock.Client, match string) (found map[string]relock.Info, errs map[string]error) {
	t.Helper()
	found, errs = map[string]relock.Info{}, map[string]error{}
	for info, err := range c.Locks(t.Context(), match) {
		if _, again := found[info.Name]; again {
			t.Errorf("%q comes twice", info.Name)
		}
		if err != nil {
			errs[info.Name] = err
			continue
		}
		found[info.Name] = info
	}
	return found, errs
}

// wantListed fails unless these locks match, and no other.
func wantListed(t *testing.T, c *relock.Client, match string, want ...string) map[string]relock.Info {
	t.Helper()
	found, errs := listed(t, c, match)
	if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, want) || len(errs) > 0 {
		t.Errorf("Locks(%q): %q, errors %v, want %q", match, got, errs, want)
	}
	return found
}

// inUse takes a lock of every sort by a client of the label A, and leaves others free.
func inUse(t *testing.T, x *rig.Lab) {
	t.Helper()
	c, _ := labelled(x, relock.Label("A"))
	for _, l := range []*relock.Lock{c.NewLock("50% {of"), c.NewLock("{tag}: b", relock.Fair()), c.NewSemaphore("s", 3)} {
		rig.Must(t, l.Lock(t.Context()))
	}
	for _, who := range []string{"r1", "r2"} {
		rig.Must(t, c.NewRWLock("rw").RLocker().Lock(x.By(who)))
	}
	for _, l := range []*relock.Lock{c.NewLock("unlocked"), c.NewLock("rests", relock.AtLeast(time.Minute))} {
		rig.Must(t, l.Lock(t.Context()))
		rig.Must(t, l.Unlock())
	}
	x.Begin(x.Lock("50% {of")).Waits()
	virtual.Sleep(2 * time.Second)
}

// Whatever is held, waited for or at rest is listed, with its labels; what is free is not.
func TestLocksListsWhatIsInUse(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		inUse(t, x)
		all := wantListed(t, x.Client(), "", "50% {of", "rests", "rw", "s", "{tag}: b")
		for name, want := range map[string]string{"50% {of": "plain 1 1", "{tag}: b": "fair 1 0", "rw": "rw 2 0", "s": "semaphore 1 0", "rests": "plain 0 0"} {
			info := all[name]
			if got := fmt.Sprint(info.Kind, " ", len(info.Holders), " ", info.Waiters); got != want {
				t.Errorf("%s is %q, want %q: %+v", name, got, want, info)
			}
			for _, h := range info.Holders {
				if h.Label != "A" || h.Held.Round(time.Millisecond) != 2*time.Second || h.Owner == "" {
					t.Errorf("%s: holder %+v, want the label A, 2 s", name, h)
				}
			}
		}
		if rest := all["rests"].Resting; rest != 58*time.Second {
			t.Errorf("it rests for another %v, want 58 s", rest)
		}
	})
}

func TestLocksListsWhatMatches(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		inUse(t, x)
		c, other := x.Client(), x.Client(relock.KeyPrefix("relock:h"))
		rig.Must(t, other.NewLock("theirs").Lock(t.Context()))
		wantListed(t, c, "r*", "rests", "rw")
		wantListed(t, c, "50%*", "50% {of")
		wantListed(t, c, "{tag}*", "{tag}: b")
		wantListed(t, c, "[!-~]", "s")
		wantListed(t, c, "t*")
		wantListed(t, other, "", "theirs")
	})
}

// A key that is none of a lock's is told beside its name, and the others come all the same.
func TestLocksTellsOfAKeyThatIsNoLock(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		for _, name := range []string{"a", "c"} {
			rig.Must(t, x.Lock(name).Lock(t.Context()))
		}
		rig.Must(t, x.Redis.Set(t.Context(), key.Hash("relock", "b"), "theirs", time.Hour).Err())
		found, errs := listed(t, x.Client(), "")
		if len(found) != 2 || len(errs) != 1 || errs["b"] == nil || !strings.Contains(errs["b"].Error(), "WRONGTYPE") {
			t.Errorf("Locks: %v, errors %v, want a and c, and that b is of the wrong type", found, errs)
		}
	})
}

// asked counts the commands of a link.
func asked(link *redistest.Link, name string) int { return link.Commands()[name] }

// It asks for no more than the loop wants, and stops with it.
func TestLocksAsksStepByStep(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rig.LoadScripts(t, x.Redis)
		c := x.Client()
		for i := range 200 {
			rig.Must(t, c.NewLock(fmt.Sprint("l", i)).Lock(t.Context()))
		}
		eye, link := x.Linked()
		for _, err := range eye.Locks(t.Context(), "") {
			rig.Must(t, err)
			break
		}
		if scans, scripts := asked(link, "scan"), asked(link, "evalsha"); scans != 1 || scripts > 66 {
			t.Errorf("%d scans and %d scripts for the first lock, want one and 66 at most", scans, scripts)
		}
		if n := len(wantSome(t, eye)); n != 200 {
			t.Errorf("%d locks, want 200", n)
		}
	})
}

func wantSome(t *testing.T, c *relock.Client) map[string]relock.Info {
	t.Helper()
	found, errs := listed(t, c, "")
	if len(errs) > 0 {
		t.Errorf("errors %v", errs)
	}
	return found
}

// locksEnd is the error with which a loop ends, and how many locks came before it.
func locksEnd(c *relock.Client, ctx context.Context, match string, each func()) (n int, end error) { //nolint:revive // the client first, as a method has it
	for _, err := range c.Locks(ctx, match) {
		if err != nil {
			end = errors.Join(end, err)
			continue
		}
		n++
		each()
	}
	return n, end
}

func TestLocksEndsWithItsContextAndItsClient(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		for _, name := range []string{"a", "b", "c"} {
			rig.Must(t, x.Lock(name).Lock(t.Context()))
		}
		c := x.Client()
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("enough")
		if n, err := locksEnd(c, ctx, "", func() { cancel(cause) }); n != 1 || !errors.Is(err, context.Canceled) || !errors.Is(err, cause) {
			t.Errorf("%d locks, %v, want one, and then the context's end and cause", n, err)
		}
		if n, err := locksEnd(c, ctx, "", func() {}); n != 0 || !errors.Is(err, context.Canceled) {
			t.Errorf("%d locks, %v, want none under an ended context", n, err)
		}
		if n, err := locksEnd(c, t.Context(), "", func() { _ = c.Close() }); n != 1 || !errors.Is(err, relock.ErrClosed) {
			t.Errorf("%d locks, %v, want one, and then ErrClosed", n, err)
		}
	})
}

func TestLocksRefusesBadInput(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var none context.Context
		for what, end := range map[string]error{
			"nil context":      second(locksEnd(x.Client(), none, "", func() {})),
			"a bad pattern":    second(locksEnd(x.Client(), t.Context(), "[", func() {})),
			"a hidden client":  second(locksEnd(rig.Open(t, struct{ redis.UniversalClient }{x.Redis}), t.Context(), "", func() {})),
			"an unmade client": second(locksEnd(nil, t.Context(), "", func() {})),
		} {
			if !errors.Is(end, relock.ErrInvalidOption) || !strings.Contains(fmt.Sprint(end), "relock: ") {
				t.Errorf("%s: %v, want ErrInvalidOption", what, end)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }

// A server that does not answer is told, within the time of three tries, and the loop ends.
func TestLocksTellsOfAServerThatDoesNotAnswer(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		link.Hole()
		began := time.Now()
		n, err := locksEnd(c, t.Context(), "", func() {})
		if took := time.Since(began); n != 0 || err == nil || took > 20*time.Second || !strings.Contains(err.Error(), "redis could not be asked") {
			t.Errorf("%d locks, %v after %v, want that redis could not be asked", n, err, took)
		}
	})
}

// A server lists its locks, and then does not answer. It is not asked about each of them for 15 s. Each has its error.
func TestLocksTellsSoonOfLocksThatAServerDoesNotTellOf(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rig.LoadScripts(t, x.Redis)
		for i := range 10 {
			rig.Must(t, x.Lock(fmt.Sprint("l", i)).Lock(t.Context()))
		}
		c, link := x.Linked()
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if cmd.Is("eval", "evalsha") {
				return redistest.Lose
			}
			return redistest.Pass
		})
		began := time.Now()
		found, errs := listed(t, c, "")
		if took := time.Since(began); len(found) != 0 || len(errs) != 10 || took > 25*time.Second {
			t.Errorf("%d locks and %d errors after %v, want an error for each of ten within 25 s", len(found), len(errs), took)
		}
		for name, err := range errs {
			if !errors.Is(err, relock.ErrUnavailable) || name == "" || !strings.Contains(err.Error(), name) {
				t.Errorf("%q: %v, want ErrUnavailable with the name of the lock", name, err)
			}
		}
	})
}

// A server lists its locks, and then does not answer until the context ends. Fails when nothing says so but its end.
func TestLocksWhoseContextEndsInASilenceTellsOfIt(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rig.LoadScripts(t, x.Redis)
		for _, name := range []string{"a", "b"} {
			rig.Must(t, x.Lock(name).Lock(t.Context()))
		}
		c, link := x.Linked()
		link.OnCommand(func(cmd redistest.Command) redistest.Verdict {
			if rig.Runs(cmd, "info") {
				return redistest.Lose
			}
			return redistest.Pass
		})
		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
		defer cancel()
		n, err := locksEnd(c, ctx, "", func() {})
		if n != 0 || !errors.Is(err, relock.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%d locks, %v, want none, ErrUnavailable and the end of the context", n, err)
		}
	})
}

// Redis answers that a slot migrates: for one lock each time, for the others once. Fails when the others, of which it
// would tell, get that error too.
func TestALockWhoseSlotMigratesHidesNoOtherFromLocks(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		const n = 8
		for i := range n {
			rig.Must(t, x.Lock(fmt.Sprint("l", i)).Lock(t.Context()))
		}
		c, asked := x.Client(), map[string]bool{}
		x.Server.FailNext(1<<30, "TRYAGAIN Multiple keys request during rehashing of slot", func(args []string) bool {
			if len(args) < 4 || !strings.HasPrefix(args[0], "eval") {
				return false
			}
			hash := args[3]
			again := asked[hash]
			asked[hash] = true
			return !again || hash == key.Hash("relock", "l0")
		})
		found, errs := listed(t, c, "")
		if len(found) != n-1 || len(errs) != 1 || !errors.Is(errs["l0"], relock.ErrUnavailable) {
			t.Errorf("%d locks, errors %v, want %d, and ErrUnavailable for l0", len(found), errs, n-1)
		}
	})
}

// SCAN may return a key more than once: a lock comes once.
func TestLocksComeOnceThoughTheirKeysComeTwice(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		rig.Must(t, x.Lock("a").Lock(t.Context()))
		rdb := x.Server.Client(t)
		rdb.AddHook(twice{})
		wantListed(t, rig.Open(t, rdb), "", "a")
	})
}

// twice has SCAN return all keys twice.
type twice struct{ passing }

func (twice) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if scan, is := cmd.(*redis.ScanCmd); is {
			keys, cursor := scan.Val()
			scan.SetVal(slices.Concat(keys, keys), cursor)
		}
		return err
	}
}

// Two processes have given up the lock to wait on conditions, and nobody holds it or stands in its queue.
// Fails when an operator who looks for what hangs does not find such a lock.
func TestLocksHasALockOnWhichOthersOnlyWaitOnConditions(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		var waits []*rig.Sleep
		var locks []*relock.Lock
		for _, condition := range []string{"c", "d"} {
			l := x.Lock("l")
			rig.Must(t, l.Lock(t.Context()))
			waits, locks = append(waits, x.Sleeps(t.Context(), l.NewCond(condition), 0)), append(locks, l)
		}
		if l := wantListed(t, x.Eye, "", "l")["l"]; l.CondWaiters != 2 || l.Waiters != 0 || l.Kind != "plain" {
			t.Errorf("%+v, want two waiters on conditions", l)
		}
		x.Until(2 * time.Minute) // longer than a lease: those that live are renewed
		l := x.Lock("l")
		h := rig.MustAcquire(t, l)
		rig.Must(t, l.NewCond("c").Signal(t.Context()))
		if l := x.Info(x.Lock("l")); l.CondWaiters != 1 || l.Waiters != 1 {
			t.Errorf("%+v after a signal, want one on a condition, and one in the queue", l)
		}
		rig.Must(t, l.NewCond("d").Signal(t.Context()))
		rig.End(t, h)
		for i, s := range waits {
			s.Woken()
			rig.Must(t, locks[i].Unlock())
		}
	})
}

// A process that waits on a condition dies. Fails when it is counted as alive after its lease.
func TestADeadWaiterOnAConditionIsCountedForItsLeaseOnly(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		c, link := x.Linked()
		l := c.NewLock("l", relock.TTL(10*time.Second))
		rig.Must(t, l.Lock(t.Context()))
		x.Sleeps(t.Context(), l.NewCond("c"), 0)
		wantListed(t, x.Eye, "", "l")
		link.Cut()
		x.Until(time.Minute)
		wantListed(t, x.Eye, "")
	})
}

// A pager has SCAN return one key at a time, and fail once.
type pager struct {
	all    []string
	fails  int // after so many answers
	starts int // how often it began
	asked  int
}

func (*pager) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*pager) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (p *pager) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		scan, is := cmd.(*redis.ScanCmd)
		if !is {
			return next(ctx, cmd)
		}
		at := int(cmd.Args()[1].(uint64))
		if at == 0 {
			p.starts++
		}
		if p.asked++; p.asked == p.fails {
			err := errors.New("the connection was lost")
			scan.SetErr(err)
			return err
		}
		to := (at + 1) % len(p.all)
		scan.SetVal(p.all[at:at+1], uint64(to))
		return nil
	}
}

// Fails when a step that is tried again begins at the first key: with a server that fails now and then it never ends.
func TestLocksGoesOnWhereAStepHasFailed(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		p := &pager{fails: 3}
		for _, name := range []string{"a", "b", "c", "d"} {
			rig.Must(t, x.Lock(name).Lock(t.Context()))
			p.all = append(p.all, "relock:h:{"+name+"}")
		}
		rdb := x.Server.Client(t)
		rdb.AddHook(p)
		wantListed(t, rig.Open(t, rdb), "", "a", "b", "c", "d")
		if p.starts != 1 {
			t.Errorf("the scan began %d times", p.starts)
		}
	})
}

// Fails when a Cluster that says nothing of its servers passes for one without locks.
func TestLocksOfAClusterWhoseServersAreUnknownEndsWithTheError(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	rig.Must(t, err)
	rig.Must(t, listener.Close()) // nobody listens there any more
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{listener.Addr().String()}, MaxRetries: -1, MaxRedirects: -1, DialerRetries: 1})
	t.Cleanup(func() { _ = rdb.Close() })
	n, err := locksEnd(rig.Open(t, rdb), t.Context(), "", func() {})
	if rig.WantIs(t, err, relock.ErrUnavailable); n != 0 {
		t.Errorf("%d locks of a cluster that does not answer", n)
	}
}
