package relock

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/relock-go/relock/internal/listener"
	"github.com/relock-go/relock/internal/renewal"
	"github.com/relock-go/relock/internal/replay"
	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/trust"
	"github.com/relock-go/relock/internal/wire"
)

// NoWatchdog switches renewal off: a hold is lost after its TTL unless it was released before. That is so even if its
// owner has other holds: they keep the lock, but this hold is lost.
func NoWatchdog() LockOption {
	return lockOption(func(t *terms) error {
		t.Fixed = true
		return nil
	})
}

// MaxHold ends renewal d after the hold was acquired, so that a holder that hangs but lives gives way. Its hold is lost
// when the last lease ends, at most a TTL after d. That is so even if the owner has other holds: then the lock stays
// with the owner. A nested call that may hang needs one too. By default there is no limit. d is from 1 ms to 10 years.
func MaxHold(d time.Duration) LockOption {
	return lockOption(func(t *terms) error {
		t.MaxHold = d
		return between("MaxHold", d, time.Millisecond, 10*365*24*time.Hour)
	})
}

// Sticky lets the client keep the grant after the last hold has ended, for at most idle. Until then its next call with
// the same options gets the lock without a command, and with a larger token. Sticky is for names that one process locks
// again and again, such as one lock for each entity behind sticky routing.
//
// The grant goes back as soon as the client hears that somebody waits. So a call of another client that finds the lock
// kept has it after two round trips instead of one. If that message is lost, the call has the lock when idle is over.
// If the client uses the lock all the time, it hears of the waiter at its next renewal, within a third of the TTL. A
// TryLock of another client with a wait of zero does not count as waiting: to it, a kept lock is taken. With Fair, a
// call of the client may overtake a waiter of which the client has not heard yet.
//
// A kept grant is not renewed. If the process dies, others wait for the rest of the lease, as after the death of a
// holder. A call that comes after idle asks Redis, so a pause of the process does no harm. If ForceUnlock or a failover
// ends the grant, the client learns that by a message or at the next renewal. Until then Lock and Unlock succeed as if
// the lock were held: only the token protects. A call of a named owner of the client, or with other options, gives the
// grant back first, and so do Shutdown and Close. While the grant is kept, a call for another kind gets ErrKind.
//
// Holds of named owners and holds with MaxHold are not kept. Nor is the first grant of a name, nor one less than 130 us
// after the grant before it. A grant is kept for 10,000 holds at most. For other processes, Holder.Sticky says that the
// lock may be kept.
//
// idle is from 1 ms to a third of the TTL. Sticky is for locks of NewLock, Fair or not. With NoWatchdog or AtLeast, for
// other kinds of lock, elections, quorums and Once, and in Defaults, it is ErrInvalidOption.
func Sticky(idle time.Duration) LockOption {
	return lockOption(func(t *terms) error {
		t.Sticky = idle
		return between("Sticky", idle, time.Millisecond, maxTTL)
	})
}

const (
	maxTogether = 128 // sessions that one command renews; the server does nothing else for a few 100 us
	minTogether = 8   // fewer sessions than that are renewed by a command each
	maxPipeline = 128 // commands that go out together
	maxPolled   = 64  // waiters of one lock that one command asks for
)

// A watchdog keeps what its client has in Redis. It renews the leases of holds every third of their TTL. It sends the
// heartbeats of waiters, so that their places stay. It notices trust that has run out. The schedule's one goroutine
// only sorts what is due. What waits for Redis runs on goroutines of its own.
type watchdog struct {
	*renewal.Schedule
	c *Client
}

// start makes the schedule, whose goroutine starts with the first task.
func (w *watchdog) start(c *Client) {
	w.c = c
	w.Schedule = renewal.New(c.clock, w.runDue)
}

// runDue looks at everything that is due, and sends what that needs.
func (w *watchdog) runDue(due []*renewal.Task) {
	c := w.c
	r := round{w: w, now: c.clock.Now()}
	var losses []func()
	for i, t := range due {
		if i%maxPipeline == 0 {
			r.now = c.clock.Now() // trust counts from it, and many tasks take their time
		}
		switch of := t.Of.(type) {
		case *acquisition:
			losses = append(losses, r.add(of)...)
		case *listener.Listener:
			c.listeners.Check(of)
		default:
			if t == &c.replayTask {
				c.registry.journal.Due()
			}
		}
	}
	r.send()
	c.labels.Keep(0, r.now) // a client that only holds needs its label too
	if len(losses) > 0 {
		c.tellApart(losses...) // all on one goroutine: in an outage they may be many
	}
}

