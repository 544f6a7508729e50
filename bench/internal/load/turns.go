package load

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/bench/internal/host"
	"github.com/relock-go/relock/bench/internal/rival"
)

// TurnFlag makes this program a process that takes turns with another; a Turning follows.
const TurnFlag = "-turn"

// Turning is what such a process is told.
type Turning struct{ Rival, Addr, Name string }

// Turned is one call of such a process: when it began and returned by the clock of the machine.
type Turned struct {
	Began, Ended time.Time
	Err          string
}

func (t Turned) took() time.Duration { return t.Ended.Sub(t.Began) }

// The orders of such a process.
const (
	orderLock   = "lock"
	orderUnlock = "unlock"
)

// Turn is such a process' main. It does what each line orders, and writes how long that took.
func Turn(ctx context.Context, arg string, in io.Reader, out io.Writer) error {
	var t Turning
	if err := json.Unmarshal([]byte(arg), &t); err != nil {
		return err
	}
	c, err := openNamed(t.Rival, t.Addr, rival.Setup{TTL: ttl})
	if err != nil {
		return err
	}
	lock, say := c.Lock(t.Name), json.NewEncoder(out)
	for orders := bufio.NewScanner(in); orders.Scan(); {
		did := lock.Unlock
		if orders.Text() == orderLock {
			did = func() error { return within(ctx, lock.Lock) }
		}
		turned := Turned{Began: time.Now()}
		err := did()
		turned.Ended = time.Now()
		if err != nil {
			turned.Err = err.Error()
		}
		if err := say.Encode(turned); err != nil {
			return err
		}
	}
	return c.Close()
}

// OneHost is the case of processes without a link between.
const OneHost = "one host"

// Turns measures two processes that take turns, with a lock that is kept between holds and with one that is not. If
// roundTrip is more than zero, each process is behind a link of its own.
func (b *Bench) Turns(ctx context.Context, roundTrip time.Duration) error {
	var fleets []*fleet
	all := map[string]*turns{}
	defer func() {
		for _, t := range all {
			t.stop()
		}
	}()
	for _, r := range []rival.Rival{rival.Relock(), rival.RelockSticky()} {
		t, err := b.startTurns(r.Name, roundTrip)
		all[r.Name] = t
		if err != nil {
			return fmt.Errorf("two processes of %s: %w", r.Name, err)
		}
		fleets = append(fleets, &fleet{rival: r})
	}
	s := Sample{Workload: "turns", Case: OneHost}
	if roundTrip > 0 {
		s.Case = "link " + roundTrip.String()
	}
	return b.interleave(ctx, fleets, s, func(ctx context.Context, f *fleet, s *Sample) error {
		return all[f.rival.Name].measure(ctx, b.Window, s)
	})
}

// turns are two processes that take turns with one lock.
type turns struct {
	sides   []*child
	links   []*host.Link
	holder  int           // of the sides
	settled time.Duration // how long a process waits before the Unlock, or asks after it
	look    *relock.Lock
	shut    func() error
}

func (b *Bench) startTurns(name string, roundTrip time.Duration) (*turns, error) {
	t := &turns{settled: 4*roundTrip + 5*time.Millisecond}
	turning := Turning{Rival: name, Addr: b.Server.Addr(), Name: b.name("turns")}
	for range 2 {
		if roundTrip > 0 {
			link, err := host.NewLink(b.Server.Addr(), roundTrip)
			if err != nil {
				return t, err
			}
			t.links, turning.Addr = append(t.links, link), link.Addr()
		}
		c, err := startChild(TurnFlag, turning)
		if err != nil {
			return t, err
		}
		t.sides = append(t.sides, c)
	}
	c, rdb, err := rival.OpenRelock(b.Server.Addr(), rival.Setup{TTL: ttl})
	if err != nil {
		return t, err
	}
	t.look, t.shut = c.NewLock(turning.Name), func() error { return errors.Join(c.Close(), rdb.Close()) }
	return t, nil
}

func (t *turns) stop() {
	for _, c := range t.sides {
		c.stop()
	}
	for _, l := range t.links {
		l.Close()
	}
	if t.shut != nil {
		_ = t.shut()
	}
}

