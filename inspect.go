package relock

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/relock-go/relock/internal/ending"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/wire"
)

// Info is what Redis knows of a lock at one instant, or for many readers as Lock.Info says.
type Info struct {
	Name    string // the lock's
	Kind    string // as which the name is in use, or was within the token keep time; else ""
	Holders []Holder
	Waiters int           // entries in the queue, as Waiter says
	Resting time.Duration // for which the name is still taken, by nobody (AtLeast, Once); else 0
	Permits int           // permits of a semaphore that its holders take together; else 0
}

// A Holder is an owner with live holds.
type Holder struct {
	Owner string
	Read  bool          // holds for reading only: an owner that writes and reads is a writer
	Holds int           // of all its processes
	Token int64         // the grant's first; the holds of one process may have later ones of a block
	TTL   time.Duration // until its lease ends unless it is renewed
	// Label is the label of the client whose lease TTL is. It is "" if Redis does not know it: for a hold that was
	// detached and not yet resumed, or if the label was lost and is not yet stored again.
	Label string
	// Held is how long the owner has held without a gap, by the server's clock: since its
	// grant. Holds that a process has passed on among its own calls count from the first of
	// them. After the server's clock has stepped back it may say less.
	Held time.Duration
	// Weight is how many permits of a semaphore the owner's grant takes; else 0.
	Weight int
}

// A Waiter is an entry in the queue in Redis. The anonymous calls of one process on a plain lock
// share one entry. While their own process holds the lock, they may have none: they wait in a line
// of that process, and neither Waiters nor Info.Waiters counts them. The calls of one named owner
// in one mode, in one process, share an entry too. Calls to which a fair lock was passed on within
// a process stay in the queue until Redis has been told.
type Waiter struct {
	Owner string
	Read  bool
	Age   time.Duration // since it joined the queue
	Label string        // of its client, as a Holder's
}

// inspectTimeout bounds one try of a call that only reads; its caller's ctx
// bounds them all.
const inspectTimeout = 5 * time.Second

// waitersPage is how much of a long queue is read in one script.
const waitersPage = 500

// readersPage is how many sessions are looked at in one script.
const readersPage = 250

// info is Info with the clients' IDs as labels, and when that was by the server's clock,
// in ms.
func readInfo(ctx context.Context, l *Lock) (all Info, now int64, err error) {
	at := map[string]int{}
	for after := int64(0); ; {
		raw, err := ask(ctx, l, func(e *wire.Encoder, keys key.Keys) transport.Call { return e.Info(keys, after, readersPage) })
		if err != nil {
			return Info{}, 0, err
		}
		page, err := wire.DecodeInfo(raw)
		if err != nil {
			return Info{}, 0, lockError(l.Name(), err)
		}
		if after == 0 {
			now = page.Now
			all = firstPage(l.Name(), page)
		}
		for _, h := range page.Holders {
			all.add(holderOf(h), at)
		}
		if page.Next <= after {
			return all, now, nil
		}
		after = page.Next
	}
}

// holdingClients returns the IDs of the clients that hold, of many readers those with the longest leases.
func holdingClients(ctx context.Context, l *Lock) (ids []string, err error) {
	raw, err := ask(ctx, l, func(e *wire.Encoder, keys key.Keys) transport.Call { return e.Info(keys, 0, readersPage) })
	if err != nil {
		return nil, err
	}
	page, err := wire.DecodeInfo(raw)
	if err != nil {
		return nil, lockError(l.Name(), err)
	}
	for _, h := range page.Holders {
		ids = append(ids, h.Client)
	}
	return ids, nil
}

// firstPage is what a page says beside its holders.
func firstPage(name string, page wire.InfoReply) Info {
	return Info{Name: name, Kind: page.Kind, Waiters: page.Waiters, Resting: page.Resting}
}

// holderOf is a holder with the ID of its client as label.
func holderOf(h wire.Holder) Holder {
	return Holder{Owner: h.Owner, Read: h.Read, Holds: h.Holds, Token: h.Token, TTL: h.TTL, Label: h.Client, Held: h.Held, Weight: h.Weight}
}

// clients appends where the IDs of clients stand, for their labels.
func (all *Info) clients(at []*string) []*string {
	for i := range all.Holders {
		at = append(at, &all.Holders[i].Label)
	}
	return at
}

// add adds what a page says of an owner, which may have been on a page before: at is
// where those are. Each page has sessions of their own.
func (all *Info) add(h Holder, at map[string]int) {
	i, known := at[h.Owner]
	if !known || all.Holders[i].Token != h.Token {
		at[h.Owner] = len(all.Holders)
		all.Permits += h.Weight
		all.Holders = append(all.Holders, h)
		return
	}
	one := &all.Holders[i]
	one.Holds += h.Holds
	if h.TTL > one.TTL {
		one.TTL, one.Label = h.TTL, h.Label
	}
}

