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

// Info is what Redis knows of a lock at one instant, or at several if it has very many holders: see Lock.Info. It may
// be out of date when it is read, so it is for people and not for decisions.
type Info struct {
	// Name is the lock's name.
	Name string
	// Kind is the kind of lock that has the name, or had it last: "plain", "fair", "rw", "fair rw" or "semaphore". It
	// is "" if Redis stores nothing for the name, for example because nobody used the name for TokenKeep. Package
	// redisson has other kinds.
	Kind string
	// Holders has one entry for each owner that holds. It is empty if the lock is free or rests.
	Holders []Holder
	// Waiters is how many entries the queue in Redis has. Several calls of a process may share one: see Waiter.
	Waiters int
	// CondWaiters is how many sleep in Cond.Wait until somebody signals their condition. They are not among Waiters.
	CondWaiters int
	// Resting is how much longer the name stays taken although nobody holds it (AtLeast, Once). It is 0 if the name
	// does not rest.
	Resting time.Duration
	// Permits is how many permits of a semaphore are in use; 0 for other kinds.
	Permits int
}

// A Holder is an owner that has a lock in Redis, as Lock.Info read it. It may have no hold in a process: see Detached
// and Sticky. Election.Leader returns one too. From package redisson it has fewer fields: see Info there.
type Holder struct {
	// Owner is the owner's name, as Hold.Owner returns it: a given one, or a generated one that begins with "~".
	Owner string
	// Read reports that the owner holds a read/write lock for reading only. An owner that writes and reads is a writer.
	Read bool
	// Holds is how many holds of the lock the owner has, in all processes. It includes re-entries, except those that
	// LocalReentry answered.
	Holds int
	// Token is the fencing token of the owner's grant. If a process has passed the grant on to another of its calls, that
	// call's token is larger.
	Token int64
	// TTL is how long the owner's lease still lasts if nobody renews it. Of several leases it is the longest.
	TTL time.Duration
	// Label is the label of the client that has the lease of TTL (see the option Label). It is "" for a hold that was
	// detached and not yet resumed. It is also "" if Redis does not know it, as after a loss of data.
	Label string
	// Held is how long the owner has held without a gap, since its grant, by the server's clock. Holds that a process has
	// passed on among its own calls count from the first of them. If that clock has stepped back, Held may be too short.
	Held time.Duration
	// Weight is how many permits of a semaphore the owner's grant uses; 0 for other kinds of lock.
	Weight int
	// Detached reports that the lease in TTL belongs to a ticket, which Detach made and nobody has resumed yet. A named
	// owner may have holds in a process at the same time, with a shorter lease.
	Detached bool
	// Sticky reports that the client may keep the grant between its holds (see the option Sticky). Only that client knows
	// whether one of its calls holds now. It gives the grant back when somebody waits.
	Sticky bool
}

// A Waiter is an entry in the queue in Redis. The anonymous calls of one process on a plain lock share one entry. They
// may have none while a call of that process holds the lock. Then neither Waiters nor Info.Waiters counts them. The
// calls of one named owner in one mode, in one process, share an entry too. A call that gets a fair lock from its own
// process keeps its entry until Redis is told.
type Waiter struct {
	// Owner is the name of the owner that waits: a given one, or a generated one that begins with "~".
	Owner string
	// Read reports that it waits to hold a read/write lock for reading.
	Read bool
	// Age is how long the entry has been in the queue, by the server's clock.
	Age time.Duration
	// Label is the label of the client that waits. Without the option Label it is the host's name and the process' ID,
	// such as web-1:4711. It is "" only if Redis does not know it.
	Label string
}

// inspectTimeout bounds one try of a call that only reads. The caller's ctx bounds all tries together.
const inspectTimeout = 5 * time.Second

// waitersPage is how many waiters one script reads.
const waitersPage = 500

// readersPage is how many sessions one script reads.
const readersPage = 250

// readInfo reads an Info whose labels are still clients' IDs. page is its first page, or nil if that must be read too.
// now is the server's time of the first page, in ms.
func readInfo(ctx context.Context, l *Lock, page *wire.InfoReply) (all Info, now int64, err error) {
	at := map[string]int{}
	for after := int64(0); ; after, page = page.Next, nil {
		if page == nil {
			raw, err := ask(ctx, l, func(e *wire.Encoder, keys key.Keys) transport.Call { return e.Info(keys, after, readersPage) })
			if err != nil {
				return Info{}, 0, err
			}
			read, err := wire.DecodeInfo(raw)
			if err != nil {
				return Info{}, 0, lockError(l.Name(), err)
			}
			page = &read
		}
		if after == 0 {
			now = page.Now
			all = Info{Name: l.Name(), Kind: page.Kind, Waiters: page.Waiters, CondWaiters: page.Awaits, Resting: page.Resting}
		}
		for _, h := range page.Holders {
			all.add(holderOf(h), at)
		}
		if page.Next <= after {
			return all, now, nil
		}
	}
}

// labelledInfo is readInfo, but replaces the clients' IDs by their labels.
func labelledInfo(ctx context.Context, l *Lock) (all Info, now int64, err error) {
	if all, now, err = readInfo(ctx, l, nil); err == nil {
		l.c.labels.Replace(ctx, all.labels(nil))
	}
	return all, now, err
}

// holderOf returns a holder with its client's ID as label.
func holderOf(h wire.Holder) Holder {
	return Holder{Owner: h.Owner, Read: h.Read, Holds: h.Holds, Token: h.Token, TTL: h.TTL, Label: h.Client, Held: h.Held, Weight: h.Weight, Detached: h.Client == wire.NoClient, Sticky: h.Sticky}
}

