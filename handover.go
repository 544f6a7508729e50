package relock

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/relock-go/relock/internal/ending"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/trust"
	"github.com/relock-go/relock/internal/wire"
)

// A Ticket stands for a hold that was detached: Resume makes it a hold again. It is text of
// letters, digits, "-" and "_", and may be stored or sent. A ticket is a secret: everybody who
// reads it can take the hold.
type Ticket string

// LogValue hides the ticket in a log where it is an attribute of its own. A struct or a text that
// contains a Ticket shows it, in a log too.
func (Ticket) LogValue() slog.Value { return slog.StringValue("a ticket") }

// Detach ends the hold in this process without releasing it, and returns a ticket for it. Resume of
// the ticket, in this process or another, holds under the same token. Nobody can get the lock in
// between. Until then nobody renews the hold, and it ends after keep, which is from 1 ms to 24 h.
//
// The hold has ended as after Release: Err and Unlock return ErrNotHeld, its contexts end, and Lost
// stays open. ctx may be one of these contexts. A Do whose function detached its hold returns nil
// for it. If Redis does not answer before ctx ends, or refuses, Detach returns ErrUnconfirmed: the
// hold has ended too, and the client releases it. For a lost hold Detach returns ErrLost.
//
// A call that is refused leaves the hold as it was. Detach refuses a keep out of range and a ctx
// that has ended. It returns ErrTooManyHolds if the hold shares its grant with others of its owner
// in this client.
func (h *Hold) Detach(ctx context.Context, keep time.Duration) (Ticket, error) {
	if h.unmade() {
		return "", fmt.Errorf("relock: %w", errUnmadeHold)
	}
	t, err := h.handOver(ctx, keep)
	if err != nil {
		return "", lockError(h.lock.Name(), err)
	}
	return t, nil
}

func (h *Hold) handOver(ctx context.Context, keep time.Duration) (Ticket, error) {
	if err := cmp.Or(between("a ticket's time", keep, time.Millisecond, maxTTL), unusable(ctx)); err != nil {
		return "", err
	}
	k := h.keeper()
	t := h.ticket()
	at := k.begin()
	now := at.Now
	h.hold.Session.Check(&at)
	err := h.state()
	if err == nil && !h.hold.Detach(&at) {
		err = fmt.Errorf("%w: its owner has others here, which would be handed over with it; unlock them first", ErrTooManyHolds)
	}
	if err != nil {
		if !h.hold.Released() && h.hold.Lost() { // it ends as by Release
			h.paid()
			h.hold.End(&at)
			defer h.unlist()
		}
		k.end(&at)
		return "", err
	}
	t.Read = h.hold.Read // which a Downgrade may have changed until now
	d := h.detaching(t, keep)
	cancel := h.cancelAll(ErrNotHeld)
	k.end(&at)
	request, release := h.outlasting(ctx)
	defer release()
	runAll(cancel)
	h.unlist()
	err = d.send(request)
	h.releasedHook(err, now)
	if err != nil {
		return "", err
	}
	k.mu.Lock()
	h.extra().detached = true
	k.mu.Unlock()
	return t.text(), nil
}

// handedOver reports whether a ticket has the hold, so that its Do has nothing to release.
func (h *Hold) handedOver() bool {
	k := h.keeper()
	k.mu.Lock()
	defer k.mu.Unlock()
	return h.extras != nil && h.detached
}

// outlasting returns a context for the request that hands h over. A context of h ends with h, but the request must go
// on. It ends at ctx's deadline, with the parent of h's context, or if somebody cancels ctx.
func (h *Hold) outlasting(ctx context.Context) (context.Context, context.CancelFunc) {
	var own *holdContext
	for c, ok := ctx.Value(holdKey{}).(*holdContext); ok; c, ok = c.parent.Value(holdKey{}).(*holdContext) {
		if c.hold == h {
			own = c // the outermost
		}
	}
	if own == nil {
		return ctx, func() {}
	}
	request, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	end := func() { cancel(context.Cause(own.parent)) }
	free := context.AfterFunc(own.parent, end)
	drop := context.AfterFunc(ctx, func() {
		if cause := context.Cause(ctx); !ending.Is(cause, ErrNotHeld) {
			cancel(cause)
		}
	})
	bounded, stop := request, context.CancelFunc(func() {})
	if until, ok := ctx.Deadline(); ok {
		bounded, stop = context.WithDeadline(request, until)
	}
	return bounded, func() { free(); drop(); stop(); cancel(context.Canceled) }
}

