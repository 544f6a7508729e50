package wire_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/redistest"
	"github.com/relock-go/relock/internal/rig"
	"github.com/relock-go/relock/internal/room"
	"github.com/relock-go/relock/internal/wire"
)

const century = 100 * 365 * 24 * time.Hour

// FuzzReplies: whatever a server sends is decoded to values that the protocol
// knows, or is an error. A reply is written in JSON: numbers, strings, nil and lists.
func FuzzReplies(f *testing.F) {
	for _, seed := range []string{
		`[1700000000000, 0, 1, 1700000000000000, "1700000000000032", 30000, ""]`,
		`[1700000000000, 1, 2, 1700000000000001, 29000, 1, "AAAAAAAAAAAAAAAAAAAAAA"]`,
		`[1700000000000, 0, 3, 0, 29000, 0, ""]`,
		`[1700000000000, 0, -2]`, `[1700000000000, 0, -3, "fair rw"]`, `[1700000000000, 0, -4, 0, 0, 0, ""]`,
		`[1700000000000, 0, -5]`, `[1700000000000, 0, -5, 0, 0, 0, ""]`, `[1700000000000, 0, -6, 0, 0, 0, ""]`,
		`[1700000000000, 0, 1, 5, 6, 30000, "", 2, 7, 1, 1, ""]`,
		`["1700000000000000"]`, `["1700000000000000", 1]`, `[1700000000000, 30000]`, `[1700000000000, 30000, 1]`, `[1]`, `[0]`, `[-5]`,
		`[2]`, `[2, 1700000000000, 0]`, `[-5, 1700000000000, 0]`,
		`[1700000000000, "rw", 2, "me", "w", 1, 5, 6, 29000, "you", "r", 2, 7, 7, 100]`,
		`[1700000000000000, 0, "me", "w", 1699999999000000]`,
		`[]`, `[null]`, `["x", [], 1e300, -1]`, `[1700000000000, 0, 1, 6, 5, 9223372036854775807, ""]`,
	} {
		f.Add([]byte(seed), uint8(1))
		f.Add([]byte(seed), uint8(2))
	}
	f.Fuzz(func(t *testing.T, text []byte, requests uint8) {
		raw, ok := replyOf(text)
		if !ok {
			t.Skip()
		}
		n := int(requests%3) + 1
		acquired(t, raw, n)
		others(t, raw)
	})
}

func acquired(t *testing.T, raw []any, n int) {
	t.Helper()
	now, answers, err := wire.DecodeAcquire(raw, n, math.MaxInt32, time.Minute)
	if err != nil {
		if len(answers) > 0 {
			t.Error("acquire: an error and answers")
		}
		return
	}
	if now <= 0 || len(answers) != n {
		t.Errorf("acquire: now %d, %d answers for %d requests", now, len(answers), n)
	}
	for _, a := range answers {
		switch {
		case a.Code == 1:
			wantHeld(t, a)
		case a.Code > 3 || a.Code < -6 || a.Code == 0 || a.Code == -1:
			t.Errorf("acquire: answer %d", a.Code)
		case a.Place < 0 || a.Wait > century || a.Wait < -century:
			t.Errorf("acquire: %+v", a)
		}
	}
}

func others(t *testing.T, raw []any) {
	t.Helper()
	if a, err := wire.DecodeStatement(raw, false); err == nil {
		if a.Now < 0 || a.Held && (a.Remaining <= 0 || a.Remaining > century) {
			t.Errorf("hold: %+v", a)
		}
	} else if a.Held {
		t.Error("hold: an error and held")
	}
	if was, now, _, err := wire.DecodeRelease(raw); err == nil && (now < 0 || was > 2 || was < 0 && was != -5) {
		t.Errorf("release: was %d, now %d", was, now)
	}
	if info, err := wire.DecodeInfo(raw); err == nil {
		for _, h := range info.Holders {
			if h.Token <= 0 || h.Holds < 0 || h.TTL > century || h.TTL < -century || info.Waiters < 0 || info.Awaits < 0 {
				t.Errorf("info: %+v", info)
			}
		}
	}
	if page, last, err := wire.DecodeWaiters(raw); err == nil {
		for _, w := range page {
			if w.Age < 0 || last < 0 {
				t.Errorf("waiters: %+v, last %d", w, last)
			}
		}
	}
}