// A round is what is due at one time, sorted by what goes out together.
type round struct {
	w          *watchdog
	now        instant                           // the latest look at the clock: nothing is sent before it
	together   map[room.Renewal][]renewing       // by one command for many sessions
	statements map[room.Renewal][]room.Statement // by a command for each
	polls      map[*keeper][]room.Request        // of waiters
}

// A renewing is one session to be renewed, and an instant before that is sent.
type renewing struct {
	a    *acquisition
	sent instant
}

// add takes up one acquisition. The caller tells the hook and the log of the losses.
func (r *round) add(a *acquisition) (losses []func()) {
	k := a.keeper
	at := k.begin()
	at.Now = r.now
	switch {
	case a.Over:
	case a.Waits():
		at.Server = k.serverNow()
		if q, due := a.Entry.Beat(&at); due {
			if r.polls == nil {
				r.polls = make(map[*keeper][]room.Request)
			}
			r.polls[k] = append(r.polls[k], q)
		}
	default:
		if renewal, due := a.Session.Due(&at); due {
			r.renew(renewal, a)
		}
	}
	return k.endUntold(&at)
}

// renew adds a session that is due. It needs the keeper's mu.
func (r *round) renew(renewal room.Renewal, a *acquisition) {
	if !renewal.Plain || !r.w.c.transport.OneServer() || r.w.c.oneKeyEach.Load() {
		r.state(renewal, a.Session, r.now)
		return
	}
	if r.together == nil {
		r.together = make(map[room.Renewal][]renewing)
	}
	r.together[renewal] = append(r.together[renewal], renewing{a, r.now})
}

// state adds a session, if it is still held, to those that have a command each. It needs the keeper's mu.
func (r *round) state(renewal room.Renewal, s *room.Session, sent instant) {
	st, held := s.Renew(renewal, sent)
	if !held {
		return
	}
	if r.statements == nil {
		r.statements = make(map[room.Renewal][]room.Statement)
	}
	renewal.Plain = false // it shares a batch with others of its kind
	r.statements[renewal] = append(r.statements[renewal], st)
}

// restate is state for a caller without the keeper's mu.
func (r *round) restate(renewal room.Renewal, st room.Statement) {
	k := keeperOf(st)
	k.mu.Lock()
	defer k.mu.Unlock()
	r.state(renewal, st.Session, r.now)
}

// stateFew gives a command each to sessions that are too few to share one.
func (r *round) stateFew() {
	for renewal, all := range r.together {
		if len(all) >= minTogether {
			continue
		}
		for _, one := range all {
			one.a.keeper.mu.Lock()
			r.state(renewal, one.a.Session, one.sent)
			one.a.keeper.mu.Unlock()
		}
		delete(r.together, renewal)
	}
}

// send sends everything that was added.
func (r *round) send() {
	w := r.w
	r.stateFew()
	for renewal, all := range r.together {
		for batch := range slices.Chunk(all, maxTogether) {
			w.c.tracker.Go(func(ctx context.Context) { runAll(w.renewTogether(ctx, renewal, batch)) })
		}
	}
	for renewal, all := range r.statements {
		for batch := range slices.Chunk(all, maxPipeline) {
			w.c.tracker.Go(func(ctx context.Context) { runAll(w.renewEach(ctx, renewal, batch)) })
		}
	}
	for k, waiters := range r.polls {
		w.c.tracker.Go(func(ctx context.Context) { w.poll(ctx, k, waiters) })
	}
}

// renewTogether renews many sessions by one command. Redis answers which of them are not as usual: those get a command
// each, and so do all if the command did not run. A server that refuses the command may keep its keys in several
// places, and is not sent another one.
func (w *watchdog) renewTogether(ctx context.Context, renewal room.Renewal, all []renewing) (hooks []func()) {
	call, batch := w.renewCall(renewal, all)
	if len(batch) == 0 {
		return nil
	}
	var left []int          // the sessions that need a command of their own, by their index in batch
	var waiting map[int]int // how many wait for each, by the same
	raw, err := w.c.transport.Do(ctx, renewal.Within, call)
	if err == nil {
		var now int64
		if now, left, waiting, err = wire.DecodeRenew(raw, renewal.Lease, len(batch)); err == nil {
			for _, st := range batch {
				keeperOf(st).sample(now)
			}
		}
	}
	if err != nil {
		switch transport.Classify(err) {
		case transport.Unknown:
			return w.unrenewed(batch, err)
		case transport.Refused:
			w.c.oneKeyEach.Store(true)
		}
		left = make([]int, len(batch))
		for i := range left {
			left[i] = i
		}
	}
	hooks = w.renewed(batch, left, waiting)
	rest := round{w: w, now: w.c.clock.Now()}
	for _, i := range left {
		rest.restate(renewal, batch[i])
	}
	renewal.Plain = false
	for part := range slices.Chunk(rest.statements[renewal], maxPipeline) {
		hooks = append(hooks, w.renewEach(ctx, renewal, part)...)
	}
	return hooks
}

