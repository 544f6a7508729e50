//go:build unix

package main

import (
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// get asks the page for something as a browser does that believes it is at host.
func (w *world) get(address, host string) (status int, page string) {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), http.MethodGet, address, nil)
	if err != nil {
		w.Fatal(err)
	}
	if host != "" {
		r.Host = host
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		w.Fatal(err)
	}
	return answer.StatusCode, string(b)
}

// address is where it says that the page is.
func (p *process) address() string {
	p.w.Helper()
	select {
	case line := <-p.lines:
		if _, at, said := strings.Cut(line, ": http://"); said {
			return "http://" + at
		}
		p.w.Fatalf("it says %q, and not where the page is; complaints: %s", line, p.complain.String())
	case <-time.After(tooLong):
		p.w.Fatal("it does not say where the page is")
	}
	return ""
}

func TestServeShowsTheLocksUntilItIsTerminated(t *testing.T) {
	w := newWorld(t)
	h := w.hold("nightly report")
	defer func() { _ = h.Release() }()
	served := w.start("serve", "-listen", "127.0.0.1:0", "-host", "Locks.Example")
	address := served.address()
	if status, page := w.get(address, ""); status != 200 || !strings.Contains(page, "nightly report") || strings.Contains(page, "force") {
		t.Errorf("the page: status %d, %s", status, page)
	}
	if status, page := w.get(address+"locks.json", "locks.example:8080"); status != 200 || !strings.Contains(page, `"nightly report"`) {
		t.Errorf("JSON: status %d, %s", status, page)
	}
	if status, _ := w.get(address+"force?name=x", ""); status != 404 {
		t.Errorf("force is offered: status %d", status)
	}
	taken := strings.TrimSuffix(strings.TrimPrefix(address, "http://"), "/")
	if status, _, complaint := w.relock("serve", "-listen", taken); status != exitUnavailable || !strings.Contains(complaint, "-listen") {
		t.Errorf("a second one at %s: status %d, complaint %q, want what to do", taken, status, complaint)
	}
	// A name that another site had lead here.
	if status, page := w.get(address, "evil.example"); status != 421 || strings.Contains(page, "nightly") {
		t.Errorf("another host: status %d, %s", status, page)
	}
	served.signal(syscall.SIGTERM)
	served.wantStatus(0)
}

func TestServeLetsForceBeAllowed(t *testing.T) {
	w := newWorld(t)
	h := w.hold("x")
	defer func() { _ = h.Release() }()
	served := w.start("serve", "-listen", "127.0.0.1:0", "-allow-force", "-match", "x*")
	address := served.address()
	if status, page := w.get(address+"force?name=x", ""); status != 200 || !strings.Contains(page, "I am sure") {
		t.Errorf("force: status %d, %s", status, page)
	}
	if status, _ := w.get(address+"force?name=y", ""); status != 404 {
		t.Errorf("a lock that does not match: status %d", status)
	}
	served.signal(syscall.SIGINT)
	served.wantStatus(0)
}

// The signal comes when relock has connected to a Redis that says nothing.
func TestSignalBeforeTheFirstAnswerIsNoFailure(t *testing.T) {
	w := newWorld(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	w.url = "redis://" + silent.Addr().String()
	ended := map[*process]int{}
	for want, args := range map[int][][]string{0: {{"serve", "-listen", "127.0.0.1:0"}, {"top"}}, exitSignal + int(syscall.SIGTERM): {{"wait", "x"}, {"run", "x", "true"}}} {
		for _, verb := range args {
			p := w.start(verb...)
			c, err := silent.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			p.signal(syscall.SIGTERM)
			ended[p] = want
		}
	}
	for p, want := range ended {
		p.wantStatus(want)
	}
}
