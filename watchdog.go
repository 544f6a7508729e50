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

// MaxHold ends renewal d after the hold was acquired, so that a holder that hangs gives way. Its hold is lost when the
// last lease ends, at most a TTL after d. That is so even if the owner has other holds: then the lock stays with the
// owner. A nested call that may hang needs its own MaxHold. By default there is no limit. d is from 1 ms to 10 years.
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
// kept gets it after two round trips instead of one. If that message is lost, the call gets the lock when idle is over.
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
// Holds of named owners and holds with MaxHold are not kept. The first grant of a name is not kept either, nor is a
// grant less than 130 us after the one before it. A grant is kept for 10,000 holds at most. For other processes,
// Holder.Sticky says that the lock may be kept.
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
	maxTogether = 128 // sessions renewed by one command, which keeps the server busy for a few 100 us
	minTogether = 8   // if there are fewer sessions to renew, each gets a command of its own
	maxPipeline = 128 // commands of one pipeline
	maxPolled   = 64  // waiters of one lock whose heartbeats go out in one command
)

// A watchdog keeps alive what its client has in Redis. It renews the leases of holds every third of their TTL. It sends
// the heartbeats of waiters, so that they keep their places. It notices when the trust in a hold has run out. The
// schedule's one goroutine only sorts what is due. Requests to Redis run on goroutines of their own.
type watchdog struct {
	*renewal.Schedule
	c *Client
}

// start makes the schedule, whose goroutine starts with the first task.
func (w *watchdog) start(c *Client) {
	w.c = c
	w.Schedule = renewal.New(c.clock, w.runDue)
}