func wantHeld(t *testing.T, a room.Answer) {
	t.Helper()
	if a.Low <= 0 || a.High < a.Low || a.Remaining > century || a.Remaining < -century {
		t.Errorf("held with %+v", a)
	}
}

// replyOf makes of JSON what go-redis makes of a reply.
func replyOf(text []byte) (raw []any, ok bool) {
	if json.Unmarshal(text, &raw) != nil {
		return nil, false
	}
	for i, v := range raw {
		if x, is := v.(float64); is && x == math.Trunc(x) && math.Abs(x) < math.MaxInt64 {
			raw[i] = int64(x)
		}
	}
	return raw, true
}

// FuzzMessages: a payload is understood only where the scripts' encoder would
// have written the very same.
func FuzzMessages(f *testing.F) {
	for _, seed := range []string{
		"echo", "look " + rig.NonceOf('a'), "lost " + rig.NonceOf('b'), "wanted " + rig.NonceOf('b'), "wanted", "wanted short", "grant " + rig.NonceOf('c') + " 1 1700000000000000 1700000000000032",
		"", " ", "echo ", "grant", "grant " + rig.NonceOf('c') + " 1 2", "grant " + rig.NonceOf('c') + " 1 3 2", "grant " + rig.NonceOf('c') + " +1 2 3", "grant " + rig.NonceOf('c') + " 1_0 2 3",
		"grant " + rig.NonceOf('c') + " 01 2 3", "grant " + rig.NonceOf('c') + " 1 2 3 4", "grant  " + rig.NonceOf('c') + " 1 2 3", "look", "lost short", "echo twice", "echo unseen", "echo unseen ", "echo seen", "GRANT x",
		"grant " + rig.NonceOf('c') + " 1 2 99999999999999999999",
		"grant " + rig.NonceOf('c') + " 1 2 3 +", "grant " + rig.NonceOf('c') + " 1 2 3 + +", "grant " + rig.NonceOf('c') + " 1 2 3 + " + rig.NonceOf('d'),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, payload string) {
		m, err := wire.ParseMessage(payload)
		if err != nil {
			return
		}
		var again string
		switch m.Verb {
		case "echo":
			again = "echo" + map[wire.Sight]string{wire.Seen: " seen", wire.Unseen: " unseen"}[m.Sight]
		case "look", "lost", "wanted":
			again = m.Verb + " " + m.Nonce
		case "grant":
			again = fmt.Sprintf("grant %s %d %d %d", m.Nonce, m.Op, m.Low, m.High)
			if m.Wanted {
				again += " +"
			}
			for _, nonce := range m.Run {
				again += " " + nonce
			}
			if m.Op < 1 || m.Low < 1 || m.High < m.Low {
				t.Errorf("%q is understood as %+v", payload, m)
			}
		}
		if again != payload || m.Verb != "echo" && len(m.Nonce) != 22 {
			t.Errorf("%q is understood as %+v", payload, m)
		}
	})
}

