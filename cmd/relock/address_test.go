//go:build unix

package main

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/redistest"
)

func TestAddressesAreReadAsGoRedisReadsThem(t *testing.T) {
	for raw, want := range map[string]string{
		"redis://u:p@h:1/2": "redis://u:p@h:1/2",
		"h:6379":            "redis://h:6379",
		"[::1]:6379":        "redis://[::1]:6379",
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

// The parts of a password that is written as it is, where a URL has other marks for it.
var unescaped = []string{
	"redis://:s3cret/more@host:6379", "redis://u:s3cret#more@host:6379", "redis://u:s3cret?more@host:6379", "redis://:s3cret%more@host:6379", "redis://:s3cret more@host:6379",
	"redis://u:p@s3cret/more@host:6379", "redis://u:4711/s3cret@host:6379", "redis://u:4711/s3cret/more@host:6379/0", "redis://u:4711#more@host:6379",
	"redis://u:4711?more@host", "redis://u:4711?db=s3cret@host", "redis://u:4711?read_timeout=s3cret@host", "redis://u:4711?s3cret;@host",
	"redis+cluster://:s3cret/more@host", "redis+cluster://u:4711/more@host", "redis+cluster://u:4711#more@host", "redis+cluster://u:4711?s3cret@host", "redis+cluster://:s3cret%more@host,b:1",
	"redis+sentinel://:s3cret/more@host/main", "redis+sentinel://u:4711/s3cret@host/main", "redis+sentinel://u:4711/s3cret@host/0", "redis+sentinel://u:4711#more@host/main",
	"redis+sentinel://u:4711?s3cret@host/main", "redis+sentinel://:s3cret%more@host/main",
	"unix://:s3cret/more@/run/redis.sock", "unix://:4711/s3cret@/run/redis.sock", "unix://u:p@4711/s3cret@/run/redis.sock",
	"s3cret", "user:more+s3cret@host:6379", "redis+s3cret://host", "s3cret://host", "redis:s3cret@host", "redis://host/s3cret", "redis://host/0/s3cret", "redis://host?s3cret=more",
}

// Fails when an error shows what stands in the URL: a parser's own says what it has met.
func TestNoErrorShowsAPartOfAPassword(t *testing.T) {
	w := worldAt(t, "")
	for _, raw := range unescaped {
		status, out, complaint := w.relockEnv([]string{"REDIS_URL=" + raw}, "info", "x", "-json")
		for _, part := range []string{"s3cret", "more", "4711", "host:6379", "@host"} {
			if strings.Contains(out+complaint, part) {
				t.Errorf("%s: %s shows %q", raw, complaint, part)
			}
		}
		if status != exitUsage || !strings.Contains(complaint, "want redis") || !strings.Contains(complaint, "%2F %23 %3F %40 %25") {
			t.Errorf("%s: status %d, %q, want the form that is wanted", raw, status, complaint)
		}
	}
}

// Fails when a URL that is written as the errors say is refused, or read otherwise.
func TestPasswordWithMarksOfAURLIsReadAsTheErrorsSay(t *testing.T) {
	const written, password = "a%2Fb%23c%3Fd%40e%25f", "a/b#c?d@e%f"
	l, err := (&server{url: "redis://u:" + written + "@h:1/2?client_name=x"}).dial()
	if err != nil {
		t.Fatal(err)
	}
	defer l.rdb.Close()
	if o := l.rdb.(*redis.Client).Options(); o.Password != password || o.Addr != "h:1" || o.DB != 2 {
		t.Errorf("%q at %s, %d, want %q at h:1, 2", o.Password, o.Addr, o.DB, password)
	}
	a, err := parseAddress("redis+cluster://u:" + written + "@h,i")
	if err != nil {
		t.Fatal(err)
	}
	if o, err := redis.ParseClusterURL(a.url); err != nil || o.Password != password || len(o.Addrs) != 2 || a.hosts != "h,i" {
		t.Errorf("a Cluster: %+v, %v", o, err)
	}
	if a, err = parseAddress("redis+sentinel://u:" + written + "@h/main?password=p@q"); err != nil {
		t.Fatal(err)
	}
	if o, err := redis.ParseFailoverURL(a.url); err != nil || o.SentinelPassword != password || o.MasterName != "main" || o.Password != "p@q" {
		t.Errorf("by Sentinel: %+v, %v", o, err)
	}
	for _, raw := range []string{"unix:///run/a@b.sock", "unix://u:" + written + "@/run/redis.sock?db=1", "rediss://[::1]", "redis://h?protocol=2"} {
		l, err := (&server{url: raw}).dial()
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		l.rdb.Close()
	}
}

// Fails when an error says no more than that something is wrong, though what go-redis says has a part without the URL.
func TestErrorSaysWhatOfTheURLIsWrong(t *testing.T) {
	for raw, want := range map[string]string{
		"redis://h/x": "invalid database number", "redis://h?x=1": "unexpected option", "redis://h?read_timeout=x": "invalid read_timeout duration",
		"http://h": "invalid URL scheme", "h": "it must be host:port", "u:p@h:6379": "it must be host:port, or begin with", "redis+sentinel://h": "the name of the master", "redis://h:x": unreadable,
	} {
		_, err := (&server{url: raw}).dial()
		if err == nil || !strings.HasPrefix(err.Error(), "the URL of Redis: "+want) {
			t.Errorf("%s: %v, want %q", raw, err, want)
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
	if found, status := worldAt(t, url).doctor(); status != 0 || found["locks"].Result != fine || found["version"].Server != strings.Join(by.SentinelAddrs, ",") {
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

// A client by Sentinel has no address of its own. Fails when go-redis' placeholder is dialled.
func TestTheReasonOfASilenceBySentinelNamesNoPlaceholder(t *testing.T) {
	s := &server{url: "redis+sentinel://127.0.0.1:1/main", prefix: "relock"}
	l, err := s.dial()
	if err != nil {
		t.Fatal(err)
	}
	defer l.rdb.Close()
	if why := s.reason(t.Context(), l, context.DeadlineExceeded); strings.Contains(why.Error(), "FailoverClient") {
		t.Errorf("%v", why)
	}
}
