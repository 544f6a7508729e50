package redisson

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/ending"
	"github.com/relock-go/relock/internal/transport"
)

// Info reads from Redis the holders of the lock, in Go and in Java. For a fair lock it also reads
// how many wait: the other layouts have no queue. The holders of a read/write lock all have the TTL
// of its hash.
func (l *Lock) Info(ctx context.Context) (relock.Info, error) {
	if l.unmade() {
		return relock.Info{}, l.wrap(errBadLock)
	}
	info := relock.Info{Name: l.name}
	call := transport.Call{Script: infoScript, Keys: []string{l.names.key}, Args: []any{""}}
	switch l.kind {
	case fair:
		call.Keys, call.Args = append(call.Keys, l.names.queue()), []any{"fair"}
	case fenced:
		call.Keys, call.Args = append(call.Keys, l.names.token()), []any{"fenced"}
	}
	raw, _, err := l.ask(ctx, call)
	if err != nil {
		return info, err
	}
	if len(raw) < 2 {
		return info, l.wrap(fmt.Errorf("redisson: bug: an answer of %d values", len(raw)))
	}
	ms, _ := raw[0].(int64)
	more, _ := raw[1].(int64)
	if l.kind == fair {
		info.Waiters = int(more)
	}
	info.Holders = l.holders(raw[2:], time.Duration(ms)*time.Millisecond, more)
	if len(info.Holders) > 0 || info.Waiters > 0 {
		info.Kind = l.kind.String()
	}
	return info, nil
}

// holders reads the fields and values of the lock's hash.
func (l *Lock) holders(raw []any, ttl time.Duration, token int64) (all []relock.Holder) {
	for i := 0; i+1 < len(raw); i += 2 {
		field, _ := raw[i].(string)
		value, _ := raw[i+1].(string)
		if field == "mode" {
			continue
		}
		h := relock.Holder{Owner: field, TTL: ttl}
		h.Holds, _ = strconv.Atoi(value)
		if l.kind.rw() {
			owner, writes := strings.CutSuffix(field, ":write")
			h.Owner, h.Read = owner, !writes
		}
		if l.kind == fenced {
			h.Token = token
		}
		all = append(all, h)
	}
	return all
}

// ForceUnlock takes the lock from its holder, in Go or Java, and reports whether there was one. For
// a read/write lock it does so only if the lock is held in the mode of this side. A holder in Go is
// told by its next renewal, at the latest a third of its TTL later. A holder in Java is told by its
// unlock.
func (l *Lock) ForceUnlock(ctx context.Context) (bool, error) {
	if err := l.bad(ctx); err != nil {
		return false, l.wrap(err)
	}
	if err := l.c.hear(ctx); err != nil {
		return false, l.wrap(err)
	}
	message, mode := messageOne, ""
	switch l.kind {
	case reading:
		mode = "read"
	case writing:
		message, mode = messageAll, "write"
	}
	owners, held, err := l.look(ctx, mode)
	if err != nil {
		return false, err
	}
	args := append([]any{l.c.publish, l.names.channel(l.kind), message, mode}, owners...)
	call := transport.Call{Script: forceScript, Keys: []string{l.names.key}, Args: args}
	if l.kind == fair {
		call.Keys = append(call.Keys, l.names.queue(), l.names.deadlines())
	}
	raw, unanswered, err := l.ask(ctx, call)
	// What a second request finds gone, an unanswered first one may have removed.
	removed := unanswered && held || len(raw) == 1 && raw[0] == int64(1)
	return err == nil && removed, err
}

