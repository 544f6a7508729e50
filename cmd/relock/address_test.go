//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/redistest"
)

func TestAddressesAreReadAsGoRedisReadsThem(t *testing.T) {
	for raw, want := range map[string]string{
		"redis://u:p@h:1/2": "redis://u:p@h:1/2",
		"redis+cluster://h": "redis://h:6379/?",
		"rediss+cluster://u:p,@a:1,b,[::1]?read_timeout=1": "rediss://u:p,@a:1/?addr=b%3A6379&addr=%5B%3A%3A1%5D%3A6379&read_timeout=1",
		"redis+sentinel://u:p@a,b:1/main/3":                "redis://u:p@a:26379/3?addr=b%3A1&master_name=main",
	} {
		if a, err := parseAddress(raw); err != nil || a.url != want {
			t.Errorf("%s: %q, %v, want %q", raw, a.url, err, want)
		}
	}
	for _, raw := range []string{"redis+sentinel://a:1", "redis+ring://a:1", "redis+cluster://a:x", "redis+sentinel://:hunter2@a:1/m/n"} {
		l, err := (&server{url: raw}).dial()
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, %v, want an error without the password", raw, l, err)
		}
	}
}

// everyCommand runs, holds names in several slots, and lists them.
func everyCommand(t *testing.T, flags ...string) {
	t.Helper()
	w := worldAt(t, "")
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		command := append(append([]string{}, flags...), "run", name, "--", "echo", "ran")
		if status, out, complaint := w.relock(command...); status != 0 || out != "ran\n" {
			t.Errorf("relock %q: status %d, %q, %q", command, status, out, complaint)
		}
		if status, out, complaint := w.relock(append(flags, "info", name)...); status != 0 || out != name+" is free\n0 waiting\n" {
			t.Errorf("info %s: status %d, %q, %q", name, status, out, complaint)
		}
	}
	if status, _, complaint := w.relock(append(flags, "ls")...); status != 0 {
		t.Errorf("ls: status %d, %q", status, complaint)
	}
}

func TestCommandsWorkOnACluster(t *testing.T) {
	c := redistest.StartCluster(t)
	flags := []string{"-redis", "redis+cluster://" + c.Serving(0).Addr() + "," + c.Serving(16000).Addr()}
	everyCommand(t, flags...)
	w := worldAt(t, flags[1])
	found, status := w.doctor()
	for _, check := range []string{"version", "clock", "messages", "locks"} {
		if f := found[check]; f.Result != fine {
			t.Errorf("%s: %+v, want it to be ok", check, f)
		}
	}
	if _, out, _ := w.relock("doctor", "-watch", "0"); status != 0 || strings.Count(out, "version of ") != 3 {
		t.Errorf("doctor: status %d, %q, want 3 primaries", status, out)
	}
}

func TestCommandsWorkBySentinel(t *testing.T) {
	s := redistest.StartSentinel(t)
	var by redis.FailoverOptions
	s.Client(t, func(o *redis.FailoverOptions) { by = *o })
	url := "redis+sentinel://" + strings.Join(by.SentinelAddrs, ",") + "/" + by.MasterName
	everyCommand(t, "-redis", url)
	if found, status := worldAt(t, url).doctor(); status != 0 || found["locks"].Result != fine {
		t.Errorf("doctor: status %d, %v", status, found)
	}
}

func TestCommandsShowACertificate(t *testing.T) {
	s := redistest.StartTLS(t)
	url := "rediss://" + s.TLSAddr()
	flags := []string{"-redis", url, "-cert", s.Cert, "-key", s.Key, "-cacert", s.CACert}
	everyCommand(t, flags...)
	w := worldAt(t, url)
	for want, args := range map[int][]string{
		exitUnavailable: {"info", "x", "-cacert", s.CACert}, // the server asks for one
		exitUsage:       {"info", "x", "-cert", s.Cert},     // which key?
	} {
		if status, _, complaint := w.relock(args...); status != want || complaint == "" {
			t.Errorf("relock %q: status %d, %q, want %d", args, status, complaint, want)
		}
	}
	if status, _, complaint := w.relock("info", "x", "-cacert", s.CACert, "-redis", "redis://"+s.Addr()); status != exitUsage || !strings.Contains(complaint, "rediss") {
		t.Errorf("a certificate without TLS: status %d, %q", status, complaint)
	}
}
