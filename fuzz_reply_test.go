package relock_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/relock-go/relock"
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
		`[1, 1700000000000, 5, 6, 30000]`, `[1, 1700000000000, 5, 6, 30000, 1]`, `[0, 1700000000000]`, `[0, 1700000000000, 0]`,
		`[2, 1700000000000, 0]`, `[-5, 1700000000000, 0]`,
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
	now, answers, err := relock.DecodeAcquire(raw, n)
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
		case a.Ticket < 0 || a.Wait > century || a.Wait < -century:
			t.Errorf("acquire: %+v", a)
		}
	}
}

func others(t *testing.T, raw []any) {
	t.Helper()
	if held, now, a, err := relock.DecodeHold(raw); err == nil {
		if now <= 0 {
			t.Errorf("hold: now %d", now)
		}
		if held {
			wantHeld(t, a)
		}
	} else if held {
		t.Error("hold: an error and held")
	}
	if was, now, _, err := relock.DecodeRelease(raw); err == nil && (now <= 0 || was > 2 || was < 0 && was != -5) {
		t.Errorf("release: was %d, now %d", was, now)
	}
	if info, err := relock.DecodeInfo(raw); err == nil {
		for _, h := range info.Holders {
			if h.Token <= 0 || h.Holds < 0 || h.TTL > century || h.TTL < -century || info.Waiters < 0 {
				t.Errorf("info: %+v", info)
			}
		}
	}
	if page, last, err := relock.DecodeWaiters(raw); err == nil {
		for _, w := range page {
			if w.Age < 0 || last < 0 {
				t.Errorf("waiters: %+v, last %d", w, last)
			}
		}
	}
}

func wantHeld(t *testing.T, a relock.FuzzedAnswer) {
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
