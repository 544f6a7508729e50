package rig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/relock-go/relock/test/torture/history"
	"github.com/relock-go/relock/test/torture/nemesis"
	"github.com/relock-go/relock/test/torture/proxy"
	"github.com/relock-go/relock/test/torture/server"
	"github.com/relock-go/relock/test/torture/worker"
)

// pool is the workers of a round.
type pool struct {
	rig *rig
	d   *server.Deployment

	mu    sync.Mutex // guards the following fields, and that a slot's worker is killed once
	slots []*member
	links []*proxy.Link // also of the dead: what they sent may still arrive
}

// member is one worker process.
type member struct {
	n     int
	proc  *server.Process
	link  *proxy.Link
	stdin io.WriteCloser
	said  bytes.Buffer // its report; read it when it has exited
	moans bytes.Buffer
}

func (r *rig) enlist(d *server.Deployment) (*pool, error) {
	p := &pool{rig: r, d: d}
	for range r.Workers {
		m, err := p.hire()
		if err != nil {
			p.dismiss()
			return nil, err
		}
		p.slots = append(p.slots, m)
	}
	return p, nil
}

// hire starts a worker. Caller holds mu, or is the only one.
func (p *pool) hire() (*member, error) {
	link, err := proxy.Listen(p.d.Resolve)
	if err != nil {
		return nil, err
	}
	p.links = append(p.links, link)
	p.rig.worker++
	m := &member{n: p.rig.worker, link: link}
	cfg := worker.Config{
		N: m.n, Seed: p.rig.Seed, Prefix: p.d.Name, Mode: worker.Standalone, Link: link.Addr(),
		Store: p.rig.socket(), Dir: p.rig.Dir, Actors: p.rig.Actors, Clients: 2,
	}
	switch p.d.Form {
	case server.Cluster, server.Skewed:
		cfg.Mode, cfg.Addrs = worker.Cluster, p.d.Addrs()
	case server.Sentinel:
		cfg.Mode, cfg.Addrs = worker.Sentinel, p.d.WatcherAddrs()
	}
	text, err := json.Marshal(cfg)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(p.rig.Bin, "worker")
	cmd.Env = append(os.Environ(), worker.Env+"="+string(text))
	cmd.Stdout, cmd.Stderr = &m.said, &m.moans
	if m.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	m.proc, err = server.Run(cmd)
	return m, err
}

func (p *pool) victim(slot int) nemesis.Victim {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.slots[slot]
	return nemesis.Victim{Number: m.n, Link: m.link, Signal: m.proc.Signal}
}

// replace kills a worker, and starts another in its place. The history says when
// it died: before the signal was sent, as it may have acted until then.
func (p *pool) replace(slot int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.slots[slot]
	p.rig.check(m)
	p.rig.out.Add(history.Event{Worker: -1, What: history.Died, On: fmt.Sprintf("worker %d", m.n)})
	m.proc.Kill()
	next, err := p.hire()
	if err != nil {
		return err
	}
	p.slots[slot] = next
	return nil
}

// check notes a worker that has ended though nobody killed it.
func (r *rig) check(m *member) {
	select {
	case <-m.proc.Exited:
		r.result.Crashed = append(r.result.Crashed, fmt.Sprintf("worker %d: %s", m.n, m.moans.String()))
		r.logf("worker %d ended by itself: %s", m.n, m.moans.String())
		r.out.Add(history.Event{Worker: -1, What: history.Leak, On: fmt.Sprintf("worker %d", m.n), Err: "it ended by itself: " + m.moans.String()})
	default:
	}
}

// departure bounds the peaceful end of a worker.
const departure = 90 * time.Second

// stop ends all workers in peace, and returns their reports when they have gone, which
// it tells.
func (p *pool) stop(gone func()) map[int]worker.Report {
	defer gone()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.slots {
		p.rig.check(m)
		_, _ = io.WriteString(m.stdin, worker.Stop+"\n")
	}
	return p.reports()
}

// ghostly is how late the requests are that the workers send last.
const ghostly = 2 * time.Second

// haunt has some of the last requests arrive when their workers have gone: none
// of them may get a lock any more. The function it returns is called when they have: a
// worker that waits for something else may send the last one long after the others.
func (p *pool) haunt() (over func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []history.Event
	for _, m := range p.slots {
		all = append(all, history.Event{Worker: -1, What: history.Fault, Fault: history.Delay, T: history.Now(), On: fmt.Sprintf("link %d", m.n)})
		m.link.Arm(proxy.Trap{Fate: proxy.Late, N: 12, For: ghostly})
	}
	return func() {
		for _, e := range all {
			e.Until = history.Now() + int64(ghostly)
			p.rig.out.Add(e)
		}
	}
}

// reports waits for the workers to leave. Caller holds mu.
func (p *pool) reports() map[int]worker.Report {
	over := time.NewTimer(departure)
	defer over.Stop()
	reports := map[int]worker.Report{}
	for _, m := range p.slots {
		select {
		case <-m.proc.Exited:
		case <-over.C:
			m.proc.Signal(syscall.SIGQUIT)
			<-m.proc.Exited
		}
		var report worker.Report
		if err := json.Unmarshal(m.said.Bytes(), &report); err != nil {
			report.Panic = "no report: " + m.moans.String()
		}
		reports[m.n] = report
	}
	return reports
}

// dismiss kills what is left, and ends the links.
func (p *pool) dismiss() {
	for _, m := range p.slots {
		m.proc.Kill()
	}
	for _, l := range p.links {
		l.Close()
	}
}
