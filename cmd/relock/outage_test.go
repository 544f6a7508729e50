//go:build unix

package main

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
)

// waitingCommands are the commands that wait for a lock, each as one that then ends by itself.
var waitingCommands = [][]string{{"run", "x", "true"}, {"hold", "x", "-for", "0"}, {"wait", "x"}}

// with puts flags after the name of a command.
func with(command []string, flags ...string) []string {
	return slices.Insert(slices.Clone(command), 1, flags...)
}

// silentServer is a server that accepts connections and never answers.
func (w *world) silentServer() net.Listener {
	w.Helper()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { silent.Close() })
	return silent
}

// Redis is away when the command starts. Fails when the command gives up before -wait is over, or never says why it waits.
func TestAnOutageAtTheStartIsWaitedOut(t *testing.T) {
	w, m := newWorldOf(t)
	m.Close()
	var waiting []*process
	for _, command := range waitingCommands {
		for _, flags := range [][]string{nil, {"-wait", "1h"}, {"-q"}, {"-json"}} {
			waiting = append(waiting, w.start(with(command, flags...)...))
		}
	}
	for _, p := range waiting {
		p.wantComplaint("Redis has not answered for ")
		p.wantComplaint("s: redis at " + strings.TrimPrefix(w.url, "redis://"))
		p.wantComplaint("connection refused")
		if all := p.complain.String(); strings.Count(all, "Redis has not answered for ") > 1 {
			t.Errorf("the first complaint does not say why: %s", all)
		}
	}
	if err := m.Restart(); err != nil {
		t.Fatal(err)
	}
	for _, p := range waiting {
		p.wantStatus(0)
	}
}

// Redis answers at the start, but with an error that ends by itself.
func TestARefusalThatEndsIsWaitedOut(t *testing.T) {
	for _, refusal := range []string{"LOADING Redis is loading the dataset in memory", "MASTERDOWN Link with MASTER is down"} {
		w, m := newWorldOf(t)
		m.SetError(refusal)
		var waiting []*process
		for _, command := range waitingCommands {
			waiting = append(waiting, w.start(command...))
		}
		for _, p := range waiting {
			p.wantComplaint("Redis has not answered for ")
			p.wantComplaint(refusal)
		}
		m.SetError("")
		for _, p := range waiting {
			p.wantStatus(0)
		}
	}
}

// relockAtOnce is relock for a command that must end without waiting.
func (w *world) relockAtOnce(args ...string) (status int, complaint string) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), tooLong)
	defer cancel()
	var out syncBuffer
	status = run(ctx, args, w.env(), strings.NewReader(""), &out, &out)
	if ctx.Err() != nil {
		w.Errorf("%q waits for ever; it said %q", args, out.String())
	}
	return status, out.String()
}

// Waiting mends none of these. Fails when the command waits for ever.
func TestARefusalThatLastsIsNotWaitedOut(t *testing.T) {
	w, m := newWorldOf(t)
	m.RequireAuth("secret")
	for _, w.url = range []string{"redis://:wrong@" + m.Addr(), "redis://" + m.Addr()} {
		for _, command := range waitingCommands {
			if status, complaint := w.relockAtOnce(command...); status != exitUnavailable || !strings.Contains(complaint, "redis at "+m.Addr()) {
				t.Errorf("%q at %s: status %d, complaint %q", command, w.url, status, complaint)
			}
		}
	}
	m.RequireAuth("")
	m.SetError("NOPERM User default has no permissions")
	for _, command := range waitingCommands {
		if status, complaint := w.relockAtOnce(command...); status != exitUnavailable || !strings.Contains(complaint, "NOPERM") {
			t.Errorf("%q: status %d, complaint %q", command, status, complaint)
		}
	}
	m.SetError("")
	w.url = "redis://" + m.Addr() + "/x"
	for _, command := range waitingCommands {
		if status, complaint := w.relockAtOnce(command...); status != exitUsage {
			t.Errorf("%q at %s: status %d, complaint %q", command, w.url, status, complaint)
		}
	}
}