// ForceUnlockHolder takes the lock from one holder, as Info showed it, and leaves everybody else
// alone: of a read/write lock other readers go on, and so does a holder in the other mode. It
// goes by h.Owner, and for a fenced lock by h.Token; the other locks of Redisson have no token. A zero
// field matches any, and a holder without both is ErrInvalidOption. It returns false if that
// holder does not hold the lock any more. Redis compares the owner as it takes the lock away. The layout
// does not tell two grants of one owner apart: if the owner has released the lock and
// taken it again in the meantime, it loses that. The holder is told as by ForceUnlock.
func (l *Lock) ForceUnlockHolder(ctx context.Context, h relock.Holder) (bool, error) {
	if err := l.bad(ctx); err != nil {
		return false, l.wrap(err)
	}
	if h.Owner == "" && h.Token == 0 {
		return false, l.wrap(fmt.Errorf("%w: the holder to remove has neither an owner nor a token", relock.ErrInvalidOption))
	}
	if err := l.c.hear(ctx); err != nil {
		return false, l.wrap(err)
	}
	info, err := l.Info(ctx)
	if err != nil {
		return false, err
	}
	// A writer may have the fields of a reader as well. The lock is not held for reading then.
	written := slices.ContainsFunc(info.Holders, func(one relock.Holder) bool { return !one.Read })
	removed := false
	for _, one := range info.Holders {
		if l.kind.rw() && (one.Read == written || written == (l.kind == reading)) {
			continue
		}
		if h.Owner != "" && one.Owner != h.Owner || h.Token != 0 && one.Token != h.Token {
			continue
		}
		raw, unanswered, err := l.ask(ctx, l.forceCall(one))
		if err != nil {
			return removed, err
		}
		removed = removed || unanswered || len(raw) == 1 && raw[0] == int64(1)
	}
	return removed, nil
}

// forceCall takes the lock from one holder. A reader is removed as if it had released all its holds.
func (l *Lock) forceCall(h relock.Holder) transport.Call {
	channel := l.names.channel(l.kind)
	switch l.kind {
	case reading:
		return transport.Call{
			Script: releaseScripts[reading], Keys: append([]string{l.names.key}, l.names.read(h.Owner, max(h.Holds, 1))...),
			Args: []any{h.Owner, 0, l.c.publish, channel, l.names.tag},
		}
	case writing:
		return transport.Call{Script: forceScript, Keys: []string{l.names.key}, Args: []any{l.c.publish, channel, messageAll, "write", h.Owner + ":write"}}
	}
	call := transport.Call{Script: forceScript, Keys: []string{l.names.key}, Args: []any{l.c.publish, channel, messageOne, "", h.Owner}}
	if l.kind == fair {
		call.Keys = append(call.Keys, l.names.queue(), l.names.deadlines())
	}
	return call
}

// look reads the fields of those who hold, and whether they do in the given mode.
func (l *Lock) look(ctx context.Context, mode string) (owners []any, held bool, err error) {
	raw, _, err := l.ask(ctx, transport.Call{Script: infoScript, Keys: []string{l.names.key}, Args: []any{""}})
	if err != nil {
		return nil, false, err
	}
	found := ""
	for i := 2; i+1 < len(raw); i += 2 {
		if raw[i] == "mode" {
			found, _ = raw[i+1].(string)
			continue
		}
		owners = append(owners, raw[i])
	}
	return owners, len(owners) > 0 && found == mode, nil
}

func (l *Lock) bad(ctx context.Context) error {
	switch {
	case l.unmade():
		return errBadLock
	case l.err != nil:
		return l.err
	case ctx == nil:
		return fmt.Errorf("%w: the context is nil; pass context.Background()", relock.ErrInvalidOption)
	case ctx.Err() != nil:
		return ending.Of(ctx)
	}
	return nil
}

// ask sends what is no acquisition until it is answered. It says whether a request before
// that one may have run.
func (l *Lock) ask(ctx context.Context, call transport.Call) (raw []any, unanswered bool, err error) {
	if err := l.bad(ctx); err != nil {
		return nil, false, l.wrap(err)
	}
	err = transport.Try(ctx, l.c.ctx.Done(), func() (bool, error) {
		raw, err = l.c.transport.Do(ctx, 5*time.Second, call)
		unanswered = unanswered || err != nil && transport.Classify(err) == transport.Unknown
		return err != nil, err
	})
	if err != nil {
		return nil, unanswered, l.wrap(err)
	}
	return raw, unanswered, nil
}