// labels appends pointers to the holders' labels, which are still clients' IDs: Book.Replace replaces them.
func (all *Info) labels(at []*string) []*string {
	for i := range all.Holders {
		at = append(at, &all.Holders[i].Label)
	}
	return at
}

// add adds a holder from a page. The sessions of one owner's grant may be on several pages: add makes them one holder.
// at maps each owner to its latest index in Holders.
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
		one.TTL, one.Label, one.Detached = h.TTL, h.Label, h.Detached
	}
}

// appendWaiters appends a page of waiters, with their clients' IDs as labels.
func appendWaiters(all []Waiter, page []wire.Waiter) []Waiter {
	for _, w := range page {
		all = append(all, Waiter{Owner: w.Owner, Read: w.Read, Age: w.Age, Label: w.Client})
	}
	return all
}

// forceHolder is ForceUnlockHolder. If the caller gave an owner and a token of that owner, nothing is read.
func forceHolder(ctx context.Context, l *Lock, h Holder) (ended bool, err error) {
	seen := []Holder{h}
	switch {
	case h.Owner == "" && h.Token == 0:
		return false, lockError(l.Name(), cmp.Or(l.bad(), fmt.Errorf("%w: the holder to remove has neither an owner nor a token", ErrInvalidOption)))
	case h.Owner == "" || h.Token == 0, wire.Token(wire.Instant(h.Token), h.Owner) != h.Token:
		// Redis ignores a token's last digits, which come from the owner's name. So they are compared here.
		there, _, err := readInfo(ctx, l, nil)
		if err != nil {
			return false, err
		}
		seen = there.Holders
	}
	for _, one := range seen {
		if h.Owner != "" && one.Owner != h.Owner || h.Token != 0 && one.Token != h.Token {
			continue
		}
		// The request always names the token, even if the caller named only the owner. Otherwise a late copy
		// of the request could end the owner's next grant.
		removed, err := forceOne(ctx, l, one)
		ended = ended || removed
		if err != nil {
			return ended, err
		}
	}
	return ended, nil
}

// forceHolders is ForceUnlock, but returns what it has ended, or may have by an unanswered try, for the command and
// relockweb. The holder at which an error stopped it is left out. Each Label is still a client's ID: see label.Book.
func forceHolders(ctx context.Context, l *Lock) (ended Info, err error) {
	there, now, err := readInfo(ctx, l, nil)
	if err != nil {
		return Info{}, err
	}
	if there.Resting > 0 {
		// A rest has no owner and no token: the script takes its end, by the server's clock, in place of a token.
		there.Holders = []Holder{{Token: now + there.Resting.Milliseconds()}}
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

// forceOne ends one holder's grant. The request names the token, so a late copy of it cannot end a later grant.
func forceOne(ctx context.Context, l *Lock, h Holder) (removed bool, err error) {
	for after := int64(0); ; {
		raw, unanswered, err := askAgain(ctx, l, func(e *wire.Encoder, keys key.Keys) transport.Call { return e.Force(keys, h.Owner, h.Token, after) })
		if err != nil {
			return false, err
		}
		one, more, next, err := wire.DecodeForce(raw)
		// If a first try was unanswered and a second one finds nothing, the first one may have removed the grant.
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

// A question builds a command that may be repeated, such as one that only reads.
type question func(e *wire.Encoder, keys key.Keys) transport.Call

// ask is askAgain for a script that only reads: it does not matter whether a try that went unanswered has run.
func ask(ctx context.Context, l *Lock, q question) ([]any, error) {
	raw, _, err := askAgain(ctx, l, q)
	return raw, err
}

// askAgain tries a script that may be repeated, up to three times. unanswered: one try had no answer, and may have run.
func askAgain(ctx context.Context, l *Lock, q question) (raw []any, unanswered bool, err error) {
	if err = cmp.Or(l.bad(), unusable(ctx)); err != nil {
		return nil, false, lockError(l.Name(), err)
	}
	call := q(l.c.wire, key.Of(l.c.cfg.prefix, l.hash))
	err = tries(ctx, l.c, func() (err error) {
		l.c.leaving.Await(ctx, l.hash, time.Second) // otherwise a hold whose release is in progress would still be shown
		raw, err = l.c.transport.Do(ctx, inspectTimeout, call)
		unanswered = unanswered || err != nil && transport.Classify(err) == transport.Unknown
		return err
	})
	if err != nil {
		return nil, unanswered, lockError(l.Name(), err)
	}
	return raw, unanswered, nil
}

// tries makes a request that may be repeated, up to three times. It stops when ctx ends or the client is closed.
func tries(ctx context.Context, c *Client, try func() error) error {
	if err := over(ctx, c); err != nil {
		return err
	}
	n, began := 0, c.clock.Now()
	err := transport.Try(ctx, c.ctx.Done(), func() (again bool, err error) {
		n++
		err = try()
		return err != nil && n < 3, err
	})
	switch {
	case err == nil:
		return nil
	case transport.Hopeless(err):
		return &requestError{err: err}
	case ctx.Err() != nil:
		return fmt.Errorf("%w; until then: %w", ending.Of(ctx), failed(ctx, err, c.clock.Now(), began))
	case c.ctx.Err() != nil:
		return ErrClosed
	}
	return &requestError{err, c.clock.Now().Sub(began)}
}

// over returns why a call must stop asking Redis, or nil.
func over(ctx context.Context, c *Client) error {
	switch {
	case ctx.Err() != nil:
		return ending.Of(ctx)
	case c.ctx.Err() != nil:
		return ErrClosed
	}
	return nil
}