// renewCall builds one call that renews all sessions of the batch that are still held. It returns the call and their
// statements.
func (w *watchdog) renewCall(renewal room.Renewal, batch []renewing) (transport.Call, []room.Statement) {
	all := make([]wire.Renewal, 0, len(batch))
	held := make([]room.Statement, 0, len(batch))
	for _, one := range batch {
		one.a.keeper.mu.Lock()
		st, ok := one.a.Session.Renew(renewal, one.sent)
		one.a.keeper.mu.Unlock()
		if ok {
			held = append(held, st)
			all = append(all, wire.Renewal{Session: one.a.session(), Op: st.Said.Op, Writes: st.Said.Writes, Reads: st.Said.Reads})
		}
	}
	call := w.c.wire.Renew(renewal.Lease, all)
	call.Apart = true // or one broken connection would take all leases with it
	return call, held
}

// renewEach renews sessions by a command each, all sent together. They are alike in how long the reply may take, so
// no lock waits for the replicas of another. A renewal that fails is tried again until the trust ends, and holds up
// no other. The caller runs what it returns when nothing else of its round is left to do, because a hook may block.
func (w *watchdog) renewEach(ctx context.Context, renewal room.Renewal, batch []room.Statement) (hooks []func()) {
	calls := make([]transport.Call, len(batch))
	for i := range batch {
		calls[i] = acquired(batch[i].Session.Acquisition).statementCall(&batch[i])
	}
	rest := round{w: w, now: w.c.clock.Now()}
	for i, result := range w.c.doAll(ctx, renewal.Within, renewal.Need, calls) {
		st, err := batch[i], result.Err
		if err == nil {
			var more bool
			more, err = acquired(st.Session.Acquisition).stated(&st, result.Reply, result.Acks)
			if more { // it has turned out to be one of several sessions of its owner
				rest.restate(renewal, st)
				continue
			}
		}
		if err != nil {
			hooks = append(hooks, w.unrenewed(batch[i:i+1], err)...)
			continue
		}
		hooks = append(hooks, newestHook(w.c.cfg.hooks.Renewed, st, nil))
	}
	if again := rest.statements[renewal]; len(again) > 0 {
		hooks = append(hooks, w.renewEach(ctx, renewal, again)...)
	}
	return hooks
}

// renewed notes that all sessions were renewed except those left (their indexes, in order), and how many wait for each.
func (w *watchdog) renewed(batch []room.Statement, left []int, waiting map[int]int) (hooks []func()) {
	now := w.c.clock.Now()
	for i, st := range batch {
		if len(left) > 0 && left[0] == i {
			left = left[1:]
			continue
		}
		k := keeperOf(st)
		at := k.begin()
		at.Now = now
		extended := st.Renewed(waiting[i], &at)
		k.end(&at)
		if extended {
			hooks = append(hooks, newestHook(w.c.cfg.hooks.Renewed, st, nil))
		}
	}
	return hooks
}

// unrenewed schedules another try for a session, or for sessions whose common command was not answered, unless they do
// not hold any more. Those stay together: otherwise a server that is too slow for one command would be sent one for each
// of them.
func (w *watchdog) unrenewed(batch []room.Statement, err error) (hooks []func()) {
	var short error
	if errors.Is(err, ErrReplicas) {
		short = err
	}
	var soon instant
	told := false
	for _, st := range batch {
		k := keeperOf(st)
		at := k.begin()
		fails := st.Unrenewed(short, &soon, &at)
		if k.end(&at); fails > 0 {
			hooks = append(hooks, newestHook(w.c.cfg.hooks.RenewalFailed, st, err))
			told = told || rare(fails)
		}
	}
	if told {
		which := []any{slog.Int("locks", len(batch))}
		if len(batch) == 1 {
			which = []any{slog.String("lock", keeperOf(batch[0]).name()), slog.String("owner", acquired(batch[0].Session.Acquisition).owner())}
		}
		w.c.cfg.log.Warn("renewal failed, trying again", append(which, slog.Any("err", err))...)
	}
	return hooks
}

