package interop_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/spawn"
	"github.com/relock-go/relock/redisson"
)

// A process of ours is this program again, with its lock named in the environment:
// SETUP ADDRESS KIND NAME.
const orders = "RELOCK_INTEROP_PROCESS"

// obey is the other process: it locks, says so, and waits to be killed.
func obey(order string) {
	var setup, addr, kind, name string
	if _, err := fmt.Sscan(order, &setup, &addr, &kind, &name); err != nil {
		panic(err)
	}
	var rdb redis.UniversalClient = redis.NewClient(&redis.Options{Addr: addr})
	if setup == "cluster" {
		rdb = redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{addr}})
	}
	c, err := redisson.New(rdb, redisson.Defaults(redisson.TTL(watchdog)), redisson.FairWait(fairWait))
	if err != nil {
		panic(err)
	}
	_, _ = fmt.Fprintln(os.Stdout, "asks")
	_, _ = fmt.Fprintln(os.Stdout, "holds", handle(c, kind, name).Lock(context.Background()))
	select {}
}

// process starts one, and returns what kills it once it has said so.
func (x *lab) process(kind, name, until string) (kill func()) {
	x.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), orders+"="+strings.Join([]string{x.setup, x.addr, kind, name}, " "))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(x, err)
	exited, err := spawn.Start(cmd)
	must(x, err)
	kill = func() { _ = cmd.Process.Kill(); <-exited }
	x.Cleanup(kill)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), until) {
			return kill
		}
	}
	x.Fatal("the process has ended")
	return nil
}

// TestAKilledHolderOfEitherSideGivesWayWithItsLease, not before and not long after.
func TestAKilledHolderOfEitherSideGivesWayWithItsLease(t *testing.T) {
	everywhere(t, func(x *lab) {
		c, java := x.golang(), x.java("j")
		for _, kind := range append(modes, "read") {
			dead := startJVM(x.T)
			victim := &lab{T: x.T, driver: dead, addr: x.addr, setup: x.setup}
			victim.tell(victim.java("v"), 1, "lock", kind, kind).ok()
			l := handle(c, blocked(kind), kind)
			got := begin(x, l)
			x.waiting(got)
			dead.Kill()
			x.inherits(kind+" of Java", func() { within(x, watchdog+time.Second, kind, got) })
			must(x, l.Unlock())

			kill := x.process(kind, kind, "holds")
			waiter := x.tell(java, 1, "lock", blocked(kind), kind)
			waiter.pending(waits)
			kill()
			x.inherits(kind+" of Go", func() { waiter.ok() })
			x.tell(java, 1, "unlock", blocked(kind), kind).ok()
			x.leaves(kind, kind)
		}
	})
}

// inherits fails unless the lock of a holder that has just been killed is had after what
// can be left of its lease.
func (x *lab) inherits(whose string, had func()) {
	x.Helper()
	began := time.Now()
	had()
	took := time.Since(began)
	x.Logf("the lock of a killed holder, %s, was had after %v of a lease of %v", whose, took.Round(time.Millisecond), watchdog)
	if took > watchdog+time.Second || took < watchdog/3 {
		x.Errorf("%s: after %v, want what is left of the lease: %v to %v", whose, took, watchdog/3, watchdog)
	}
}

// TestAKilledReaderOfJavasTakesNoReadThatIsTrusted: its watchdog has cut the lease of ours,
// which has asked for more, to its own.
// Fails when the lease of a read hold here is not bounded by WatchdogTimeout.
func TestAKilledReaderOfJavasTakesNoReadThatIsTrusted(t *testing.T) {
	onOneServer(t, func(x *lab) {
		c, link := x.linked()
		h, err := handle(c, "read", "rw", redisson.TTL(10*watchdog)).Acquire(x.Context())
		must(x, err)
		java, dead := x.java("j"), startJVM(x.T)
		victim := &lab{T: x.T, driver: dead, addr: x.addr, setup: x.setup}
		victim.tell(victim.java("v"), 1, "lock", "read", "rw").ok()
		<-time.After(watchdog) // which renews
		must(x, h.Err())
		heal := link.Hole()
		dead.Kill()
		x.inherits("read of both", func() { x.tell(java, 1, "lock", "write", "rw").ok() })
		if h.Err() == nil {
			x.Error("Java writes, and ours is trusted to read")
		}
		heal()
		x.tell(java, 1, "unlock", "write", "rw").ok()
		_ = h.Release() // it was lost
		x.leaves("write", "rw")
	})
}

