// Package browser_test looks at the dashboard with a headless Chromium: `make browser` runs it.
// It is a module of its own, for what drives the browser.
package browser_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/relockweb"
)

// tooLong is when a test is given up.
const tooLong = 2 * time.Minute

// binaries are what a Chromium is called.
var binaries = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"}

// A stage is a Redis with a dashboard, and a browser that looks at it.
type stage struct {
	*testing.T
	ctx   context.Context // of the browser's page
	redis *miniredis.Miniredis
	addr  string // of it
	url   string // of the dashboard

	mu       sync.Mutex
	problems []string // what the browser complains of
}

// newStage is left out where nobody asked for a browser, and fails where there is none.
func newStage(t *testing.T, opts ...relockweb.Option) *stage {
	t.Helper()
	if os.Getenv("RELOCK_BROWSER") != "1" {
		t.Skip("left out: this test needs a Chromium; `make browser` runs it")
	}
	s := &stage{T: t}
	m := miniredis.RunT(t)
	m.ClockTTL(true)
	s.redis, s.addr = m, m.Addr()
	web := httptest.NewServer(relockweb.Handler(s.client("dashboard"), append([]relockweb.Option{relockweb.Refresh(500 * time.Millisecond)}, opts...)...))
	t.Cleanup(web.Close)
	s.url = web.URL
	s.browse()
	return s
}

func (s *stage) browse() {
	s.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium(s.T)),
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-dev-shm-usage", true))
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	s.Cleanup(stop)
	ctx, end := chromedp.NewContext(ctx)
	s.Cleanup(end)
	s.ctx, stop = context.WithTimeout(ctx, tooLong)
	s.Cleanup(stop)
	chromedp.ListenTarget(s.ctx, func(event any) {
		switch e := event.(type) {
		case *page.EventJavascriptDialogOpening:
			s.complain("a dialog: " + e.Message)
			go func() { _ = chromedp.Run(s.ctx, page.HandleJavaScriptDialog(true)) }()
		case *runtime.EventExceptionThrown:
			s.complain("an exception: " + e.ExceptionDetails.Error())
		case *log.EventEntryAdded:
			s.complain(fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
		}
	})
	s.run(log.Enable())
}

func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range binaries {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatalf("there is no Chromium on PATH (%q): on Debian, apt-get install chromium", binaries)
	return ""
}

func (s *stage) complain(of string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = append(s.problems, of)
}

// quiet fails the test if the browser has complained of anything, as it does of what the policy
// of the page forbids.
func (s *stage) quiet() {
	s.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.problems {
		s.Errorf("the browser says: %s", p)
	}
}

func (s *stage) run(actions ...chromedp.Action) {
	s.Helper()
	if err := chromedp.Run(s.ctx, actions...); err != nil {
		s.Fatal(err)
	}
}

// until waits for an expression to be true in the page, or in the one that comes next.
func (s *stage) until(expression string) {
	s.Helper()
	for begin := time.Now(); ; {
		var is bool
		err := chromedp.Run(s.ctx, chromedp.Evaluate(expression, &is))
		if err == nil && is {
			return
		}
		if time.Since(begin) > 20*time.Second {
			var text string
			_ = chromedp.Run(s.ctx, chromedp.Text("body", &text))
			s.Fatalf("%s: %v; the page has\n%s", expression, err, text)
		}
	}
}

// client returns a client that is closed at the end.
func (s *stage) client(label string) *relock.Client {
	s.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: s.addr})
	s.Cleanup(func() { rdb.Close() })
	c, err := relock.New(rdb, relock.Label(label))
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = c.Close() })
	return c
}

func (s *stage) hold(label, name string, opts ...relock.LockOption) *relock.Hold {
	s.Helper()
	h, err := s.client(label).NewLock(name, opts...).Acquire(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return h
}

// queue lets somebody wait until the test ends.
func (s *stage) queue(label, name string, opts ...relock.LockOption) {
	ctx, leave := context.WithCancel(context.Background())
	l, gone := s.client(label).NewLock(name, opts...), make(chan struct{})
	go func() {
		defer close(gone)
		_ = l.Lock(ctx)
	}()
	s.Cleanup(func() { leave(); <-gone })
}

func anybody(*http.Request) bool { return true }
