package rig

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/relock-go/relock/test/torture/history"
	"github.com/relock-go/relock/test/torture/server"
	"github.com/relock-go/relock/test/torture/worker"
)

// bounds of the inspection.
const (
	lastLease = 800 * time.Millisecond // longer than every TTL
	reacquire = 5 * time.Second        // until every lock is to be had, when all workers have gone
	settling  = 6 * time.Second        // until connections and keys have gone
	labelled  = 10 * time.Minute       // for which a client's label outlives it
)

// inspect looks for what a round has left behind, and notes what it finds.
func (r *rig) inspect(ctx context.Context, d *server.Deployment, e *eye, reports map[int]worker.Report) {
	for n, report := range reports {
		on := fmt.Sprintf("worker %d", n)
		r.swept(on, history.LeftGoroutine, report.Goroutines, report.Stacks)
		for what, is := range map[string]bool{
			report.Panic: report.Panic != "", "Shutdown: " + report.Shutdown: report.Shutdown != "",
			fmt.Sprintf("%d calls did not return", report.Stuck): report.Stuck != 0,
		} {
			if is {
				r.leak(on, what)
			}
		}
	}
	r.ghosts(ctx, e)
	r.acquireAll(ctx, e)
	_ = e.client.Close()
	_ = e.rdb.Close()
	r.swept(d.Name, history.LeftKey, 0, "")
	left := r.poll(func() []string { return leftKeys(ctx, d) })
	r.swept(d.Name, history.LeftKey, len(left), strings.Join(left, ", "))
	left = r.poll(func() []string { return leftConnections(ctx, d) })
	r.swept(d.Name, history.LeftConnection, len(left), strings.Join(left, ", "))
	r.out.Flush()
}

func (r *rig) swept(on, what string, n int, detail string) {
	r.out.Add(history.Event{Worker: -1, What: history.Swept, On: on, Fault: what, By: int64(n), Err: clip(detail)})
}

func (r *rig) leak(on, what string) {
	r.logf("%s: %s", on, clip(what))
	r.out.Add(history.Event{Worker: -1, What: history.Leak, On: on, Err: clip(what)})
}

// clip keeps a line of the history readable.
func clip(s string) string {
	const most = 20 << 10
	return s[:min(len(s), most)]
}

// ghosts looks whether a lock is held, or waited for, though there is nobody:
// when the leases of those that ended with a release unconfirmed are over, and
// for as long as late requests still arrive.
func (r *rig) ghosts(ctx context.Context, e *eye) {
	pause(ctx, lastLease)
	seen := map[string]bool{}
	for begin := time.Now(); time.Since(begin) < ghostly; pause(ctx, 50*time.Millisecond) {
		for i, l := range e.locks {
			info, err := l.Info(ctx)
			if name := e.names[i].Name; err == nil && len(info.Holders)+info.Waiters > 0 && !seen[name] {
				seen[name] = true
				r.leak(name, fmt.Sprintf("with all workers gone: %+v", info))
			}
		}
	}
}

// acquireAll takes and frees every lock once: nothing is in the way of that any
// more, and it sweeps out what the dead have left in a hash.
func (r *rig) acquireAll(ctx context.Context, e *eye) {
	for i, l := range e.locks {
		ctx, cancel := context.WithTimeout(ctx, reacquire)
		err := l.Lock(ctx)
		if err == nil {
			err = l.Unlock()
		}
		cancel()
		if err != nil {
			info, _ := l.Info(context.WithoutCancel(ctx))
			r.leak(e.names[i].Name, fmt.Sprintf("with all workers gone: %v; %+v", err, info))
		}
	}
}

// poll returns what is left at last.
func (r *rig) poll(f func() []string) (left []string) {
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for begin := time.Now(); time.Since(begin) < settling; <-again.C {
		if left = f(); len(left) == 0 {
			return nil
		}
	}
	return left
}

// leftKeys returns what is in Redis beside the bare hash of each lock, and the label of each
// client.
func leftKeys(ctx context.Context, d *server.Deployment) (left []string) {
	for _, node := range d.Primaries(ctx) {
		keys, err := scan(ctx, node.RDB)
		if err != nil {
			return []string{err.Error()}
		}
		for key, ttl := range ttls(ctx, node.RDB, keys) {
			if strings.HasPrefix(key, "relock:label:") && ttl > 0 && ttl <= labelled {
				continue
			}
			if !strings.HasPrefix(key, "relock:h:") || ttl < 0 || ttl > 2*time.Minute {
				left = append(left, fmt.Sprintf("%s (%v)", key, ttl))
				continue
			}
			fields, err := node.RDB.HGetAll(ctx, key).Result()
			if err != nil {
				return []string{err.Error()}
			}
			bare := []string{"kind", "token", "ended"}
			if fields["crowd"] == "0 +" { // for nonces that have ended
				bare = append(bare, "crowd", "unseen")
			}
			for field, value := range fields {
				if !slices.Contains(bare, field) && field[:2] != "e:" && field[:2] != "n:" {
					left = append(left, fmt.Sprintf("%s: %s = %s", key, field, value))
				}
			}
		}
	}
	return left
}

// leftConnections returns the connections to all nodes that are neither the rig's
// nor those of the servers among themselves.
func leftConnections(ctx context.Context, d *server.Deployment) (left []string) {
	for _, node := range d.Nodes {
		for _, kind := range []string{"normal", "pubsub"} {
			list, err := node.RDB.Do(ctx, "CLIENT", "LIST", "TYPE", kind).Text()
			if err != nil {
				return []string{err.Error()}
			}
			for line := range strings.Lines(list) {
				if !server.Own(line) {
					left = append(left, line)
				}
			}
		}
	}
	return left
}