// taken is what was measured in one round.
type taken struct {
	handOffs            []time.Duration // from the Unlock to the return of a Lock that had waited
	unlocks, asks, both []time.Duration // where the next process asks later
	atOnce              []time.Duration // Unlock and Lock where it asks at once
	kept                int
}

// measure is one round. The holder passes the lock to who waits, then to who asks later, then to who asks at once.
func (t *turns) measure(ctx context.Context, window time.Duration, s *Sample) error {
	var got taken
	if _, err := t.call(ctx, t.holder, orderLock); err != nil {
		return err
	}
	for _, turn := range []func(context.Context, *taken) error{t.toWaiter, t.toLater, t.toNext} {
		var warm taken
		for range 3 { // connections, and the first grant of a name, which nobody keeps
			if err := turn(ctx, &warm); err != nil {
				return err
			}
		}
		for by := time.Now().Add(window); time.Now().Before(by); {
			if err := turn(ctx, &got); err != nil {
				return err
			}
		}
	}
	if _, err := t.call(ctx, t.holder, orderUnlock); err != nil {
		return err
	}
	s.Few = len(got.handOffs) < 5 || len(got.both) < 5 || len(got.atOnce) < 5
	s.Values["kept"] = float64(got.kept) / float64(len(got.both))
	for metric, took := range map[string][]time.Duration{
		"hand-off p50 us": got.handOffs, "unlock p50 us": got.unlocks, "wait p50 us": got.asks,
		"unlock, wait p50 us": got.both, "at once p50 us": got.atOnce,
	} {
		slices.Sort(took)
		s.percentile(metric, took, 50, micros)
	}
	return nil
}

// toWaiter unlocks while the other process waits.
func (t *turns) toWaiter(ctx context.Context, got *taken) error {
	if err := t.order(t.next(), orderLock); err != nil {
		return err
	}
	if err := pause(ctx, t.settled); err != nil {
		return err
	}
	left, err := t.call(ctx, t.holder, orderUnlock)
	if err != nil {
		return err
	}
	entered, err := t.answer(ctx, t.next())
	got.handOffs = append(got.handOffs, entered.Ended.Sub(left.Began))
	t.holder = t.next()
	return err
}

// toLater has the other process ask for a lock that was unlocked before, and looks whether it is kept.
func (t *turns) toLater(ctx context.Context, got *taken) error {
	left, err := t.call(ctx, t.holder, orderUnlock)
	if err != nil {
		return err
	}
	info, err := t.look.Info(ctx)
	if err != nil {
		return err
	}
	if len(info.Holders) > 0 {
		got.kept++
	}
	if err := pause(ctx, t.settled); err != nil {
		return err
	}
	entered, err := t.call(ctx, t.next(), orderLock)
	got.unlocks, got.asks = append(got.unlocks, left.took()), append(got.asks, entered.took())
	got.both = append(got.both, left.took()+entered.took())
	t.holder = t.next()
	return err
}

// toNext has the other process ask as soon as it hears that the lock is unlocked.
func (t *turns) toNext(ctx context.Context, got *taken) error {
	left, err := t.call(ctx, t.holder, orderUnlock)
	if err != nil {
		return err
	}
	entered, err := t.call(ctx, t.next(), orderLock)
	got.atOnce = append(got.atOnce, left.took()+entered.took())
	t.holder = t.next()
	return err
}

func (t *turns) next() int { return 1 - t.holder }

func (t *turns) order(side int, what string) error {
	_, err := t.sides[side].in.WriteString(what + "\n")
	return err
}

func (t *turns) call(ctx context.Context, side int, what string) (Turned, error) {
	if err := t.order(side, what); err != nil {
		return Turned{}, err
	}
	return t.answer(ctx, side)
}

// answer waits until a process has done what it was told.
func (t *turns) answer(ctx context.Context, side int) (turned Turned, err error) {
	c := t.sides[side]
	stop := context.AfterFunc(ctx, func() { _ = c.cmd.Process.Kill() })
	defer stop()
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		return turned, fmt.Errorf("the process ended: %w", err)
	}
	if err := json.Unmarshal(line, &turned); err != nil {
		return turned, err
	}
	if turned.Err != "" {
		return turned, errors.New(turned.Err)
	}
	return turned, nil
}