// FuzzGrants: what the release script publishes is understood, with the request
// it was told of and tokens larger than the holder's.
func FuzzGrants(f *testing.F) {
	f.Add([]byte("a nonce"), uint32(1), uint8(1), "me")
	f.Add([]byte{0, 255, 17}, uint32(1<<31), uint8(33), "ключ {}% \n")
	f.Fuzz(func(t *testing.T, seed []byte, op uint32, block uint8, owner string) {
		if owner == "" || strings.HasPrefix(owner, "~") || len(owner) > 512 || strings.ToValidUTF8(owner, "") != owner {
			t.Skip()
		}
		srv := redistest.Start(t)
		r := rig.Raw{T: t, Redis: srv.Client(t), ID: rig.NonceOf('C')}
		inbox := r.Redis.Subscribe(t.Context(), key.Inbox("relock", r.ID))
		defer inbox.Close()
		_, err := inbox.Receive(t.Context())
		rig.Must(t, err)
		waits := nonceOf(seed)
		r.Ask(rig.NonceOf('.'), "~holder", time.Second, 1, 0)
		r.Run("acquire", r.Request("plain", waits, owner, "w", time.Second, int(op)+1, int(block)+1, 0)...)
		r.Release(rig.NonceOf('.'), "~holder", 0)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		msg, err := inbox.ReceiveMessage(ctx)
		rig.Must(t, err)
		if want := "wanted " + rig.NonceOf('.'); msg.Payload != want {
			t.Errorf("the holder is told %q, want %q", msg.Payload, want)
		}
		msg, err = inbox.ReceiveMessage(ctx)
		rig.Must(t, err)
		m, err := wire.ParseMessage(msg.Payload)
		rig.Must(t, err)
		stored, err := strconv.ParseInt(r.Redis.HGet(t.Context(), key.For("relock", "l").Hash, "token").Val(), 10, 64)
		rig.Must(t, err)
		if m.Verb != "grant" || m.Nonce != waits || m.Op != int64(op)+1 || m.High != stored || m.High-m.Low > int64(block) {
			t.Errorf("%q is understood as %+v, the counter is %d", msg.Payload, m, stored)
		}
	})
}

// nonceOf makes a nonce of any bytes, in its alphabet.
func nonceOf(seed []byte) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	b := []byte(rig.NonceOf('x'))
	for i := range min(len(seed), len(b)) {
		b[i] = alphabet[seed[i]%64]
	}
	return string(b)
}

// A lease that is shorter than the renewal asked for is as it was: a later statement of its
// session had arrived before.
func TestRenewalOfManySaysWhichLeasesAreAsTheyWere(t *testing.T) {
	raw := []any{int64(1_700_000_000_000), int64(1000), int64(999), int64(0), int64(room.QueueKey), int64(5000)}
	_, left, waiting, err := wire.DecodeRenew(raw, time.Second+time.Microsecond, 5)
	if want := []int{1, 2, 3}; err != nil || !slices.Equal(left, want) || len(waiting) > 0 {
		t.Errorf("not renewed: %v, %v; want %v; waited for: %v", left, err, want, waiting)
	}
}

// Behind the leases stand pairs: a session that somebody waits for, and how many do.
func TestRenewalOfManySaysForWhichSomebodyWaits(t *testing.T) {
	say := func(more ...int64) (map[int]int, error) {
		raw := []any{int64(1_700_000_000_000), int64(1000), int64(1000), int64(1000)}
		for _, n := range more {
			raw = append(raw, n)
		}
		_, _, waiting, err := wire.DecodeRenew(raw, time.Second, 3)
		return waiting, err
	}
	if got, err := say(1, 4, 3, 64); err != nil || !maps.Equal(got, map[int]int{0: 4, 2: 64}) {
		t.Errorf("waited for: %v, %v", got, err)
	}
	alone := []any{int64(1_700_000_000_000), int64(1000), int64(7)}
	if _, _, got, err := wire.DecodeRenew(alone, time.Second, 1); err != nil || !maps.Equal(got, map[int]int{0: 7}) {
		t.Errorf("one alone is waited for: %v, %v", got, err)
	}
	for _, wrong := range [][]int64{{0, 1}, {4, 1}, {1, 0}, {1}, {1, -1}} {
		if got, err := say(wrong...); err == nil {
			t.Errorf("%v is understood as %v", wrong, got)
		}
	}
}
