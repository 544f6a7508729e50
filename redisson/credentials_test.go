package redisson_test

import (
	"strings"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/virtual"
	"github.com/relock-go/relock/redisson"
)

// Fails when WRONGPASS ends the calls of a client that Redis has answered before.
func TestCallsOfRedissonWaitOutTheRotationOfAPassword(t *testing.T) {
	for name, opts := range map[string][]redisson.LockOption{"plain": nil, "fair": {redisson.Fair()}} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, x *rig.Lab) {
				r := rig.NewRotation(x)
				other, c := clientOver(t, r.Redis()), clientOver(t, r.Redis())
				held, err := other.NewLock("a", opts...).Acquire(t.Context())
				rig.Must(t, err)
				time.AfterFunc(time.Minute, func() { _ = held.Release() })
				rig.Must(t, c.NewLock("before").Lock(t.Context()))
				ended, err := c.NewLock("ended").Acquire(t.Context())
				rig.Must(t, err)
				waiter := rig.Beside(func() error { return c.NewLock("a", opts...).Lock(t.Context()) })
				virtual.Sleep(5 * time.Second)
				r.Begin()
				time.AfterFunc(15*time.Second, func() { r.Learn("new") })
				fresh := rig.Beside(func() error { return c.NewLock("b", opts...).Lock(t.Context()) })
				got, err := c.NewLock("c", opts...).TryLock(t.Context(), time.Second)
				if rig.WantIs(t, err, relock.ErrUnavailable); got || !strings.Contains(err.Error(), "WRONGPASS") {
					t.Errorf("TryLock = %v, %v, want an error that says WRONGPASS", got, err)
				}
				rig.WantIs(t, ended.Release(), relock.ErrUnconfirmed)
				virtual.Sleep(2 * time.Minute)
				rig.Must(t, rig.Returned(t, waiter))
				rig.Must(t, rig.Returned(t, fresh))
				if info, err := c.NewLock("ended").Info(t.Context()); err != nil || len(info.Holders) > 0 {
					t.Errorf("what was released has %v, %v, want no holder", info.Holders, err)
				}
			})
		})
	}
}

// Fails when a client that never had an answer waits for a password that is wrong.
func TestAWrongPasswordIsToldAtOnceByTheFirstCallOfRedisson(t *testing.T) {
	rig.Run(t, func(t *testing.T, x *rig.Lab) {
		r := rig.NewRotation(x)
		r.Learn("wrong")
		l, began := clientOver(t, r.Redis()).NewLock("a"), time.Now()
		_, try := l.TryLock(t.Context(), time.Minute)
		_, info := l.Info(t.Context())
		for call, err := range map[string]error{"Lock": l.Lock(t.Context()), "TryLock": try, "Info": info} {
			if err == nil || !strings.Contains(err.Error(), "WRONGPASS") || time.Since(began) > time.Second {
				t.Errorf("%s = %v after %v, want WRONGPASS at once", call, err, time.Since(began))
			}
			rig.WantNot(t, err, relock.ErrUnavailable) // the refusal lasts
		}
	})
}
