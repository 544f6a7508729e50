package rig

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/test/torture/history"
	"github.com/relock-go/relock/test/torture/server"
	"github.com/relock-go/relock/test/torture/worker"
)

// eye looks at the locks past every proxy.
type eye struct {
	d      *server.Deployment
	idle   *server.Redis // that nobody uses
	rdb    redis.UniversalClient
	client *relock.Client
	locks  []*relock.Lock
	names  []worker.Lock
}

func open(d *server.Deployment, idle *server.Redis) (*eye, error) {
	e := &eye{d: d, idle: idle, rdb: d.Client()}
	var err error
	if e.client, err = relock.New(e.rdb, relock.TokenKeep(time.Minute)); err != nil {
		return nil, err
	}
	for _, l := range worker.Locks() {
		l.Name = d.Name + "/" + l.Name
		e.names = append(e.names, l)
		e.locks = append(e.locks, e.handle(l))
	}
	return e, nil
}

// handle is on the exclusive side of a lock, or on all of it.
func (e *eye) handle(l worker.Lock) *relock.Lock {
	opts := []relock.LockOption{relock.TTL(l.TTL)}
	switch l.Kind {
	case "fair":
		return e.client.NewLock(l.Name, append(opts, relock.Fair())...)
	case "rw":
		return e.client.NewRWLock(l.Name, opts...).WLocker()
	case "fair rw":
		return e.client.NewRWLock(l.Name, append(opts, relock.Fair())...).WLocker()
	case "semaphore": // all of its permits: the last one to have it sees that none is missing
		return e.client.NewSemaphore(l.Name, l.Permits, append(opts, relock.Weight(l.Permits))...)
	}
	return e.client.NewLock(l.Name, opts...)
}

func (e *eye) close() {
	_ = e.client.Close()
	_ = e.rdb.Close()
}

// watch looks for free locks that somebody waits for, and for keys without a
// time to live, until the function it returns is called.
func (e *eye) watch(out *history.Writer) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		look, end := e.probe(out)
		every(ctx, 200*time.Millisecond, look)
		end()
	})
	running.Go(func() { every(ctx, 100*time.Millisecond, e.immortals(out)) })
	watchServer := func(on string, r *server.Redis) {
		ping, end := pings(out, on, r)
		running.Go(func() { every(ctx, history.StallsAfter/4, ping); end() })
	}
	for _, r := range e.d.Nodes {
		watchServer(e.d.Name, r)
		running.Go(func() { every(ctx, history.StallsAfter, scripts(out, e.d.Name, r)) })
	}
	watchServer(Control, e.idle)
	return func() { cancel(); running.Wait() }
}

func every(ctx context.Context, d time.Duration, f func(ctx context.Context)) {
	again := time.NewTicker(d)
	defer again.Stop()
	for {
		select {
		case <-again.C:
			f(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// idle is a lock that was seen free although somebody waited.
type idle struct {
	since, until int64
}

// probe returns a function that looks at every lock once. Seen free and waited
// for twice in a row without another holder in between, a lock may have been
// granted and freed meanwhile: the checker, which sees the grants, judges.
func (e *eye) probe(out *history.Writer) (look func(ctx context.Context), end func()) {
	spans, tenures := make([]idle, len(e.locks)), make([]tenure, len(e.locks))
	look = func(ctx context.Context) {
		for i, l := range e.locks {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			before := history.Now()
			info, err := l.Info(ctx)
			cancel()
			now := history.Now()
			if err == nil {
				tenures[i].seen(out, l.Name(), info.Holders, before, now)
			}
			s := &spans[i]
			free := err == nil && len(info.Holders) == 0 && info.Waiters > 0
			switch {
			case free && s.since == 0:
				s.since, s.until = now, now
			case free:
				s.until = before
			case s.since != 0:
				out.Add(history.Event{T: s.since, Worker: -1, What: history.Free, Lock: l.Name(), Until: max(s.since, s.until)})
				*s = idle{}
			}
		}
	}
	return look, func() {
		for i, l := range e.locks {
			tenures[i].seen(out, l.Name(), nil, 0, 0)
		}
	}
}

// A tenure is who a lock's holder is, and since when it was seen.
type tenure struct {
	holder       relock.Holder
	since, until int64
}

// tenured is how long one holder must have had a lock for that to be noted.
const tenured = time.Second

// seen notes who was the holder, when it is somebody else now.
func (t *tenure) seen(out *history.Writer, name string, holders []relock.Holder, before, now int64) {
	for _, h := range holders {
		if h.Token == t.holder.Token && h.Owner == t.holder.Owner {
			t.until = before
			return
		}
	}
	if t.until-t.since > int64(tenured) {
		out.Add(history.Event{
			T: t.since, Worker: -1, What: history.Kept, Lock: name, Owner: t.holder.Owner, Token: t.holder.Token, Until: t.until,
		})
	}
	*t = tenure{}
	if len(holders) > 0 {
		*t = tenure{holders[0], now, now}
	}
}

// immortals returns a function that looks for keys that would stay for ever.
func (e *eye) immortals(out *history.Writer) func(ctx context.Context) {
	return func(ctx context.Context) {
		for _, r := range e.d.Nodes {
			ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
			keys, err := scan(ctx, r.RDB)
			if err == nil {
				for key, ttl := range ttls(ctx, r.RDB, keys) {
					if ttl == -1 {
						out.Add(history.Event{Worker: -1, What: history.Leak, On: e.d.Name, Err: "key without a time to live: " + key})
					}
				}
			}
			cancel()
		}
	}
}

func scan(ctx context.Context, rdb *redis.Client) (keys []string, err error) {
	all := rdb.Scan(ctx, 0, "*", 1000).Iterator()
	for all.Next(ctx) {
		keys = append(keys, all.Val())
	}
	return keys, all.Err()
}

// ttls returns what is left of each key's life; -1 for those that have no end.
func ttls(ctx context.Context, rdb *redis.Client, keys []string) map[string]time.Duration {
	all := map[string]time.Duration{}
	replies := map[string]*redis.DurationCmd{}
	_, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, key := range keys {
			replies[key] = p.PTTL(ctx, key)
		}
		return nil
	})
	if err != nil {
		return nil
	}
	for key, reply := range replies {
		all[key] = reply.Val()
	}
	return all
}