// A detaching hands what an acquisition holds to a ticket.
type detaching struct {
	*releasing // what is done instead where that fails
	ticket     string
	keep       time.Duration
	call       transport.Call
}

// detaching needs the keeper's mu.
func (h *Hold) detaching(t ticket, keep time.Duration) *detaching {
	a := h.acquisition()
	r := a.releasing()
	return &detaching{r, t.Nonce, keep, a.keeper.c.wire.Detach(r.note.Keys, a.session(false), t.Nonce, h.hold.Token, h.hold.Read, keep, r.note.Doubt)}
}

// send hands over, until Redis has answered or ctx ends. What fails is released: first
// the session, so that no copy can hand it over any more, then what the ticket may have.
func (d *detaching) send(ctx context.Context) error {
	c := d.a.keeper.c
	var has, more bool
	err := transport.Try(ctx, c.ctx.Done(), func() (again bool, err error) {
		raw, err := c.transport.Do(ctx, trust.Attempt(d.a.Terms.TTL), d.call)
		if err != nil {
			return true, err
		}
		var now int64
		now, has, more, err = wire.DecodeDetach(raw)
		d.a.keeper.sample(now)
		return false, err
	})
	if err == nil {
		c.forget(d.a, d.note, true)
		if more {
			c.settle(d.note.Keys)
		}
		if !has {
			err = d.a.wasGone()
		}
		d.settle(err)
		return err
	}
	d.undo()
	if ctx.Err() != nil {
		err = errors.Join(ending.Of(ctx), err)
	}
	return fmt.Errorf("%w: the hold could not be handed over, has ended, and is being released: %w", ErrUnconfirmed, err)
}

// undo releases what may or may not have been handed over: the session for as long as its
// lease may last, and the ticket for as long as that may, unless the client shuts down.
func (d *detaching) undo() {
	c := d.a.keeper.c
	call := c.wire.ReleaseTicket(d.note.Keys, d.ticket)
	release := func(ctx context.Context) error {
		return transport.Try(ctx, nil, func() (again bool, err error) {
			_, err = c.transport.Do(ctx, 2*time.Second, call)
			return err != nil, err
		})
	}
	c.background(d.a.patience(), func(ctx context.Context) {
		err := d.run(ctx, nil)
		if err != nil {
			c.forget(d.a, d.note, false)
		}
		d.settle(d.verdict(err))
		if release(ctx) != nil {
			late, cancel := context.WithTimeout(c.open, d.keep)
			defer cancel()
			_ = release(late)
		}
	})
}

// A ticket is what a Ticket says.
type ticket struct {
	Prefix   string        `json:"p"`
	Name     string        `json:"n"`
	Kind     string        `json:"k"`
	Owner    string        `json:"o"` // also where it was made for the hold
	Read     bool          `json:"r,omitempty"`
	Nonce    string        `json:"s"` // under which Redis has the hold: the secret
	TTL      time.Duration `json:"t"`
	MaxHold  time.Duration `json:"m,omitempty"`
	Fixed    bool          `json:"f,omitempty"`
	Local    bool          `json:"l,omitempty"`
	Replicas int           `json:"c,omitempty"`
	Within   time.Duration `json:"w,omitempty"`
	Weight   int           `json:"u,omitempty"` // of a semaphore's permits
	Permits  int           `json:"a,omitempty"`
}

// ticket is a new one for the hold, but for whether that reads.
func (h *Hold) ticket() ticket {
	a, terms := h.acquisition(), h.hold.Terms
	return ticket{
		Prefix: h.lock.c.cfg.prefix, Name: h.lock.Name(), Kind: a.keeper.kind, Owner: a.owner(), Nonce: wire.NewNonce().String(),
		TTL: terms.TTL, MaxHold: terms.MaxHold, Fixed: terms.Fixed, Local: terms.Local, Replicas: terms.Replicas.N, Within: terms.Replicas.Timeout,
		Weight: a.Terms.Permits.Weight, Permits: a.Terms.Permits.Of,
	}
}

const ticketMark = "relock1-"

func (t ticket) text() Ticket {
	body, _ := json.Marshal(t) // of strings and numbers: it has no errors
	body = binary.BigEndian.AppendUint32(body, crc32.ChecksumIEEE(body))
	return Ticket(ticketMark + base64.RawURLEncoding.EncodeToString(body))
}

var errTicket = fmt.Errorf("%w: this is no ticket that Detach has made, or it was changed since", ErrInvalidOption)