// rare reports whether a failure is logged that is the nth in a row: the first, and then ever fewer. A log that has a line
// for each try of each lock says no more of an outage.
func rare(n int) bool { return n > 0 && n&(n-1) == 0 }

func keeperOf(st room.Statement) *keeper { return acquired(st.Session.Acquisition).keeper }

// newestHook returns what calls a hook with the newest hold of a session. A kept grant (Sticky) has none: no hook then.
func newestHook(hook func(Event), st room.Statement, err error) func() {
	return func() {
		if hook == nil {
			return
		}
		k := keeperOf(st)
		k.mu.Lock()
		h := st.Session.Newest()
		k.mu.Unlock()
		if h != nil {
			hook(h.Of.(*Hold).event(err))
		}
	}
}

// poll sends the heartbeats of the waiters of one lock. That extends the leases of their entries. Each hears whether it
// holds, or until when the holder's lease lasts, unless it waits on a condition.
func (w *watchdog) poll(ctx context.Context, k *keeper, waiters []room.Request) {
	k.mu.Lock()
	// In the order of their places: if Redis has lost its data, the first that asks gets the lock.
	slices.SortFunc(waiters, func(a, b room.Request) int { return cmp.Compare(a.Place, b.Place) })
	k.mu.Unlock()
	for batch := range slices.Chunk(waiters, maxPolled) {
		w.pollBatch(ctx, k, batch)
	}
}

// pollBatch sends the heartbeats of some waiters by one command.
func (w *watchdog) pollBatch(ctx context.Context, k *keeper, waiters []room.Request) {
	c := w.c
	call, timeout, block := w.pollCall(k, waiters)
	raw, err := c.transport.Do(ctx, timeout, call)
	var reply wire.AcquireReply
	if err == nil {
		reply, err = wire.DecodeAcquire(raw, len(waiters), block, waiters[0].Terms.TTL)
	}
	if err != nil {
		told := false
		for _, q := range waiters {
			told = rare(w.missed(k, q, err)) || told
		}
		if told {
			c.cfg.log.Warn("heartbeat of waiters failed, trying again", slog.String("lock", k.name()), slog.Int("waiters", len(waiters)), slog.Any("err", err))
		}
		return
	}
	k.sample(reply.Now)
	if slices.ContainsFunc(reply.Answers, func(a room.Answer) bool { return a.Code == room.Queued || a.Code == room.Awaits }) {
		c.listeners.Expect(k.listener, waiters[0].Sent)
	}
	for i, q := range waiters {
		at := k.begin()
		wasted := q.BeatAnswered(reply.Answers[i], &at)
		k.end(&at)
		if wasted == manyWasted {
			c.logWasted(q.Terms.TTL, k)
		}
	}
	if reply.More {
		c.settle(k.keys())
	}
}

// missed tells the room that the heartbeat of a waiter has failed.
func (w *watchdog) missed(k *keeper, q room.Request, err error) (fails int) {
	a := acquired(q.Acquisition)
	at := k.begin()
	ended, fails := q.Missed(failure(err), transport.Hopeless(err), &at)
	var n replay.Release
	if ended {
		n = a.note() // its place stays in Redis: a grant that comes for it is handed back
	}
	k.end(&at)
	if ended {
		w.c.registry.forget(a, &n, false)
	}
	return fails
}

// pollCall makes one call for the waiters. It has the shortest timeout of theirs. block is how many tokens the first of
// them asks for: the answer to a single request leaves that out.
func (w *watchdog) pollCall(k *keeper, waiters []room.Request) (call transport.Call, timeout time.Duration, block int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	requests := make([]wire.Request, len(waiters))
	timeout, notAfter := trust.Attempt(waiters[0].Terms.TTL), waiters[0].NotAfter
	for i, q := range waiters {
		requests[i] = wireRequest(q, q.Place)
		timeout = min(timeout, trust.Attempt(q.Terms.TTL))
		// The estimate of the server's clock may have moved while the requests were numbered. No copy may
		// count for longer than its own request says.
		notAfter = min(notAfter, q.NotAfter)
	}
	call = w.c.wire.Acquire(k.keys(), k.kind, notAfter, w.c.listeners.Echo(k.listener, true), requests...)
	call.Usual = nil // it waits
	return call, timeout, requests[0].Block
}