// appendWaiters adds a page of waiters, with the IDs of their clients as labels.
func appendWaiters(all []Waiter, page []wire.Waiter) []Waiter {
	for _, w := range page {
		all = append(all, Waiter{Owner: w.Owner, Read: w.Read, Age: w.Age, Label: w.Client})
	}
	return all
}

// errWhichHolder is what a Holder without an owner and a token is refused with.
var errWhichHolder = fmt.Errorf("%w: the holder to remove has neither an owner nor a token", ErrInvalidOption)

// forceHolder is ForceUnlockHolder, and returns the grant that it has ended. Of a grant whose
// owner and token are known, it knows what the caller knows of it.
func forceHolder(ctx context.Context, l *Lock, h Holder) (ended Info, err error) {
	ended.Name = l.Name()
	seen := []Holder{h}
	switch {
	case h.Owner == "" && h.Token == 0:
		return ended, lockError(l.Name(), cmp.Or(l.bad(), errWhichHolder))
	case h.Owner == "" || h.Token == 0, wire.Token(wire.Instant(h.Token), h.Owner) != h.Token: // not such an owner's
		there, _, err := readInfo(ctx, l)
		if err != nil {
			return ended, err
		}
		ended.Kind, seen = there.Kind, there.Holders
	}
	for _, one := range seen {
		if !one.is(h) {
			continue
		}
		// The request names the token, also where the caller has named the owner alone: a late
		// copy of it must not end the owner's next grant.
		removed, err := forceOne(ctx, l, one)
		if removed {
			ended.Holders = append(ended.Holders, one)
		}
		if err != nil {
			return ended, err
		}
	}
	return ended, nil
}

// is reports whether h is the holder that the owner and the token of want describe.
func (h Holder) is(want Holder) bool {
	return (want.Owner == "" || h.Owner == want.Owner) && (want.Token == 0 || h.Token == want.Token)
}

// forceUnlock is ForceUnlock, and returns what it has ended, with the clients' IDs as labels.
func forceHolders(ctx context.Context, l *Lock) (ended Info, err error) {
	there, now, err := readInfo(ctx, l)
	if err != nil {
		return Info{}, err
	}
	if there.Resting > 0 {
		there.Holders = []Holder{{Token: now + there.Resting.Milliseconds()}} // nobody, until then
	}
	ended = Info{Name: there.Name, Kind: there.Kind}
	for _, h := range there.Holders {
		one, err := forceOne(ctx, l, h)
		switch {
		case err != nil:
			return ended, err
		case one && there.Resting > 0:
			ended.Resting = there.Resting
		case one:
			ended.Holders = append(ended.Holders, h)
		}
	}
	return ended, nil
}

// force ends one holder's grant. The token keeps a copy of the request from
// removing a later one.
func forceOne(ctx context.Context, l *Lock, h Holder) (removed bool, err error) {
	for after := int64(0); ; {
		raw, unanswered, err := askAgain(ctx, l, func(e *wire.Encoder, keys key.Keys) transport.Call { return e.Force(keys, h.Owner, h.Token, after) })
		if err != nil {
			return false, err
		}
		one, more, next, err := wire.DecodeForce(raw)
		// What a second try finds gone, an unanswered first one may have removed.
		removed = one || removed || unanswered
		switch {
		case err != nil:
			return removed, lockError(l.Name(), err)
		case !more:
			return removed, nil
		}
		after = next
	}
}

// A question makes the call that asks it.
type question func(e *wire.Encoder, keys key.Keys) transport.Call

// ask runs a script that reads.
func ask(ctx context.Context, l *Lock, q question) ([]any, error) {
	raw, _, err := askAgain(ctx, l, q)
	return raw, err
}

// askAgain runs a script that may be sent again: up to three times, or until ctx
// ends. It reports whether a try before the one answered may have run.
func askAgain(ctx context.Context, l *Lock, q question) (raw []any, unanswered bool, err error) {
	err = cmp.Or(l.bad(), unusable(ctx))
	if err == nil && l.c.ctx.Err() != nil {
		err = ErrClosed
	}
	if err != nil {
		return nil, false, lockError(l.Name(), err)
	}
	l.c.leaving.Await(ctx, l.hash, time.Second) // it would show what the client is removing
	call, began := q(l.c.wire, key.Of(l.c.cfg.prefix, l.hash)), l.c.clock.Now()
	tries := 0
	err = transport.Try(ctx, l.c.ctx.Done(), func() (again bool, err error) {
		tries++
		raw, err = l.c.transport.Do(ctx, inspectTimeout, call)
		unanswered = unanswered || err != nil && transport.Classify(err) == transport.Unknown
		return err != nil && tries < 3, err
	})
	switch {
	case err == nil:
		return raw, unanswered, nil
	case transport.Hopeless(err):
		err = &requestError{err}
	case ctx.Err() != nil:
		err = fmt.Errorf("%w; until then: %w", ending.Of(ctx), failed(ctx, err, l.c.clock.Now(), began))
	case l.c.ctx.Err() != nil:
		err = ErrClosed
	default:
		err = &requestError{err}
	}
	return nil, unanswered, lockError(l.Name(), err)
}
