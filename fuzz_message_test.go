package relock_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/relock-go/relock"
	"github.com/relock-go/relock/internal/key"
	"github.com/relock-go/relock/internal/redistest"
)

// FuzzMessages: a payload is understood only where the scripts' encoder would
// have written the very same.
func FuzzMessages(f *testing.F) {
	for _, seed := range []string{
		"echo", "look " + nonce('a'), "lost " + nonce('b'), "grant " + nonce('c') + " 1 1700000000000000 1700000000000032",
		"", " ", "grant", "grant " + nonce('c') + " 1 2", "grant " + nonce('c') + " 1 3 2", "grant " + nonce('c') + " +1 2 3", "grant " + nonce('c') + " 1_0 2 3",
		"grant " + nonce('c') + " 01 2 3", "grant " + nonce('c') + " 1 2 3 4", "grant  " + nonce('c') + " 1 2 3", "look", "lost short", "echo twice", "GRANT x",
		"grant " + nonce('c') + " 1 2 99999999999999999999",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, payload string) {
		m, err := relock.ParseMessage(payload)
		if err != nil {
			return
		}
		var again string
		switch m.Verb {
		case "echo":
			again = "echo"
		case "look", "lost":
			again = m.Verb + " " + m.Nonce
		case "grant":
			again = fmt.Sprintf("grant %s %d %d %d", m.Nonce, m.Op, m.Low, m.High)
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
		if owner == "" || owner == "holder" || len(owner) > 512 || strings.ToValidUTF8(owner, "") != owner {
			t.Skip()
		}
		srv := redistest.Start(t)
		r := raw{t, srv.Client(t), nonce('C')}
		inbox := r.rdb.Subscribe(t.Context(), key.Inbox("relock", r.id))
		defer inbox.Close()
		_, err := inbox.Receive(t.Context())
		noErr(t, err)
		waits := nonceOf(seed)
		r.ask(nonce('.'), "holder", 0, time.Second, 1, 0)
		r.run("acquire", key.Inbox("relock", ""), "plain", r.id, time.Now().Add(10*time.Second).UnixMilli(), 600_000, 0,
			waits, int64(op)+1, owner, 1, "w", 1000, int(block)+1, 0)
		r.release(nonce('.'), "holder", 0)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		msg, err := inbox.ReceiveMessage(ctx)
		noErr(t, err)
		m, err := relock.ParseMessage(msg.Payload)
		noErr(t, err)
		stored, err := strconv.ParseInt(r.rdb.HGet(t.Context(), key.For("relock", "l").Hash, "token").Val(), 10, 64)
		noErr(t, err)
		if m.Verb != "grant" || m.Nonce != waits || m.Op != int64(op)+1 || m.High != stored || m.High-m.Low > int64(block) {
			t.Errorf("%q is understood as %+v, the counter is %d", msg.Payload, m, stored)
		}
	})
}

// nonceOf makes a nonce of any bytes, in its alphabet.
func nonceOf(seed []byte) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	b := []byte(nonce('x'))
	for i := range min(len(seed), len(b)) {
		b[i] = alphabet[seed[i]%64]
	}
	return string(b)
}
