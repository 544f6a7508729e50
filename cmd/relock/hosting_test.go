//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/relock-go/relock/internal/redistest"
)

// TestDoctorNamesWhatAHosterRefuses has a proxy play each restriction of docs/servers.md.
func TestDoctorNamesWhatAHosterRefuses(t *testing.T) {
	withinSlot := redistest.Hosting{SlotPublish: true}
	for name, c := range map[string]struct {
		refuses redistest.Hosting
		at      string // behind the address
		args    []string
		status  int
		check   string
		result  string
		found   string
		advice  string
	}{
		"publish within the slot":          {refuses: withinSlot, status: exitFailed, check: "messages", result: wrong, found: "same slot", advice: "ShardedPubSub"},
		"publish within the slot, lock":    {refuses: withinSlot, status: exitFailed, check: "locks", result: wrong, found: "ShardedPubSub", advice: "-sharded"},
		"publish within the slot, sharded": {refuses: withinSlot, args: []string{"-sharded"}, check: "locks", result: fine, found: "handed over"},
		"no publish":                       {refuses: redistest.Hosting{Refuses: []string{"publish", "subscribe"}}, status: exitFailed, check: "messages", result: wrong, found: "subscribe", advice: "-sharded"},
		"no sharded channels": {
			refuses: redistest.Hosting{Refuses: []string{"spublish", "ssubscribe", "pubsub|shardnumsub"}}, args: []string{"-sharded"},
			status: exitFailed, check: "messages", result: wrong, found: "ssubscribe", advice: "leave out the option ShardedPubSub",
		},
		"no management": {
			refuses: redistest.Hosting{Refuses: []string{"config", "info", "client", "cluster"}},
			check:   "commands", result: fine, found: "CONFIG, INFO, CLIENT, CLUSTER", advice: "do not need",
		},
		"no management, eviction": {refuses: redistest.Hosting{Refuses: []string{"config", "info"}}, check: "eviction", result: unknown, found: "info", advice: "noeviction"},
		"no script load":          {refuses: redistest.Hosting{Refuses: []string{"script|load"}}, check: "commands", result: fine, found: "SCRIPT LOAD", advice: "do not need"},
		"nobody is counted":       {refuses: redistest.Hosting{Uncounted: true}, status: exitFailed, check: "messages", result: wrong, found: "NUMSUB 0", advice: "proxy"},
		"no hello":                {refuses: redistest.Hosting{Refuses: []string{"hello"}}, check: "version", result: fine},
		"no hello, no info":       {refuses: redistest.Hosting{Refuses: []string{"hello", "info"}}, check: "version", result: unknown, found: "hello", advice: "RESP2"},
		"database 0 alone": {
			refuses: redistest.Hosting{OneDatabase: true}, at: "/2",
			status: exitFailed, check: "database", result: wrong, found: "database 2 is refused", advice: "-prefix",
		},
		"read only": {refuses: redistest.ReadOnly(), status: exitFailed, check: "writes", result: wrong, found: "READONLY", advice: "primary"},
	} {
		t.Run(name, func(t *testing.T) {
			w := worldAt(t, "redis://"+redistest.Host(t, c.refuses).Addr()+c.at)
			found, status := w.doctor(c.args...)
			f := found[c.check]
			if status != c.status || f.Result != c.result || !strings.Contains(strings.ToLower(f.Found), strings.ToLower(c.found)) || !strings.Contains(f.Advice, c.advice) {
				t.Errorf("status %d, %+v; want %d, and %s to be %s: %q, %q", status, f, c.status, c.check, c.result, c.found, c.advice)
			}
		})
	}
}

func TestDoctorNamesAServerThatTakesTLSOnly(t *testing.T) {
	worldAt(t, "redis://"+redistest.StartTLS(t).TLSAddr()).wantWrong("connection", "only TLS")
}

// A command waits, and is woken, behind a proxy that lets scripts publish only in the slot of
// their keys.
func TestCommandsWorkOnShardedChannels(t *testing.T) {
	w := worldAt(t, "redis://"+redistest.Host(t, redistest.Hosting{SlotPublish: true}).Addr())
	if status, out, complaint := w.relock("run", "-sharded", "x", "--", "echo", "ran"); status != 0 || out != "ran\n" {
		t.Errorf("run: status %d, %q, %q", status, out, complaint)
	}
	if status, _, complaint := w.relock("run", "x", "--", "echo", "ran"); status != exitUnavailable || !strings.Contains(complaint, "ShardedPubSub") {
		t.Errorf("run without the flag: status %d, %q, want %d, and the option", status, complaint, exitUnavailable)
	}
}