// read takes what text has made, and nothing else.
func (text Ticket) read() (t ticket, err error) {
	coded, marked := strings.CutPrefix(string(text), ticketMark)
	body, err := base64.RawURLEncoding.Strict().DecodeString(coded)
	at := len(body) - crc32.Size
	if err != nil || !marked || at < 0 || json.Unmarshal(body[:at], &t) != nil || t.text() != text {
		return ticket{}, errTicket
	}
	return t, nil
}

// given is the owner's name without what marks one that was made.
func (t ticket) given() string { return strings.TrimPrefix(t.Owner, string(room.MadeMark)) }

// lock returns a handle for what the ticket has.
func (t ticket) lock(c *Client) (*Lock, error) {
	kinds := []string{wire.KindPlain, wire.KindFair, wire.KindRW, wire.KindFairRW, wire.KindSemaphore}
	_, secret := wire.ParseNonce(t.Nonce)
	owned := checkOwner(t.given()) == nil
	permits := room.Permits{Weight: t.Weight, Of: t.Permits}
	if t.Kind == wire.KindSemaphore {
		_, err := permitsFor(t.Weight, t.Permits)
		owned = owned && err == nil
	}
	if !secret || !owned || key.CheckName(t.Name) != nil || !slices.Contains(kinds, t.Kind) || between("", t.TTL, minTTL, maxTTL) != nil {
		return nil, errTicket
	}
	if t.Prefix != c.cfg.prefix {
		return nil, fmt.Errorf("%w: the ticket is of clients with the key prefix %q, this one has %q", ErrInvalidOption, t.Prefix, c.cfg.prefix)
	}
	s := spec{origin: origin{c, t.Kind}, read: t.Read}
	s.terms.Terms = room.Terms{TTL: t.TTL, MaxHold: t.MaxHold, Fixed: t.Fixed, Local: t.Local, Permits: permits, Replicas: room.Replicas{N: t.Replicas, Timeout: t.Within}}
	if err := s.terms.suits(c.transport); err != nil {
		return nil, err
	}
	return c.newLock(t.Name, &s), nil
}

// Resume takes over the hold of a ticket, with the same name, owner and side, on the same terms,
// under the same token. A ticket works once. If two calls use it at the same time, one of them gets
// the hold. Resume returns ErrLost if the ticket was used, if its time is over, or if somebody
// removed the hold. A text that is not a ticket is ErrInvalidOption.
//
// From now on the hold is renewed, and Release ends it. Its MaxHold begins again. An anonymous hold
// keeps the name that was made for it. If ctx ends before Redis has answered, the ticket may have
// been used: its hold is then released.
func (c *Client) Resume(ctx context.Context, t Ticket) (*Hold, error) {
	if c.unmade() {
		return nil, fmt.Errorf("relock: %w", errUnmadeClient)
	}
	what, err := t.read()
	var l *Lock
	if err == nil {
		l, err = what.lock(c)
	}
	if err = cmp.Or(err, unusable(ctx)); err != nil {
		return nil, fmt.Errorf("relock: resume: %w", err)
	}
	k := c.enter(l)
	defer c.leave(k)
	w := &waiting{ctx: ctx, lock: l, keeper: k, ticket: what.Nonce, began: c.clock.Now()}
	c.labels.Keep(l.terms.TTL, w.began)
	if what.Owner == what.given() { // nobody is told who waits by a made name
		w.owner = what.Owner
	}
	h, err := w.resume(what.Owner)
	if err != nil {
		w.gaveUpHook(err)
		return nil, lockError(l.Name(), err)
	}
	return h, nil
}

// resume asks for the owner's hold until it is answered.
func (w *waiting) resume(owner string) (*Hold, error) {
	k := w.keeper
	if k.c.tracker.Draining() {
		return nil, ErrClosed
	}
	if err := k.c.permit(w); err != nil {
		return nil, &requestError{err}
	}
	k.mu.Lock()
	a := k.newEntry(owner, w.lock, false)
	k.mu.Unlock()
	err := w.request(a, room.PlaceNone)
	if err == nil && w.hold == nil && w.said.Code == room.Held { // to a request that was sent again
		if w.hold, err = w.confirmed(a); err != nil { // it has been given up
			return nil, w.used(err)
		}
	}
	if err != nil || w.hold == nil {
		a.giveUp()
		return nil, cmp.Or(err, w.used(errGone))
	}
	if w.lock.hand(w, w.hold) != nil {
		return nil, w.used(errGone)
	}
	return w.hold, nil
}
