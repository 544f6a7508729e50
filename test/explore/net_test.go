package explore_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/wire"
)

// readTimeout is how long a client of the explorer waits for a reply, like go-redis.
const readTimeout = 3 * time.Second

// A flight is one command of a process, from its sending to the end of its reply.
type flight struct {
	from   *process
	script string
	args   []any
	label  string // says what it is, the same in every run of a schedule
	born   time.Duration
	order  int // in which the flights of one instant are told apart; 0: not yet known

	landed bool  // the server has executed it; reply and err are what it said
	orphan bool  // nobody waits for the reply
	reply  any   // guarded by world.mu, as is what stands above
	err    error // "
	fate   chan error
}

var errDeliver = errors.New("deliver the reply")

// land is where the hook of a process' client parks until the scheduler decides.
func (p *process) land(ctx context.Context, cmd redis.Cmder) error {
	f := p.world.depart(p, cmd)
	if f == nil {
		err := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
		cmd.SetErr(err)
		return err
	}
	late := time.NewTimer(readTimeout)
	defer late.Stop()
	var err error
	select {
	case err = <-f.fate:
	case <-late.C:
		p.world.abandon(f)
		err = &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	}
	if errors.Is(err, errDeliver) {
		if err = f.err; err == nil {
			cmd.(interface{ SetVal(any) }).SetVal(f.reply)
			return nil
		}
	}
	cmd.SetErr(err)
	return err
}

// alone hides which client it is. Of one that it does not know the transport
// cannot say where commands go, and sends each by itself: which of them share a
// pipeline, and so wait for each other, is up to the Go scheduler and would not
// be the same in the next run of a schedule.
type alone struct{ redis.UniversalClient }

// The hooks of a process' client stand in for its connections.

// DialHook leaves dialling, which only the inbox does, as it is.
func (p *process) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook parks a script. The handshakes of the inbox pass.
func (p *process) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !isScript(cmd) {
			return next(ctx, cmd)
		}
		return p.land(ctx, cmd)
	}
}

func isScript(cmd redis.Cmder) bool { return cmd.Name() == "evalsha" || cmd.Name() == "eval" }

// ProcessPipelineHook parks commands one after the other, as a connection carries
// them: others' may come between, and where one fails those behind it do too.
func (p *process) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if !isScript(cmds[0]) {
			return next(ctx, cmds)
		}
		var first, broken error
		for _, cmd := range p.world.sorted(p, cmds) {
			if broken != nil {
				cmd.SetErr(broken)
				continue
			}
			err := p.land(ctx, cmd)
			var answer redis.Error
			if err != nil && !errors.As(err, &answer) {
				broken = err
			}
			if first == nil {
				first = err
			}
		}
		return first
	}
}

// sorted returns commands in an order that does not depend on which goroutine
// came first, as that of releases that are sent again does.
func (w *world) sorted(p *process, cmds []redis.Cmder) []redis.Cmder {
	w.mu.Lock()
	defer w.mu.Unlock()
	labels := make(map[redis.Cmder]string, len(cmds))
	for _, cmd := range cmds {
		f := flight{from: p, args: cmd.Args(), script: scriptIn(cmd.Args())}
		labels[cmd] = w.plain(f.text(), false)
	}
	cmds = slices.Clone(cmds)
	slices.SortStableFunc(cmds, func(a, b redis.Cmder) int { return strings.Compare(labels[a], labels[b]) })
	return cmds
}

// depart notes a command that is on its way, or returns nil where there is none.
func (w *world) depart(p *process, cmd redis.Cmder) *flight {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.dead {
		return nil
	}
	args := cmd.Args()
	f := &flight{from: p, args: slices.Clone(args), fate: make(chan error, 1), born: w.now()}
	f.script = scriptIn(args)
	w.flights = append(w.flights, f)
	w.notice()
	return f
}