// Fails when a command gives up before D is over, or says that the lock is taken.
func TestAnOutageForAllOfTheWaitExits69(t *testing.T) {
	was := reachable
	reachable = 100 * time.Millisecond // more than one try
	defer func() { reachable = was }()
	w := newWorld(t)
	const wait = 1500 * time.Millisecond
	for _, addr := range []string{"127.0.0.1:1", w.silentServer().Addr().String()} {
		w.url = "redis://" + addr
		for _, command := range waitingCommands {
			began := time.Now()
			status, _, complaint := w.relock(with(command, "-wait", wait.String())...)
			if took := time.Since(began); status != exitUnavailable || took < wait || !strings.Contains(complaint, "redis at "+addr) {
				t.Errorf("%q at %s: status %d after %v, complaint %q, want 69 after %v", command, addr, status, took, complaint, wait)
			}
		}
	}
}

// Fails when a signal does not end the wait for the first answer, or the status does not say which.
func TestASignalEndsTheWaitForTheFirstAnswer(t *testing.T) {
	w := newWorld(t)
	for _, addr := range []string{"127.0.0.1:1", w.silentServer().Addr().String()} {
		w.url = "redis://" + addr
		ended := map[*process]syscall.Signal{}
		for _, command := range waitingCommands {
			for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
				ended[w.start(command...)] = s
			}
		}
		for p, s := range ended {
			p.wantComplaint("Redis has not answered for ")
			p.signal(s)
			p.wantStatus(exitSignal + int(s))
		}
	}
}

// Fails when a signal waits for what go-redis reads, as for a Redis that accepts connections and never answers.
func TestTheEndOfAContextEndsTheFirstQuestion(t *testing.T) {
	was := reachable
	reachable = time.Hour
	defer func() { reachable = was }()
	silent := newWorld(t).silentServer()
	s := &server{url: "redis://" + silent.Addr().String() + "?read_timeout=1h", prefix: "relock"}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := s.connect(ctx)
		ended <- err
	}()
	c, err := silent.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Read(make([]byte, 1)); err != nil { // it asks, and then reads
		t.Fatal(err)
	}
	cancel()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("it is connected, want an error")
		}
	case <-time.After(tooLong):
		t.Fatal("it still reads")
	}
}

// Redis falls silent after it has said that the lock is held. Fails when the outage ends the wait, or is not reported.
func TestAnOutageInTheMiddleDoesNotEndAWait(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		h := rig.MustAcquire(t, x.Lock("x"))
		c, link := x.Linked()
		var said syncBuffer
		w := &freeWait{tool: &tool{out: &said, err: &said, quiet: true}, began: time.Now()}
		ended := make(chan error, 1)
		go func() { ended <- w.await(t.Context(), c.NewLock("x")) }()
		virtual.Sleep(5 * time.Second)
		heal := link.Hole()
		for n, after := range []time.Duration{500 * time.Millisecond, time.Second, 30 * time.Second, 30 * time.Second} {
			virtual.Sleep(after)
			if got := strings.Count(said.String(), "Redis has not answered for "); got != n {
				t.Errorf("after another %v of silence it was said %d times, want %d: %s", after, got, n, said.String())
			}
		}
		rig.Must(t, h.Release())
		heal()
		if err := <-ended; err != nil {
			t.Errorf("%v, want that the lock is free", err)
		}
	})
}

// Redis falls silent for all that is left of the wait.
func TestAnOutageInTheMiddleOfAWaitLastsNoLongerThanTheWait(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		h := rig.MustAcquire(t, x.Lock("x"))
		c, link := x.Linked()
		const wait = 90 * time.Second
		w := &freeWait{tool: &tool{err: new(syncBuffer)}, patience: patience{bounded: true, wait: wait}, began: time.Now()}
		heal := link.Hole()
		err := w.await(t.Context(), c.NewLock("x"))
		if took := time.Since(w.began); !errors.Is(err, relock.ErrUnavailable) || statusOf(err) != exitUnavailable || took < wait || took > wait+hasty {
			t.Errorf("%v after %v, want that Redis did not answer for %v", err, took, wait)
		}
		heal()
		rig.Must(t, h.Release())
	})
}
