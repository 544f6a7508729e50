//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/relock-go/relock"
)

// A stage runs one scene: its workers and what they have reported. After the first error all its methods do
// nothing, and err keeps that error. So a scene reads as a sequence of steps.
type stage struct {
	*printer
	tool   *tool
	at     server
	link   *link
	lock   *relock.Lock // of this scene
	err    error
	events chan event // from the workers' readers to the scene

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup // the workers' readers
	bulk   bool           // all workers count at the same time: only some events are printed
	shown  int            // how many more increments are printed
}

// A worker is a process that the demo has started.
type worker struct {
	name    string
	process *os.Process
	orders  io.WriteCloser
	told    []event // not yet awaited

	complaint bytes.Buffer // its standard error, to be read once it has ended
}

func newStage(ctx context.Context, t *tool, at server, l *link, p *printer, name string) *stage {
	s := &stage{printer: p, tool: t, at: at, link: l, lock: l.locks.NewLock(name), events: make(chan event)}
	s.ctx, s.cancel = context.WithTimeoutCause(ctx, sceneLimit, errTooLong)
	return s
}

// close kills the workers that are left, stopped or not, and waits until all have ended.
func (s *stage) close() {
	s.cancel()
	s.wg.Wait()
}

func (s *stage) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// start starts a worker, and waits until it has reached Redis.
func (s *stage) start(name, owner string) *worker {
	w := &worker{name: name}
	if s.err == nil {
		if err := s.spawn(w); err != nil {
			s.fail(err)
		}
	}
	first, _ := json.Marshal(role{URL: s.at.url, Prefix: s.at.prefix, Lock: s.lock.Name(), Owner: owner}) // plain fields
	s.do(w, string(first), isReady)
	return w
}

func (s *stage) spawn(w *worker) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(s.ctx, self, workerCommand)
	cmd.Env, cmd.Stderr = s.tool.env, &w.complaint
	cmd.SysProcAttr = terminal{}.attributes()
	if w.orders, err = cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	w.process = cmd.Process
	s.wg.Go(func() { s.listen(w, cmd, out) })
	return nil
}

// listen passes on what a worker reports, until it has ended.
func (s *stage) listen(w *worker, cmd *exec.Cmd, out io.Reader) {
	hand := func(e event) {
		e.from = w
		select {
		case s.events <- e:
		case <-s.ctx.Done():
		}
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			e = event{At: time.Now(), What: broke, Detail: err.Error()}
		}
		hand(e)
	}
	end := "exit status 0"
	if err := cmd.Wait(); err != nil {
		end = strings.TrimSpace(err.Error() + " " + w.complaint.String())
	}
	hand(event{At: time.Now(), What: gone, Detail: end})
}

// send sends an order and does not wait for its result.
func (s *stage) send(w *worker, order string) {
	if s.err == nil {
		if _, err := io.WriteString(w.orders, order+"\n"); err != nil {
			s.fail(fmt.Errorf("%s: %w", w.name, err))
		}
	}
}

// do sends an order and waits for the event that it leads to.
func (s *stage) do(w *worker, order, what string) event {
	s.send(w, order)
	return s.await(w, what)
}

// await returns the worker's first event of that kind that was not awaited yet. In the meantime it prints all
// other events.
func (s *stage) await(w *worker, what string) event {
	for s.err == nil {
		if i := slices.IndexFunc(w.told, func(e event) bool { return e.What == what }); i >= 0 {
			e := w.told[i]
			w.told = slices.Delete(w.told, i, i+1)
			return e
		}
		if slices.ContainsFunc(w.told, func(e event) bool { return e.What == gone }) {
			s.fail(fmt.Errorf("%s ended before: %s", w.name, what))
			break
		}
		s.next(nil, fmt.Sprintf("%s: %s", w.name, what))
	}
	return event{}
}

// rest lets time pass, so that a reader can follow.
func (s *stage) rest(d time.Duration) {
	over := time.NewTimer(d)
	defer over.Stop()
	for more := true; more && s.err == nil; {
		more = s.next(over.C, "")
	}
}

// next handles one event, unless over comes first.
func (s *stage) next(over <-chan time.Time, what string) bool {
	select {
	case e := <-s.events:
		e.from.told = append(e.from.told, e)
		s.show(e)
		if e.What == broke {
			s.fail(fmt.Errorf("%s: %s", e.from.name, e.Detail))
		}
		return true
	case <-over:
	case <-s.ctx.Done():
		s.fail(fmt.Errorf("waiting for %s: %w", what, context.Cause(s.ctx)))
	}
	return false
}

func (s *stage) show(e event) {
	text := e.What
	switch {
	case e.What == unlocked, s.bulk && (e.What == waits || e.What == counted && s.shown == 0):
		return
	case e.What == counted:
		s.shown--
		text = fmt.Sprintf("%s %d", counted, e.N)
	}
	if e.Token != 0 {
		text = fmt.Sprintf("%-16s token %d", text, e.Token)
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	s.line(e.At, fmt.Sprintf("%s/%d", e.from.name, e.from.process.Pid), text)
}

// signal sends a signal to a worker, and prints that.
func (s *stage) signal(w *worker, sig syscall.Signal, name string) (at time.Time) {
	at = time.Now()
	if s.err == nil {
		s.line(at, "demo", "sends "+name+" to "+w.name)
		if err := w.process.Signal(sig); err != nil {
			s.fail(err)
		}
	}
	return at
}
