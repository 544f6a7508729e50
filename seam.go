package relock

import (
	"context"
	"time"

	"github.com/relock-go/relock/internal/clock"
	"github.com/relock-go/relock/internal/ledger"
	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/seam"
)

// The package seam gives access to unexported state. Only four may use it: the suites in test/; relocktest, whose fake
// clock needs it; the command, to learn which holders it has removed; and relockweb, to tell a rest from a later one.
func init() {
	seamsOfAClient()
	seamsOfALock()
	seamsOfTools()
}

// seamsOfAClient sets what tests and relocktest need of a client: see package seam.
func seamsOfAClient() {
	seam.SetClock = func(client any, k *clock.Clock) {
		c := client.(*Client)
		c.access.Assume()
		c.clock = k
		c.watchdog.start(c)
	}
	seam.ID = func(client any) string { return client.(*Client).id }
	seam.Kept = func(client any) (sessions, rooms, tasks, calls int) {
		c := client.(*Client)
		r := &c.registry
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, of := range r.keepers {
			rooms += len(of)
		}
		return len(r.acquisitions), rooms, c.tracker.Tasks(), c.transport.Outstanding()
	}
	seam.Knows = func(client any, nonce string) bool { return client.(*Client).registry.lookup(nonce) != nil }
	seam.Listen = func(client any) { client.(*Client).listeners.Inbox().Start() }
	seam.Hears = func(client any) bool { return client.(*Client).listeners.Inbox().Up() }
	seam.RenewAround = func(client any, stated bool, between func()) {
		c := client.(*Client)
		r := c.watchdog.newRound()
		for _, s := range c.registry.known() {
			c.tellApart(r.add(s)...)
		}
		if !stated {
			between()
			r.send()
			return
		}
		for renewal, all := range r.renewals {
			batch := c.watchdog.statements(renewal, all)
			between()
			c.tracker.Go(func(ctx context.Context) { runAll(c.watchdog.renewEach(ctx, renewal, batch)) })
		}
	}
}

// seamsOfALock sets what tests need of locks and holds.
func seamsOfALock() {
	seam.PretendHolds = func(hold any, n int) {
		h := hold.(*Hold)
		k, s := h.keeper(), h.hold.Session
		k.mu.Lock()
		defer k.mu.Unlock()
		if s.Ledger.Reserved = (ledger.Counts{Writes: uint32(n)}); s.Read {
			s.Ledger.Reserved = ledger.Counts{Reads: uint32(n)}
		}
	}
	seam.Nonce = func(hold any) string { return hold.(*Hold).acquisition().nonce.String() }
	seam.PretendShort = func(hold any) {
		h := hold.(*Hold)
		k := h.keeper()
		at := k.begin()
		defer k.end(&at)
		if st, held := h.hold.Session.Renew(room.Renewal{}, at.Now); held {
			st.Unrenewed(ErrReplicas, new(instant), &at)
		}
		h.hold.Session.Ledger.Wish(&ledger.Wish{Replicas: 1, Timeout: time.Second})
	}
	seam.AskAgainWhenLost = func(ctx context.Context, lock any) error {
		l := lock.(*Lock)
		k := l.c.registry.enter(l)
		defer l.c.registry.leave(k)
		at := k.begin()
		a := k.newAcquisition("", l, false)
		a.GiveUp(&at)
		k.end(&at)
		w := &waiting{ctx: ctx, lock: l, keeper: k, began: l.c.clock.Now()}
		_, err := w.askAndWait(a, room.PlaceNew, false)
		return err
	}
	seam.AcquireAround = func(ctx context.Context, lock any, owner string, between func()) (hold any, err error) {
		l := lock.(*Lock)
		k := l.c.registry.enter(l)
		defer l.c.registry.leave(k)
		w := &waiting{ctx: ctx, lock: l, keeper: k, owner: owner, began: l.c.clock.Now()}
		h, err := w.acquire()
		if err == nil {
			between()
			err = l.putOnHandle(w, h)
		}
		return h, err
	}
}

// seamsOfTools sets what the command and relockweb use.
func seamsOfTools() {
	seam.Info = func(ctx context.Context, lock any) (info any, now int64, err error) {
		return labelledInfo(ctx, lock.(*Lock))
	}
	seam.ForceRest = func(ctx context.Context, lock any, until int64) (bool, error) {
		return forceOne(ctx, lock.(*Lock), Holder{Token: until})
	}
	seam.ForceUnlock = func(ctx context.Context, lock any) (info any, err error) {
		l := lock.(*Lock)
		ended, err := forceHolders(ctx, l)
		l.c.labels.Replace(ctx, ended.labels(nil))
		return ended, err
	}
}