// runDue sends what the due tasks need. It runs on the schedule's goroutine, so it must not block.
func (w *watchdog) runDue(due []*renewal.Task) {
	c := w.c
	r := w.newRound()
	var losses []func()
	for _, t := range due {
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
	c.labels.Keep(0, c.clock.Now()) // a client that only holds makes no calls that would store its label again
	if len(losses) > 0 {
		c.tellApart(losses...) // all on one goroutine: in an outage there may be many
	}
}

// A round is the work that is due at one time, grouped by what can be sent together.
type round struct {
	w        *watchdog
	renewals map[room.Renewal][]*room.Session // sessions to renew
	polls    map[*keeper][]room.Request       // heartbeats of waiters
}

func (w *watchdog) newRound() round {
	return round{w, make(map[room.Renewal][]*room.Session), make(map[*keeper][]room.Request)}
}

// add adds the heartbeat or renewal that an acquisition needs. losses tell the hook and the log: the caller runs them.
func (r *round) add(a *acquisition) (losses []func()) {
	k := a.keeper
	at := k.begin()
	switch {
	case a.Over:
	case a.Waits():
		at.Server = k.serverNow()
		if q, due := a.Entry.Beat(&at); due {
			r.polls[k] = append(r.polls[k], q)
		}
	default:
		if renewal, due := a.Session.Due(&at); due {
			renewal.Together = renewal.Together && k.c.transport.OneServer() && !k.c.oneKeyEach.Load()
			r.renewals[renewal] = append(r.renewals[renewal], a.Session)
		}
	}
	return k.endUntold(&at)
}

// send sends everything that was added, each batch on a goroutine of its own.
func (r *round) send() {
	w := r.w
	for renewal, all := range r.renewals {
		if renewal.Together && len(all) < minTogether { // too few for one command: they join those with a command each
			delete(r.renewals, renewal)
			renewal.Together = false
			r.renewals[renewal] = append(r.renewals[renewal], all...)
		}
	}
	for renewal, all := range r.renewals {
		most := maxPipeline
		if renewal.Together {
			most = maxTogether
		}
		for batch := range slices.Chunk(all, most) {
			w.c.tracker.Go(func(ctx context.Context) { runAll(w.renew(ctx, renewal, batch)) }) // the hooks come last
		}
	}
	for k, waiters := range r.polls {
		w.c.tracker.Go(func(ctx context.Context) { w.poll(ctx, k, waiters) })
	}
}

// renew renews those of the sessions that are still held. The caller must call hooks last in its round: they may block.
func (w *watchdog) renew(ctx context.Context, renewal room.Renewal, all []*room.Session) (hooks []func()) {
	switch batch := w.statements(renewal, all); {
	case len(batch) == 0:
		return nil
	case renewal.Together:
		return w.renewTogether(ctx, renewal, batch)
	default:
		return w.renewEach(ctx, renewal, batch)
	}
}

// statements makes the statements that renew those of the sessions that are still held. The caller sends them at once.
func (w *watchdog) statements(renewal room.Renewal, all []*room.Session) []room.Statement {
	batch := make([]room.Statement, 0, len(all))
	sent := w.c.clock.Now() // trust will count from this instant, so it must be before the sending
	for _, s := range all {
		k := acquired(s.Acquisition).keeper
		k.mu.Lock()
		if st, held := s.Renew(renewal, sent); held {
			batch = append(batch, st)
		}
		k.mu.Unlock()
	}
	return batch
}

// renewTogether renews many sessions with one command. Those that Redis says it could not renew get a command each. So
// do all if the command did not run. A server that refuses the command may keep its keys in several places, and never
// gets one for many sessions again.
func (w *watchdog) renewTogether(ctx context.Context, renewal room.Renewal, batch []room.Statement) (hooks []func()) {
	all := make([]wire.Renewal, len(batch))
	for i, st := range batch {
		all[i] = wire.Renewal{Session: acquired(st.Session.Acquisition).session(), Op: st.Said.Op, Writes: st.Said.Writes, Reads: st.Said.Reads}
	}
	call := w.c.wire.Renew(renewal.Lease, all)
	call.Apart = true       // if the connection that calls share has died unnoticed, all leases would be lost with it
	var alone []int         // indexes in batch of the sessions that need a command of their own
	var waiting map[int]int // how many wait for each session, by its index in batch
	raw, err := w.c.transport.Do(ctx, renewal.Within, call)
	if err == nil {
		var now int64
		if now, alone, waiting, err = wire.DecodeRenew(raw, renewal.Lease, len(batch)); err == nil {
			for _, st := range batch {
				keeperOf(st).noteServerClock(now)
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
		alone = make([]int, len(batch))
		for i := range alone {
			alone[i] = i
		}
	}
	hooks = w.renewed(batch, alone, waiting)
	again := make([]*room.Session, len(alone))
	for i, of := range alone {
		again[i] = batch[of].Session
	}
	renewal.Together = false
	return append(hooks, w.renew(ctx, renewal, again)...)
}

// renewEach renews sessions with a command each, sent together. All sessions of a batch allow equally long for the
// reply, so none waits for another's replicas. A renewal that fails is tried again until its trust ends, and does not
// delay the others.
func (w *watchdog) renewEach(ctx context.Context, renewal room.Renewal, batch []room.Statement) (hooks []func()) {
	calls := make([]transport.Call, len(batch))
	for i := range batch {
		calls[i] = acquired(batch[i].Session.Acquisition).statementCall(&batch[i])
	}
	var again []*room.Session
	for i, result := range w.c.doAll(ctx, renewal.Within, renewal.Need, calls) {
		st, err := batch[i], result.Err
		if err == nil {
			var more bool
			more, err = acquired(st.Session.Acquisition).stated(&st, result.Reply, result.Acks)
			if more { // others hold the lock too, so the statement must name the queue
				again = append(again, st.Session)
				continue
			}
		}
		if err != nil {
			hooks = append(hooks, w.unrenewed(batch[i:i+1], err)...)
			continue
		}
		hooks = append(hooks, newestHook(w.c.cfg.hooks.Renewed, st, nil))
	}
	return append(hooks, w.renew(ctx, renewal, again)...)
}

// renewed records the renewal of all sessions except those whose indexes are in except, which is sorted.
func (w *watchdog) renewed(batch []room.Statement, except []int, waiting map[int]int) (hooks []func()) {
	for i, st := range batch {
		if len(except) > 0 && except[0] == i {
			except = except[1:]
			continue
		}
		k := keeperOf(st)
		at := k.begin()
		extended := st.Renewed(waiting[i], &at)
		k.end(&at)
		if extended {
			hooks = append(hooks, newestHook(w.c.cfg.hooks.Renewed, st, nil))
		}
	}
	return hooks
}

// unrenewed schedules another try for one session, or for sessions whose shared command went unanswered, if they still
// hold. The latter stay together: a server too slow for one command must not be sent one for each session.
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

// rare reports whether to log the nth failure in a row: the 1st, 2nd, 4th, 8th and so on. A line for each try of each
// lock would say no more about an outage.
func rare(n int) bool { return n > 0 && n&(n-1) == 0 }

func keeperOf(st room.Statement) *keeper { return acquired(st.Session.Acquisition).keeper }

// newestHook returns a function that calls hook for the session's newest hold, if any: a kept grant (Sticky) has none.
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

// poll sends the heartbeats of one lock's waiters, which extend the leases of their entries. Each waiter learns whether
// it holds now. If not, it learns until when the holder's lease lasts, unless it waits on a condition.
func (w *watchdog) poll(ctx context.Context, k *keeper, waiters []room.Request) {
	k.mu.Lock()
	// In the order of their places: if Redis has lost its data, the first that asks gets the lock.
	slices.SortFunc(waiters, func(a, b room.Request) int { return cmp.Compare(a.Place, b.Place) })
	k.mu.Unlock()
	for batch := range slices.Chunk(waiters, maxPolled) {
		w.pollBatch(ctx, k, batch)
	}
}

// pollBatch sends the heartbeats of some waiters in one command, and tells the room the answers.
func (w *watchdog) pollBatch(ctx context.Context, k *keeper, waiters []room.Request) {
	c := w.c
	call, timeout, block := w.pollCall(k, waiters)
	raw, err := c.transport.Do(ctx, timeout, call)
	var now int64
	var answers []room.Answer
	if err == nil {
		now, answers, err = wire.DecodeAcquire(raw, len(waiters), block, waiters[0].Terms.TTL)
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
	k.noteServerClock(now)
	if slices.ContainsFunc(answers, func(a room.Answer) bool { return a.Code == room.Queued || a.Code == room.Awaits }) {
		c.listeners.Expect(k.listener, waiters[0].Sent)
	}
	for i, q := range waiters {
		at := k.begin()
		wasted := q.BeatAnswered(answers[i], &at)
		k.end(&at)
		if wasted == manyWasted {
			c.logWasted(q.Terms.TTL, k)
		}
	}
	if answers[0].More {
		c.settle(k.keys())
	}
}

// missed tells the room that the heartbeat of a waiter has failed. It returns how many have failed in a row.
func (w *watchdog) missed(k *keeper, q room.Request, err error) (fails int) {
	at := k.begin()
	defer k.end(&at)
	return q.Missed(failure(err), transport.Hopeless(err), &at)
}

// pollCall makes one call for the heartbeats of the waiters. timeout is the shortest of theirs. block is how many
// tokens the first waiter asks for: the answer to a single request leaves the block out.
func (w *watchdog) pollCall(k *keeper, waiters []room.Request) (call transport.Call, timeout time.Duration, block int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	requests := make([]wire.Request, len(waiters))
	timeout, notAfter := trust.Attempt(waiters[0].Terms.TTL), waiters[0].NotAfter
	for i, q := range waiters {
		requests[i] = wireRequest(q, q.Place)
		timeout = min(timeout, trust.Attempt(q.Terms.TTL))
		// One not-after serves all requests: the earliest, so that none counts for longer than its own says. They differ if
		// the estimate of the server's clock has moved in between.
		notAfter = min(notAfter, q.NotAfter)
	}
	call = w.c.wire.Acquire(k.keys(), k.kind, notAfter, w.c.listeners.Echo(k.listener, true), requests...)
	call.Usual = nil // usual.lua does nothing for a request that waits
	return call, timeout, requests[0].Block
}
