package relockweb

import (
	"context"
	"sync"
	"time"
)

const (
	// patience bounds how long a request waits for a read. readWithin bounds the read.
	patience   = 800 * time.Millisecond
	readWithin = 10 * time.Second
	// rest is how long no read begins after a read, in multiples of the time for which Redis has worked. restWithin
	// bounds that time for a key of which nothing is known, because its requests only wait for patience.
	rest       = 24
	restWithin = patience / 2
	// earlyRest is what each read that did not wait for the rest takes from the time for such early reads, in multiples
	// as above. They may be mostEarly ahead. So early reads of many keys add less than 1 % of a core to the 4 % of the others.
	earlyRest = 5 * rest
	mostEarly = time.Minute
	// retrySoon and retryLater are added after the first failed read, and after further ones. Silence costs
	// Redis nothing, and an operator must see soon that it answers again.
	retrySoon  = 2 * time.Second
	retryLater = 5 * time.Second
	// mostKept bounds the answers that are kept.
	mostKept = 64
)

// reads are the reads from Redis for all requests. They run one at a time, with rests between them, and only
// if the kept answer is not fresh.
type reads[T any] struct {
	every time.Duration
	read  reader[T]

	mu    sync.Mutex
	kept  map[string]answer[T]
	under chan struct{} // closed when the running read has ended; nil: none is running
	began time.Time     // start of the running read
	ended time.Time     // end of the latest read
	free  time.Time     // no read may begin before, except early ones
	early time.Time     // until then the early reads so far take the time for them
	fails bool          // the latest read failed
}

// A reader reads. worked is how long Redis took for what it answered. ok is false if it did not answer all.
type reader[T any] func(ctx context.Context, key string, last T) (found T, worked time.Duration, ok bool)

// An answer is the result of one read.
type answer[T any] struct {
	found T
	at    time.Time // zero: known to be old
	ok    bool      // false: Redis did not answer all
}

func newReads[T any](every time.Duration, read reader[T]) *reads[T] {
	return &reads[T]{every: every, read: read, kept: make(map[string]answer[T])}
}

// get returns the answer for key, as new as the rests allow. ok is false if there is none yet and the read
// takes longer than patience.
func (r *reads[T]) get(ctx context.Context, key string) (found T, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		last, known, under, pause := r.look(key)
		if under == nil && pause == 0 {
			return last, true
		}
		timer := time.NewTimer(pause) // while a read is running it fires at once, and is ignored
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

// look returns the answer for key, and one of: nothing to wait for, a running read, or a pause. It starts a
// read if one is due.
func (r *reads[T]) look(key string) (found T, known bool, under <-chan struct{}, pause time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	one, known := r.kept[key]
	resting := r.free.Sub(now)
	if !known {
		resting = min(resting, later(r.ended.Add(restWithin), r.early.Add(-mostEarly)).Sub(now))
	}
	switch {
	case known && one.ok && now.Sub(one.at) < r.every, known && !one.at.IsZero() && r.under == nil && resting > 0:
		return one.found, true, nil, 0
	case r.under != nil:
		return one.found, known, r.under, 0
	case resting > 0:
		return one.found, known, nil, resting
	}
	r.under, r.began = make(chan struct{}), now
	go r.run(key, one.found, r.under)
	return one.found, known, r.under, 0
}

// run reads. It belongs to no request, so a request that gives up leaves the answer to the next one. It ends
// with its time limit or with the client.
func (r *reads[T]) run(key string, last T, over chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), readWithin)
	defer cancel()
	found, worked, ok := r.read(ctx, key, last)
	end := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept[key] = answer[T]{found, end, ok}
	r.forget()
	free := end.Add(r.pause(ok, worked))
	if r.began.Before(r.free) { // an early read must not end the rest of the one before
		free = later(free, r.free)
		r.early = later(r.early, end).Add(earlyRest * worked)
	}
	r.ended, r.free = end, free
	r.fails = !ok
	r.under = nil
	close(over)
}

// pause returns how long no read may begin after a read for which Redis has worked that long. It needs mu.
func (r *reads[T]) pause(ok bool, worked time.Duration) time.Duration {
	switch {
	case ok:
		return rest * worked
	case r.fails:
		return rest*worked + retryLater
	}
	return rest*worked + retrySoon
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// running returns for how long Redis has been asked by a read that has not ended, or 0.
func (r *reads[T]) running() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.under == nil {
		return 0
	}
	return time.Since(r.began)
}

// stale reports whether a read at that time, for which Redis has worked that long, is older than the rests explain.
func stale(every time.Duration, at time.Time, worked time.Duration) bool {
	return time.Since(at) > 2*every+rest*worked
}

// forget drops the oldest answer if too many are kept.
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

// expire makes the next request for key wait for a new read, as far as the rests allow.
func (r *reads[T]) expire(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one, known := r.kept[key]; known {
		one.at = time.Time{}
		r.kept[key] = one
	}
}
