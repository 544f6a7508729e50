package contract_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
)

// Each byte of a ticket is changed, and each end of it cut off.
// Fails when a ticket that was changed is taken for one, or Redis is asked about it.
func TestATicketThatWasChangedIsRefused(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		good := string(detach(t, x.Take(x.Lock("l", relock.Owner("me"))), time.Minute))
		c, link := x.Linked()
		refused := func(text string) {
			t.Helper()
			if _, err := c.Resume(t.Context(), relock.Ticket(text)); err == nil || !strings.Contains(err.Error(), "is not a ticket") {
				t.Fatalf("%q: error %v, want that it is no ticket", text, err)
			} else {
				rig.WantIs(t, err, relock.ErrInvalidOption)
			}
		}
		for i := range good {
			for _, other := range []byte{'A', 'z', '0', '-', ' ', 0xff} {
				if changed := []byte(good); changed[i] != other {
					changed[i] = other
					refused(string(changed))
				}
			}
			refused(good[:i])
			refused(good[i+1:])
		}
		for _, text := range []string{" " + good, good + "\n", good + good, "relock1-", "relock1-AAAA", "relock1-AAAAAAAAAAA", strings.Repeat("x", 1<<16)} {
			refused(text)
		}
		if link.Dials() != 0 {
			t.Errorf("%d connections to look at what is no ticket", link.Dials())
		}
		rig.End(t, resume(t, x.Client(), relock.Ticket(good)))
	})
}

// forged is the ticket with another content, which has the checksum that belongs to it.
func forged(t *testing.T, ticket relock.Ticket, was, is string) relock.Ticket {
	t.Helper()
	mark, coded, _ := strings.Cut(string(ticket), "-")
	body, err := base64.RawURLEncoding.DecodeString(coded)
	rig.Must(t, err)
	body = body[:len(body)-crc32.Size]
	if !bytes.Contains(body, []byte(was)) {
		t.Fatalf("no %s in %s", was, body)
	}
	body = bytes.Replace(body, []byte(was), []byte(is), 1)
	body = binary.BigEndian.AppendUint32(body, crc32.ChecksumIEEE(body))
	return relock.Ticket(mark + "-" + base64.RawURLEncoding.EncodeToString(body))
}

// Fails when the content of a ticket goes to Redis, though no Detach could have written it.
func TestATicketThatNoDetachCouldMakeIsRefused(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		me := relock.Owner("me")
		of := map[string]relock.Ticket{
			"lock":      detach(t, x.Take(x.Lock("l", me)), time.Minute),
			"semaphore": detach(t, x.Take(x.Client().NewSemaphore("s", 3, relock.Weight(2), me)), time.Minute),
		}
		c, link := x.Linked()
		for _, row := range []struct{ of, old, new string }{
			{"lock", `"o":"me"`, `"o":""`},
			{"lock", `"n":"l"`, `"n":""`},
			{"lock", `"k":"plain"`, `"k":"other"`},
			{"lock", `"s":"`, `"s":"A`},
			{"lock", `"t":30000000000`, `"t":0`},
			{"lock", `"t":30000000000`, `"t":30000000000,"a":1`},
			{"semaphore", `"u":2,"a":3`, `"u":2,"a":1`},
			{"semaphore", `,"u":2,"a":3`, ``},
		} {
			_, err := c.Resume(t.Context(), forged(t, of[row.of], row.old, row.new))
			if rig.WantIs(t, err, relock.ErrInvalidOption); !strings.Contains(err.Error(), "is not a ticket") {
				t.Errorf("%s instead of %s: %v", row.new, row.old, err)
			}
		}
		if link.Dials() != 0 {
			t.Errorf("%d connections to look at what is no ticket", link.Dials())
		}
		for _, good := range of {
			rig.End(t, resume(t, x.Client(), good))
		}
	})
}

// The names have bytes of which other encodings make other characters, in each place of three.
// Fails when a ticket cannot go wherever a word can.
func TestATicketIsOfLettersDigitsAndTwoMarks(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		for _, name := range []string{"???~~~", " ???~~~", "  ???~~~"} {
			ticket := detach(t, x.Take(x.Lock(name)), time.Minute)
			for _, r := range string(ticket) {
				if r != '-' && r != '_' && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)) {
					t.Errorf("the ticket has %q: %s", r, ticket)
				}
			}
			rig.End(t, resume(t, x.Client(), ticket))
		}
	})
}

func TestATicketOfAnotherPrefixIsRefused(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		ticket := detach(t, x.Take(x.Lock("l")), time.Minute)
		_, err := x.Client(relock.KeyPrefix("other")).Resume(t.Context(), ticket)
		rig.WantIs(t, err, relock.ErrInvalidOption)
		rig.End(t, resume(t, x.Client(), ticket))
	})
}

// Fails when a log shows what is a secret, or not what stands in its place.
func TestATicketIsNotLogged(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		ticket := detach(t, x.Take(x.Lock("l")), time.Minute)
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("queued", slog.Any("ticket", ticket))
		if strings.Contains(log.String(), string(ticket)) || !strings.Contains(log.String(), `ticket="a ticket"`) {
			t.Errorf("the log says %q", log.String())
		}
	})
}