// TestAKilledWaiterAtTheHeadOfAFairQueueIsPassedByItsDeadline: nobody overtakes it before
// that, and the others get the lock then.
func TestAKilledWaiterAtTheHeadOfAFairQueueIsPassedByItsDeadline(t *testing.T) {
	onOneServer(t, func(x *lab) {
		java, c := x.java("j"), x.golang()
		l := handle(c, "fair", "line")
		x.tell(java, 1, "lock", "fair", "line").ok()
		kill := x.process("fair", "line", "asks")
		x.queued("line", 1)
		got := begin(x, l)
		x.queued("line", 2)
		kill()
		x.tell(java, 1, "unlock", "fair", "line").ok()
		x.passes("a dead waiter of Go's", func() { within(x, fairWait+2*watchdog, "the lock", got) })

		dead := startJVM(x.T)
		victim := &lab{T: x.T, driver: dead, addr: x.addr, setup: x.setup}
		victim.tell(victim.java("v"), 1, "lock", "fair", "line")
		x.queued("line", 1)
		next := x.tell(java, 2, "lock", "fair", "line")
		x.queued("line", 2)
		dead.Kill()
		must(x, l.Unlock())
		x.passes("a dead waiter of Java's", func() { next.ok() })
		x.tell(java, 2, "unlock", "fair", "line").ok()
		x.leaves("fair", "line")
	})
}

// passes fails unless the dead head of the queue holds up the others until its deadline,
// and no longer.
func (x *lab) passes(whom string, had func()) {
	x.Helper()
	began := time.Now()
	head := x.admin.LIndex(x.Context(), "redisson_lock_queue:{line}", 0).Val()
	deadline := x.admin.ZScore(x.Context(), "redisson_lock_timeout:{line}", head).Val()
	had()
	if now := x.admin.Time(x.Context()).Val().UnixMilli(); float64(now) < deadline || deadline == 0 {
		x.Errorf("%s was overtaken at %d, before its deadline %.0f", whom, now, deadline)
	}
	took := time.Since(began)
	x.Logf("%s was passed after %v; it might be silent for %v after the lease of %v", whom, took.Round(time.Millisecond), fairWait, watchdog)
	if took > fairWait+watchdog+time.Second {
		x.Errorf("%s was passed after %v, want %v at most", whom, took, fairWait+watchdog)
	}
}

// queued waits until so many stand in a fair lock's queue.
func (x *lab) queued(name string, n int64) {
	x.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); <-time.After(10 * time.Millisecond) {
		if x.admin.LLen(x.Context(), "redisson_lock_queue:{"+name+"}").Val() == n {
			return
		}
	}
	x.Fatalf("there are not %d in the queue of %s", n, name)
}

// TestWatchdogsOfBothKeepLocks for several leases.
func TestWatchdogsOfBothKeepLocks(t *testing.T) {
	everywhere(t, func(x *lab) {
		java, c := x.java("j"), x.golang()
		for _, kind := range modes {
			must(x, handle(c, kind, "go-"+kind).Lock(x.Context()))
			x.tell(java, 1, "lock", kind, "java-"+kind).ok()
		}
		<-time.After(2 * watchdog)
		for _, kind := range modes {
			x.tries2(java, kind, "go-"+kind, "false")
			x.goTries(handle(c, kind, "java-"+kind), false, 0)
		}
	})
}

// TestOurHolderKnowsItsLossBeforeJavaHasTheLock: it is cut off, between two renewals.
func TestOurHolderKnowsItsLossBeforeJavaHasTheLock(t *testing.T) {
	onOneServer(t, func(x *lab) {
		java := x.java("j")
		for i, kind := range append(modes, "read") {
			c, link := x.linked()
			h, err := handle(c, kind, kind).Acquire(x.Context())
			must(x, err)
			told := make(chan time.Time, 1)
			go func() { <-h.Lost(); told <- time.Now() }()
			<-time.After(watchdog/3 + time.Duration(i)*watchdog/12)
			heal := link.Hole()
			x.tell(java, 1, "lock", blocked(kind), kind).ok()
			had := time.Now()
			select {
			case at := <-told:
				x.Logf("%s: ours knew %v before Java had the lock", kind, had.Sub(at).Round(time.Millisecond))
				if !at.Before(had) {
					x.Errorf("%s: too late", kind)
				}
			default:
				x.Errorf("%s: Java has the lock, and ours does not know", kind)
			}
			heal()
			x.tell(java, 1, "unlock", blocked(kind), kind).ok()
		}
	})
}

// blocked is how one has to want the lock to be kept out by who holds it so.
func blocked(kind string) string {
	if kind == "read" {
		return "write"
	}
	return kind
}

// TestAFixedLeaseOfEitherSideEnds and the other side has the lock then.
func TestAFixedLeaseOfEitherSideEnds(t *testing.T) {
	const lease = 2 * time.Second
	everywhere(t, func(x *lab) {
		java, c := x.java("j"), x.golang()
		for _, kind := range modes {
			l := handle(c, kind, kind, redisson.TTL(lease), redisson.NoWatchdog())
			x.tell(java, 1, "lockfor", kind, kind, lease.Milliseconds()).ok()
			got := begin(x, l)
			within(x, lease+time.Second, kind+" after Java's lease", got)
			lost, waiter := l.Lost(), x.tell(java, 2, "lock", kind, kind)
			waiter.ok()
			select {
			case <-lost:
			default:
				x.Errorf("%s: Java has the lock, and ours is not told lost", kind)
			}
			if err := l.Unlock(); err == nil {
				x.Errorf("%s: Unlock after the lease is nil", kind)
			}
			x.tell(java, 2, "unlock", kind, kind).ok()
			x.leaves(kind, kind)
		}
	})
}
