//go:build unix

package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
)

// An outage is the time for which Redis has not answered a command that waits for a lock.
type outage struct {
	*tool
	name string // of the lock

	mu    sync.Mutex
	since time.Time    // the latest answer, or the beginning
	err   error        // the latest failure since then, or nil
	why   func() error // finds out why Redis does not answer; nil if nothing can
}

// watch reports that Redis does not answer, until stop is called. It says so after a second, and then each half minute.
func (t *tool) watch(ctx context.Context, name string) (o *outage, stop func()) {
	o = &outage{tool: t, name: name, since: time.Now()}
	ctx, cancel := context.WithCancel(ctx)
	var saying sync.WaitGroup
	saying.Go(func() {
		next := time.NewTimer(silence)
		defer next.Stop()
		for {
			select {
			case <-next.C:
				next.Reset(o.say())
			case <-ctx.Done():
				return
			}
		}
	})
	return o, func() {
		cancel()
		saying.Wait()
	}
}

// say reports the outage if there is one, and returns when to look again.
func (o *outage) say() (again time.Duration) {
	o.mu.Lock()
	silent, err, why := time.Since(o.since), o.err, o.why
	o.mu.Unlock()
	if silent < silence {
		return silence - silent
	}
	if err == nil && why != nil {
		err = why() // go-redis tries again for longer than silence before it returns an error
	}
	o.sayUnanswered(o.name, silent, err)
	return noticeEvery
}

// sayUnanswered reports for how long Redis has not answered the wait for a lock, and why if that is known. It does so
// with -q too: such a wait may be endless, and has no exit status yet.
func (t *tool) sayUnanswered(name string, silent time.Duration, err error) {
	why := ""
	if err != nil {
		why = ": " + trimName(err)
	}
	t.warn("waiting for %q: Redis has not answered for %v%s", name, silent.Round(time.Second), why)
}

// heard takes the result of a request.
func (o *outage) heard(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err = err; err == nil {
		o.since = time.Now()
	}
}

// ask sets how to find out why Redis does not answer.
func (o *outage) ask(why func() error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.why = why
}

// reach is connect for a command that waits for a lock. A Redis that does not answer gets as long as the patience
// lasts. So does one that refuses, if the library would wait too.
func (s *server) reach(ctx context.Context, p *patience, began time.Time, o *outage, opts ...relock.Option) (*link, error) {
	l, err := s.open(opts...)
	if err != nil {
		return nil, err
	}
	o.ask(func() error { return s.unanswered(ctx, l, context.DeadlineExceeded) })
	again := time.NewTicker(freeEvery)
	defer again.Stop()
	for {
		err = s.greet(ctx, l, p.next(began))
		if o.heard(err); err == nil {
			return l, nil
		}
		if p.over(began) || l.refuses(ctx, o.name, err) {
			l.close()
			return nil, err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			l.close()
			return nil, err
		}
	}
}

// refuses reports whether Redis has answered with an error that lasts. The library tells such errors from an outage.
func (l *link) refuses(ctx context.Context, name string, answer error) bool {
	if _, answered := errors.AsType[redis.Error](answer); !answered {
		return false
	}
	asked, cancel := context.WithTimeout(ctx, hasty)
	defer cancel()
	_, err := l.locks.NewLock(name).Info(asked)
	return err != nil && asked.Err() == nil && !errors.Is(err, relock.ErrUnavailable)
}
