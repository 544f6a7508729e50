package load

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/relock-go/relock/bench/internal/host"
	"github.com/relock-go/relock/bench/internal/rival"
	"github.com/relock-go/relock/internal/spawn"
)

// HeldLocks is a process that holds many locks and does nothing else.
type HeldLocks struct {
	Case   string
	Rival  rival.Rival
	Locks  int
	TTL    time.Duration
	Renews float64 // after which part of the TTL the library renews
	Window time.Duration
}

// Held runs one process after the other, once each.
func (b *Bench) Held(ctx context.Context, all []HeldLocks) error {
	for _, h := range all {
		if err := b.held(ctx, h); err != nil {
			return fmt.Errorf("%d locks of %s: %w", h.Locks, h.Rival.Name, err)
		}
	}
	return nil
}

func (b *Bench) held(ctx context.Context, h HeldLocks) error {
	if err := b.Server.Admin.FlushAll(ctx).Err(); err != nil {
		return err
	}
	holding := Holding{
		Rival: h.Rival.Name, Addr: b.Server.Addr(), Prefix: b.name("held") + "/", Locks: h.Locks,
		TTL: h.TTL, Every: time.Duration(h.Renews * float64(h.TTL)), Window: h.Window,
	}
	c, err := startChild(HoldFlag, holding)
	if err != nil {
		return err
	}
	defer c.stop()
	if err := c.waitHeld(ctx); err != nil {
		return err
	}
	before, err := b.Server.Counts(ctx)
	if err != nil {
		return err
	}
	found, err := c.measure(ctx, func() { b.watchTTL(ctx, c, h, holding) })
	if err != nil {
		return err
	}
	did := b.after(ctx, before)
	s := Sample{
		Workload: "held", Case: h.Case, Regime: b.Regime, Rival: h.Rival.Name,
		Errors: found.Errors, Err: found.Err, Values: h.figures(found, did),
	}
	if found.Renewals == 0 { // the library does not tell
		delete(s.Values, "renewals/s")
		s.Values["latest renewal, late s"] = c.late.Seconds()
		if c.sampled == 0 {
			s.Values["latest renewal, late s"] = math.NaN()
		}
	}
	b.Keep(s)
	return nil
}

// figures are what the process found and the server did, for each lock and second.
func (h HeldLocks) figures(found Held, did host.Counts) map[string]float64 {
	n := float64(h.Locks)
	return map[string]float64{
		"locks":                  n,
		"goroutines":             float64(found.Goroutines),
		"goroutines/lock":        float64(found.Goroutines) / n,
		"bytes/lock":             float64(found.Heap+found.Stack) / n,
		"of these stacks":        float64(found.Stack) / n,
		"CPU %":                  100 * found.CPU.Seconds() / h.Window.Seconds(),
		"CPU us/lock and TTL":    micros(found.CPU) / n * h.TTL.Seconds() / h.Window.Seconds(),
		"CPU ms":                 millis(found.CPU),
		"commands/s":             float64(did.Commands(h.Rival.Sends)) / h.Window.Seconds(),
		"server ms":              did.ServerUsec(h.Rival.Sends) / 1000,
		"renewals/s":             float64(found.Renewals) / h.Window.Seconds(),
		"latest renewal, late s": found.Late.Seconds(),
		"acquired/s":             n / found.AcquireElapsed.Seconds(),
	}
}

// after reads what the server did in the window; on an error there is nothing to show.
func (b *Bench) after(ctx context.Context, before host.Counts) host.Counts {
	now, err := b.Server.Counts(ctx)
	if err != nil {
		return host.Counts{}
	}
	return now.Since(before)
}

type child struct {
	cmd     *exec.Cmd
	exited  <-chan struct{}
	in      *os.File
	out     *bufio.Reader
	pipes   []*os.File
	late    time.Duration
	sampled int
}

// startChild starts this program as the process that flag makes of it, and tells it what.
func startChild(flag string, what any) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	arg, err := json.Marshal(what)
	if err != nil {
		return nil, err
	}
	inR, inW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, inR.Close(), inW.Close())
	}
	c := &child{cmd: exec.Command(self, flag, string(arg)), in: inW, out: bufio.NewReader(outR), pipes: []*os.File{inW, outR}}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = inR, outW, os.Stderr
	c.exited, err = spawn.Start(c.cmd)
	_, _ = inR.Close(), outW.Close() // the child has them
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (c *child) stop() {
	_ = c.cmd.Process.Kill() // fails only if it is gone already
	<-c.exited
	for _, p := range c.pipes {
		_ = p.Close()
	}
}

func (c *child) waitHeld(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = c.cmd.Process.Kill() })
	defer stop()
	line, err := c.out.ReadString('\n')
	if err != nil || line != "held\n" {
		return fmt.Errorf("the process said %q and ended: %w", line, err)
	}
	return nil
}

// measure lets the window begin, and runs watch until the process answers.
func (c *child) measure(ctx context.Context, watch func()) (Held, error) {
	stop := context.AfterFunc(ctx, func() { _ = c.cmd.Process.Kill() })
	defer stop()
	if _, err := c.in.WriteString("\n"); err != nil {
		return Held{}, err
	}
	watch()
	var found Held
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		return found, fmt.Errorf("the process ended: %w", err)
	}
	return found, json.Unmarshal(line, &found)
}

// watchTTL looks at the keys of a library that does not tell of renewals: what is
// renewed in time has never less to live than the TTL less the interval. The keys
// of relock live longer than its leases, and it tells.
func (b *Bench) watchTTL(ctx context.Context, c *child, h HeldLocks, holding Holding) {
	if h.Rival.Name != rival.Rueidislock().Name {
		return
	}
	least := h.TTL - holding.Every
	step := max(1, h.Locks/500)
	for by := time.Now().Add(h.Window - h.Window/20); time.Now().Before(by); {
		p := b.Server.Admin.Pipeline()
		for i := 0; i < h.Locks; i += step {
			p.PTTL(ctx, "rueidislock:0:"+holding.Prefix+strconv.Itoa(i))
		}
		replies, err := p.Exec(ctx)
		if err != nil {
			return
		}
		for _, r := range replies {
			left := r.(interface{ Val() time.Duration }).Val() //nolint:forcetypeassert // PTTL's replies have it
			c.late = max(c.late, least-left)
			c.sampled++
		}
		if pause(ctx, h.Window/20) != nil {
			return
		}
	}
}