// notice wakes a scheduler that lets time pass. It needs w.mu.
func (w *world) notice() {
	select {
	case w.arrived <- struct{}{}:
	default:
	}
}

// abandon leaves a command whose sender waits no longer: it may yet arrive.
func (w *world) abandon(f *flight) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f.landed {
		w.flights = slices.DeleteFunc(w.flights, func(g *flight) bool { return g == f })
		return
	}
	f.orphan = true
}

// execute runs a command at the server. The process does not know yet.
func (w *world) execute(f *flight) {
	before, commands := w.look(), w.srv.Direct().CommandCount()
	var reply any
	var err error
	if sha, ok := f.args[1].(string); f.args[0] == "evalsha" && ok && !w.known[sha] {
		err = noScriptError{}
	} else {
		// Always by its text: the server need not parse that again for each world.
		text := slices.Clone(f.args)
		if s := wire.Scripts()[f.script]; s != nil {
			text[0], text[1] = "eval", s.Source
		}
		cmd := redis.NewCmd(context.Background(), text...)
		_ = w.wire.Process(context.Background(), cmd)
		reply, err = cmd.Val(), cmd.Err()
		var answer redis.Error
		if err != nil && (!errors.As(err, &answer) || strings.Contains(err.Error(), "script")) {
			w.violate("script %s failed: %v", f.script, err)
		}
		if f.args[0] == "eval" {
			w.known[sourceSHA(f.args[1])] = true
		}
	}
	f.landed, f.reply, f.err = true, reply, err
	w.judge(f, before)
	w.judgeCost(f, before, w.srv.Direct().CommandCount()-commands)
	if f.orphan {
		w.forget(f)
	}
}

type noScriptError struct{}

func (noScriptError) Error() string { return "NOSCRIPT No matching script. Please use EVAL." }
func (noScriptError) RedisError()   {}

func (w *world) forget(f *flight) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flights = slices.DeleteFunc(w.flights, func(g *flight) bool { return g == f })
}

// answer ends a flight with what its sender is to see.
func (w *world) answer(f *flight, with error) {
	w.forget(f)
	f.fate <- with
}

// fly returns the flights that the scheduler may act on, in an order that does
// not depend on which goroutine came first.
func (w *world) fly(want func(*flight) bool) (all []*flight) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.name()
	for _, f := range w.flights {
		if (f.orphan || !f.from.frozen) && want(f) {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b *flight) int { return a.order - b.order })
	return all
}

var (
	uuidText  = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	nonceText = regexp.MustCompile(`[A-Za-z0-9_-]{22}`)
)

// name gives flights that have just come their labels and their order. It needs w.mu.
func (w *world) name() {
	var fresh []*flight
	for _, f := range w.flights {
		if f.order == 0 {
			f.label = w.plain(f.text(), false)
			fresh = append(fresh, f)
		}
	}
	slices.SortStableFunc(fresh, func(a, b *flight) int {
		if a.born != b.born {
			return int(a.born - b.born)
		}
		return strings.Compare(a.label, b.label)
	})
	for _, f := range fresh {
		w.order++
		f.order = w.order
		f.label = w.plain(f.text(), true)
	}
}

func (f *flight) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "p%d %s", f.from.index, f.script)
	for _, a := range f.args[2:] {
		fmt.Fprintf(&b, " %v", a)
	}
	return b.String()
}

// plain replaces what is random in a text. Nonces are numbered as they are met.
func (w *world) plain(text string, number bool) string {
	text = uuidText.ReplaceAllStringFunc(text, func(id string) string {
		if w.ids[id] == "" {
			if !number {
				return "?"
			}
			w.ids[id] = "u" + strconv.Itoa(len(w.ids))
		}
		return w.ids[id]
	})
	return nonceText.ReplaceAllStringFunc(text, func(id string) string {
		if w.ids[id] == "" {
			if !number {
				return "?"
			}
			w.ids[id] = "n" + strconv.Itoa(len(w.ids))
		}
		return w.ids[id]
	})
}
