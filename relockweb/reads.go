package relockweb

import (
	"context"
	"sync"
	"time"
)

const (
	// patience is how long a request waits for a read, readWithin how long one may take.
	patience   = 800 * time.Millisecond
	readWithin = 10 * time.Second
	// rest is how many times as long as a read took no other begins; restWithin is the most
	// for what is not known at all, so that who asks is patient enough.
	rest       = 24
	restWithin = patience / 2
	// retrySoon and retryLater are how long after the first read that failed, and after the next ones, another begins:
	// what Redis did not answer costs it nothing, and an operator must see that it answers again.
	retrySoon  = 2 * time.Second
	retryLater = 5 * time.Second
	// mostKept is how many answers are kept.
	mostKept = 64
)

// reads are what is read of Redis for all requests: one at a time, none while what it would
// find is known, and with rests between them.
type reads[T any] struct {
	every time.Duration
	read  func(ctx context.Context, key string, last T) (found T, ok bool) // not ok: it failed

	mu    sync.Mutex
	kept  map[string]answer[T]
	under chan struct{} // closed when the read under way has ended; nil: there is none
	ended time.Time     // the latest read
	free  time.Time     // no read begins before
	fails bool          // so did the latest read
}

// An answer is what one read has found.
type answer[T any] struct {
	found T
	at    time.Time // zero: it is known to be old
}

func newReads[T any](every time.Duration, read func(ctx context.Context, key string, last T) (T, bool)) *reads[T] {
	return &reads[T]{every: every, read: read, kept: make(map[string]answer[T])}
}

// get returns what is known of key, as new as the rests allow. It is not ok where nothing is
// known yet and the read takes longer than requests are patient.
func (r *reads[T]) get(ctx context.Context, key string) (found T, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		last, known, under, pause := r.look(key)
		if under == nil && pause == 0 {
			return last, true
		}
		timer := time.NewTimer(pause) // fires at once where a read is under way, and nobody looks
		due := timer.C
		if under != nil {
			due = nil
		}
		select {
		case <-under:
		case <-due:
		case <-ctx.Done():
			timer.Stop()
			return last, known
		}
		timer.Stop()
	}
}

// look returns what is known of key, and either nothing to wait for, or a read under way, or
// a pause. It begins a read where one is due.
func (r *reads[T]) look(key string) (found T, known bool, under <-chan struct{}, pause time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	one, known := r.kept[key]
	resting := r.free.Sub(now)
	if !known {
		resting = min(resting, r.ended.Add(restWithin).Sub(now))
	}
	switch {
	case known && now.Sub(one.at) < r.every, known && !one.at.IsZero() && r.under == nil && resting > 0:
		return one.found, true, nil, 0
	case r.under != nil:
		return one.found, known, r.under, 0
	case resting > 0:
		return one.found, known, nil, resting
	}
	r.under = make(chan struct{})
	go r.run(key, one.found, r.under)
	return one.found, known, r.under, 0
}

// run reads. It belongs to no request: who gives up leaves the answer to the next. It ends with
// its time limit, or with the client.
func (r *reads[T]) run(key string, last T, over chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), readWithin)
	defer cancel()
	began := time.Now()
	found, ok := r.read(ctx, key, last)
	end := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept[key] = answer[T]{found, end}
	r.forget()
	r.ended, r.free = end, end.Add(r.pause(ok, end.Sub(began)))
	r.fails = !ok
	r.under = nil
	close(over)
}

// pause is how long after a read that took so long no other begins. It needs mu.
func (r *reads[T]) pause(ok bool, took time.Duration) time.Duration {
	switch {
	case ok:
		return rest * took
	case r.fails:
		return retryLater
	}
	return retrySoon
}

// stale reports whether what was read at that time, in so many ms, is older than the rests explain.
func stale(every time.Duration, at time.Time, tookMS int64) bool {
	return time.Since(at) > 2*every+rest*time.Duration(tookMS)*time.Millisecond
}

// forget drops the oldest answer where too many are kept.
func (r *reads[T]) forget() {
	if len(r.kept) <= mostKept {
		return
	}
	oldest, at := "", time.Time{}
	for key, one := range r.kept {
		if at.IsZero() || one.at.Before(at) {
			oldest, at = key, one.at
		}
	}
	delete(r.kept, oldest)
}

// expire has key read again before it is told anew, as far as the rests allow.
func (r *reads[T]) expire(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one, known := r.kept[key]; known {
		one.at = time.Time{}
		r.kept[key] = one
	}
}
