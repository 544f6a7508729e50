package relock

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/relock-go/relock/internal/ending"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/transport"
	"github.com/relock-go/relock/internal/wire"
)

const (
	// scanStep is how many keys a server examines in one SCAN step. locksPage is how many locks one pipeline reads.
	scanStep  = 512
	locksPage = 64
)

// errLeft says that the caller of Client.Locks has left its loop.
var errLeft = errors.New("the loop was left")

// A scan is one iteration over the locks of a client.
type scan struct {
	c     *Client
	ctx   context.Context
	yield func(Info, error) bool
	match key.Match
	seed  maphash.Seed
	seen  map[uint64]struct{} // hashes of the names found so far: SCAN may return a key twice
}

// run yields the locks of all servers. It returns why the iteration has ended early: errLeft if the caller left it.
func (s *scan) run(match string) (err error) {
	switch {
	case s.c.unmade():
		return errUnmadeClient
	case s.ctx == nil:
		return errNoContext
	case !s.c.transport.Knows():
		return unknownClient("Locks")
	}
	if s.match, err = key.NewMatch(match); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidOption, err)
	}
	s.seed, s.seen = maphash.MakeSeed(), make(map[uint64]struct{})
	var servers []transport.Primary
	err = tries(s.ctx, s.c, func() (err error) {
		servers, err = s.c.transport.Primaries(s.ctx, inspectTimeout)
		return err
	})
	for i := 0; i < len(servers) && err == nil; i++ {
		err = s.server(servers[i])
	}
	return err
}

// server yields the locks of one server. If the server does not answer, or refuses, it yields that error, and the
// iteration goes on.
func (s *scan) server(at transport.Primary) error {
	pattern := s.match.Hashes(s.c.cfg.prefix)
	for from, through := uint64(0), false; !through; through = from == 0 {
		var keys []string
		err := tries(s.ctx, s.c, func() (err error) {
			var next uint64
			if keys, next, err = s.c.transport.Scan(s.ctx, inspectTimeout, at, from, pattern, scanStep); err == nil {
				from = next // a try that failed is repeated from the same cursor
			}
			return err
		})
		if failed, asked := err.(*requestError); asked { //nolint:errorlint // tries wraps it only if ctx has ended
			if transport.Classify(err) == transport.Refused {
				err = fmt.Errorf("%w (needed: scan)", failed)
			}
			return s.tell(Info{}, fmt.Errorf("relock: locks: %w", err))
		}
		if err == nil {
			err = s.found(keys)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// found reads and yields the locks that have these keys.
func (s *scan) found(keys []string) error {
	var locks []*Lock
	for _, k := range keys {
		name, is := key.Lock(s.c.cfg.prefix, k)
		sum := maphash.String(s.seed, name)
		if _, again := s.seen[sum]; is && !again && s.match.Name(name) {
			s.seen[sum] = struct{}{}
			locks = append(locks, s.c.NewLock(name))
		}
	}
	for page := range slices.Chunk(locks, locksPage) {
		if err := s.look(page); err != nil {
			return err
		}
	}
	return nil
}

// look reads locks in one pipeline. It yields the locks that are in use, and the errors of single locks.
func (s *scan) look(locks []*Lock) error {
	all, errs, labels := make([]Info, len(locks)), make([]error, len(locks)), []*string(nil)
	var silence *requestError // set once Redis did not answer about a lock: then no other lock is read on its own
	for i, page := range s.pages(locks) {
		all[i], errs[i] = s.whole(locks[i], page, silence)
		if failed, is := errors.AsType[*requestError](errs[i]); is && ending.Is(failed, ErrUnavailable) && !transport.TryAgain(failed.err) {
			silence = failed
		}
		switch ended := over(s.ctx, s.c); {
		case ended != nil && errs[i] != nil: // yielded first, because it may say that Redis was silent
			return s.tell(all[i], errs[i])
		case ended != nil:
			return ended
		}
		labels = all[i].labels(labels)
	}
	s.c.labels.Replace(s.ctx, labels)
	for i, info := range all {
		if errs[i] == nil && len(info.Holders) == 0 && info.Waiters == 0 && info.CondWaiters == 0 && info.Resting == 0 {
			continue
		}
		if err := s.tell(info, errs[i]); err != nil {
			return err
		}
	}
	return nil
}

// pages returns the first page of each lock, or nil for a lock whose page could not be read.
func (s *scan) pages(locks []*Lock) []*wire.InfoReply {
	calls, pages := make([]transport.Call, len(locks)), make([]*wire.InfoReply, len(locks))
	for i, l := range locks {
		calls[i] = s.c.wire.Info(key.Of(s.c.cfg.prefix, l.hash), 0, readersPage)
	}
	for i, result := range s.c.transport.DoAll(s.ctx, inspectTimeout, calls) {
		if page, err := wire.DecodeInfo(result.Reply); err == nil { // a result with an error has no reply
			pages[i] = &page
		}
	}
	return pages
}

// whole makes an Info of page, with client IDs as labels, or reads the lock if page is nil or not all of it. But if
// silence is set, Redis did not answer about an earlier lock, and whole returns that error instead of reading.
func (s *scan) whole(l *Lock, page *wire.InfoReply, silence *requestError) (Info, error) {
	if page != nil && page.Next > 0 {
		page = nil // holders that are renewed before the next page is read would be on both, so that follows at once
	}
	if silence != nil && page == nil {
		return Info{Name: l.Name()}, lockError(l.Name(), silence)
	}
	info, _, err := readInfo(s.ctx, l, page)
	info.Name = l.Name() // with an error, too
	return info, err
}

// tell yields one value. It returns errLeft if the caller has left the loop, or why the iteration must end, or nil.
func (s *scan) tell(info Info, err error) error {
	if !s.yield(info, err) {
		return errLeft
	}
	return over(s.ctx, s.c)
}