// Fails when a call that is refused ends the hold.
func TestDetachThatIsRefusedLeavesTheHold(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		h := x.Take(x.Lock("l"))
		for _, keep := range []time.Duration{-1, 0, time.Microsecond, 25 * time.Hour} {
			_, err := h.Detach(t.Context(), keep)
			rig.WantIs(t, err, relock.ErrInvalidOption)
		}
		_, err := h.Detach(nil, time.Minute) //nolint:staticcheck // what is refused
		rig.WantIs(t, err, relock.ErrInvalidOption)
		done, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = h.Detach(done, time.Minute)
		rig.WantIs(t, err, context.Canceled)
		rig.Must(t, h.Err())
		rig.End(t, h)
		_, err = h.Detach(t.Context(), time.Minute)
		rig.WantIs(t, err, relock.ErrNotHeld)
		rig.WantNot(t, err, relock.ErrLost)
		_, err = (&relock.Hold{}).Detach(t.Context(), time.Minute)
		rig.WantIs(t, err, relock.ErrNotHeld, relock.ErrInvalidOption)
		x.Frees("l")
	})
}

func TestDetachOfWhatIsLostSaysSo(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		for _, known := range []bool{true, false} {
			c, link := x.Linked()
			link.HoleSubscribers()
			l := c.NewLock("l")
			h := x.Take(l)
			_, err := x.Eye.NewLock("l").ForceUnlock(t.Context())
			rig.Must(t, err)
			if known {
				<-h.Lost()
			}
			_, err = h.Detach(t.Context(), time.Minute)
			rig.WantIs(t, err, relock.ErrLost)
			x.Frees("l")
		}
	})
}

// Its own context has ended with the hold, and says that it was lost.
// Fails when Detach looks at the context first: the hold is not ended then, and its owner is told to unlock it.
func TestDetachUnderTheContextOfALostHoldEndsIt(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		l, me := x.Lock("l"), x.By("me")
		h, err := l.Acquire(me)
		rig.Must(t, err)
		done, cancel := context.WithCancel(me)
		cancel()
		for _, ctx := range []context.Context{h.Context(me), done} {
			_, err = x.Eye.NewLock("l").ForceUnlock(t.Context())
			rig.Must(t, err)
			<-h.Lost()
			_, err = h.Detach(ctx, time.Minute)
			rig.WantIs(t, err, relock.ErrLost)
			if h, err = l.TryAcquire(me, 0); err != nil {
				t.Fatalf("the owner's next call: %v", err)
			}
		}
		rig.Must(t, h.Release())
	})
}

func TestResumeThatCannotBeIsRefused(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		ticket := detach(t, x.Take(x.Lock("l")), time.Minute)
		_, err := x.Eye.Resume(nil, ticket) //nolint:staticcheck // what is refused
		rig.WantIs(t, err, relock.ErrInvalidOption)
		done, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = x.Eye.Resume(done, ticket)
		rig.WantIs(t, err, context.Canceled)
		var none *relock.Client
		_, err = none.Resume(t.Context(), ticket)
		rig.WantIs(t, err, relock.ErrInvalidOption)
		c := x.Client()
		rig.Must(t, c.Close())
		_, err = c.Resume(t.Context(), ticket)
		rig.WantIs(t, err, relock.ErrClosed)
		if left := fmt.Sprint(x.Info(x.Eye.NewLock("l")).Waiters, rig.Remains(x.Eye)); left != "0" {
			t.Errorf("left behind: %s", left)
		}
		rig.End(t, resume(t, x.Client(), ticket))
	})
}

// The request has come true, and nobody hears of it.
func TestResumeThatIsCutShortReleases(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		b := x.Actor()
		ticket := detach(t, x.Take(x.Lock("l")), time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		b.Fate("resume", 1, redistest.SwallowReply)
		_, err := b.Resume(ctx, ticket)
		rig.WantIs(t, err, context.DeadlineExceeded)
		x.Until(x.Now() + 10*time.Second)
		x.Frees("l")
		_, err = x.Client().Resume(t.Context(), ticket)
		rig.WantIs(t, err, relock.ErrLost)
	})
}

// The requests of a Resume never reach Redis, so they use nothing up.
func TestATicketOutlivesAResumeThatReachesNobody(t *testing.T) {
	rig.Play(t, func(t *testing.T, x *rig.Lab) {
		b := x.Actor()
		h := x.Take(x.Lock("l"))
		ticket := detach(t, h, time.Hour)
		heal := b.Link.Hole()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := b.Resume(ctx, ticket)
		rig.WantIs(t, err, context.DeadlineExceeded, relock.ErrUnavailable)
		x.Refuses(x.Lock("l"))
		heal()
		x.Until(x.Now() + time.Minute)
		again := resume(t, b.Client, ticket)
		if again.Token() != h.Token() {
			t.Errorf("token %d, want %d", again.Token(), h.Token())
		}
		rig.End(t, again)
		x.Frees("l")
	})
}
