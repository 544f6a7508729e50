package relock

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/relock-go/relock/internal/ending"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/trust"
	"github.com/relock-go/relock/internal/wire"
)

// A Ticket stands for a hold that Hold.Detach handed over: the lock stays taken, and Client.Resume makes it a hold
// again, once. It works for the time that Detach was given; after that the lock is free. It is text of letters, digits,
// "-" and "_", and may be stored or sent. A ticket is a secret: anyone who reads it can take the hold.
type Ticket string

// LogValue returns "a ticket", so that package slog hides a Ticket that is the value of an attribute. A Ticket inside
// a struct or a text is not hidden.
func (Ticket) LogValue() slog.Value { return slog.StringValue("a ticket") }

// A detaching is a request that hands an acquisition's hold to a ticket.
type detaching struct {
	*releasing // the release that is sent instead if the request fails
	ticket     string
	keep       time.Duration
	call       transport.Call
}

// send sends the request until Redis has answered or ctx ends. If it fails, undo releases the session, so that no late
// copy of the request can hand it over. Then undo releases the ticket's hold, in case there is one. Close leaves the
// first half of its grace for the answer, and the second half for these releases.
func (d *detaching) send(ctx context.Context) error {
	c := d.a.keeper.c
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.closing, func() {
		ending.Pause(within, nil, closeGrace/2)
		cancel()
	})()
	var has, more bool
	given := false
	defer func() {
		if !given { // failed, or a hook of the redis client has panicked
			d.undo()
		}
	}()
	err := transport.Try(within, c.ctx.Done(), func() (again bool, err error) {
		raw, err := c.transport.Do(within, trust.Attempt(d.a.Terms.TTL), d.call)
		if err != nil {
			return true, err
		}
		has, more, err = wire.DecodeDetach(raw)
		return false, err
	})
	if given = err == nil; given {
		c.registry.forget(d.a, &d.note, true)
		if more {
			c.settle(d.note.Keys)
		}
		if !has {
			err = d.a.wasGone()
		}
		d.makeKnown(err)
		return err
	}
	switch {
	case within.Err() != nil && c.refusing.Load(): // first: ctx may be another hold's, which Close has ended
		return fmt.Errorf("%w: %w before redis answered; the hold has ended without a ticket: %v", ErrUnconfirmed, ErrClosed, err)
	case ctx.Err() != nil:
		err = ending.Join(ending.Of(ctx), err)
	}
	return fmt.Errorf("%w: the hold has ended without a ticket, and the client goes on releasing it: %w", ErrUnconfirmed, err)
}

// undo releases the session and then the ticket, in the background: after a request that failed, either may have the
// hold. The session is first, so that no late copy of the request can hand it over to the ticket.
func (d *detaching) undo() {
	d.releaseTicket(func(ctx context.Context) {
		err := d.run(ctx, nil)
		if err != nil {
			d.a.keeper.c.registry.forget(d.a, &d.note, false)
		}
		d.makeKnown(d.result(err))
	})
}

// releaseTicket calls first and then releases the ticket, both in the background, for as long as the session's lease
// may last. If that fails, it goes on releasing the ticket until keep has passed or a Shutdown begins.
func (d *detaching) releaseTicket(first func(ctx context.Context)) {
	c := d.a.keeper.c
	call := c.wire.ReleaseTicket(d.note.Keys, d.ticket)
	try := func(ctx context.Context) error {
		return transport.Try(ctx, nil, func() (again bool, err error) {
			_, err = c.transport.Do(ctx, 2*time.Second, call)
			return err != nil, err
		})
	}
	leave := c.leaving.Begin(d.a.keeper.hash)
	left := sync.OnceFunc(func() { leave(); c.registry.countTicketRelease(-1) })
	c.registry.countTicketRelease(1)
	c.background(d.a.patience(), left, func(ctx context.Context) {
		first(ctx)
		err := try(ctx)
		left()
		if err != nil {
			late, cancel := context.WithTimeout(c.open, d.keep)
			defer cancel()
			_ = try(late)
		}
	})
}

// A ticket is what a Ticket encodes.
type ticket struct {
	Prefix   string        `json:"p"`
	Name     string        `json:"n"`
	Kind     string        `json:"k"`
	Owner    string        `json:"o"` // given or generated
	Read     bool          `json:"r,omitempty"`
	Nonce    string        `json:"s"` // identifies the hold in Redis; this is the secret
	TTL      time.Duration `json:"t"`
	MaxHold  time.Duration `json:"m,omitempty"`
	Fixed    bool          `json:"f,omitempty"`
	Local    bool          `json:"l,omitempty"`
	Replicas int           `json:"c,omitempty"`
	Within   time.Duration `json:"w,omitempty"`
	Weight   int           `json:"u,omitempty"` // of a semaphore
	Permits  int           `json:"a,omitempty"`
}

const ticketMark = "relock1-"

func (t ticket) text() Ticket {
	body, _ := json.Marshal(t) // strings and numbers always marshal
	body = binary.BigEndian.AppendUint32(body, crc32.ChecksumIEEE(body))
	return Ticket(ticketMark + base64.RawURLEncoding.EncodeToString(body))
}

var errTicket = fmt.Errorf("%w: this is not a ticket that Detach made, or it was changed", ErrInvalidOption)

// read decodes a text that Detach has made. It rejects every other text.
func (text Ticket) read() (t ticket, err error) {
	body, _ := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(string(text), ticketMark))
	_ = json.Unmarshal(body[:max(len(body)-crc32.Size, 0)], &t)
	if t.text() != text { // also after an error of the decoding: t is incomplete then
		return ticket{}, errTicket
	}
	return t, nil
}

// unmarkedOwner is the owner's name without the mark of generated names.
func (t ticket) unmarkedOwner() string { return strings.TrimPrefix(t.Owner, string(room.MadeMark)) }

// lock returns a handle as the ticket describes it, or an error if no Detach of a client like c could have made it.
func (t ticket) lock(c *Client) (*Lock, error) {
	kinds := []string{wire.KindPlain, wire.KindFair, wire.KindRW, wire.KindFairRW, wire.KindSemaphore}
	_, isNonce := wire.ParseNonce(t.Nonce)
	permits, noPermits := permitsFor(t.Weight, t.Permits)
	if !isNonce || checkOwner(t.unmarkedOwner()) != nil || key.CheckName(t.Name) != nil || !slices.Contains(kinds, t.Kind) ||
		(noPermits == nil) != (t.Kind == wire.KindSemaphore) || between("", t.TTL, minTTL, maxTTL) != nil {
		return nil, errTicket
	}
	if t.Prefix != c.cfg.prefix {
		return nil, fmt.Errorf("%w: the ticket is for clients with the key prefix %q, and this one has %q", ErrInvalidOption, t.Prefix, c.cfg.prefix)
	}
	s := spec{origin: origin{c, t.Kind}, read: t.Read}
	s.terms.Terms = room.Terms{TTL: t.TTL, MaxHold: t.MaxHold, Fixed: t.Fixed, Local: t.Local, Permits: permits, Replicas: room.Replicas{N: t.Replicas, Timeout: t.Within}}
	if err := s.terms.suits(c.transport); err != nil {
		return nil, err
	}
	return c.newLock(t.Name, &s), nil
}
