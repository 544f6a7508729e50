//go:build unix

package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
)

// An address is what a URL of Redis says, in the form that go-redis reads.
type address struct {
	kind  string // "", "cluster" or "sentinel"
	url   string
	hosts string // as the user wrote them
}

// parseAddress reads redis://, rediss:// and unix:// as go-redis does, and with +cluster
// or +sentinel behind the scheme several hosts with commas between them. Its errors
// never show the URL, which may hold a password.
func parseAddress(raw string) (a address, err error) {
	scheme, rest, _ := strings.Cut(raw, "://")
	scheme, a.kind, _ = strings.Cut(scheme, "+")
	switch a.kind {
	case "":
		a.url = raw
		return a, nil
	case "cluster", "sentinel":
	default:
		return a, fmt.Errorf("redis+%s:// is unknown: redis+cluster:// and redis+sentinel:// are known", a.kind)
	}
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	user, hosts := "", authority
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		user, hosts = authority[:at+1], authority[at+1:]
	}
	a.hosts = hosts
	first, others, _ := strings.Cut(hosts, ",")
	var more []string
	for host := range strings.SplitSeq(others, ",") {
		if host != "" {
			more = append(more, "addr="+url.QueryEscape(a.ported(host)))
		}
	}
	if query != "" {
		more = append(more, query)
	}
	if a.kind == "sentinel" {
		master, db, _ := strings.Cut(path, "/")
		if master == "" {
			return a, errors.New("want redis+sentinel://sentinel:port,.../master: the name of the master is missing")
		}
		path, more = db, append(more, "master_name="+url.QueryEscape(master))
	}
	a.url = scheme + "://" + user + a.ported(first) + "/" + path + "?" + strings.Join(more, "&")
	return a, nil
}

// ported adds the usual port where a host has none.
func (a address) ported(host string) string {
	if strings.LastIndex(host, ":") > strings.LastIndex(host, "]") {
		return host
	}
	if a.kind == "sentinel" {
		return host + ":26379"
	}
	return host + ":6379"
}

// dial returns a link without its locks, and has asked nothing yet.
func (s *server) dial() (*link, error) {
	a, err := parseAddress(s.url)
	var config *tls.Config
	var client func() redis.UniversalClient
	l := &link{addr: a.hosts}
	if err == nil {
		// Without ContextTimeoutEnabled a server that hangs is waited for longer than is asked.
		switch a.kind {
		case "cluster":
			var o *redis.ClusterOptions
			if o, err = redis.ParseClusterURL(a.url); err == nil {
				o.ContextTimeoutEnabled, config = true, o.TLSConfig
				client = func() redis.UniversalClient { return redis.NewClusterClient(o) }
			}
		case "sentinel":
			var o *redis.FailoverOptions
			if o, err = redis.ParseFailoverURL(a.url); err == nil {
				o.ContextTimeoutEnabled, config = true, o.TLSConfig
				client = func() redis.UniversalClient { return redis.NewFailoverClient(o) }
			}
		default:
			var o *redis.Options
			if o, err = redis.ParseURL(a.url); err == nil {
				o.ContextTimeoutEnabled, config, l.addr = true, o.TLSConfig, o.Addr
				client = func() redis.UniversalClient { return redis.NewClient(o) }
			}
		}
	}
	if bad, is := errors.AsType[*url.Error](err); is {
		err = bad.Err // its message would show the URL, with the password in it
	}
	if err != nil {
		return nil, fmt.Errorf("the URL of Redis: %w", err)
	}
	if err := s.certify(config); err != nil {
		return nil, err
	}
	l.rdb = client()
	return l, nil
}

// certify adds to a client's TLS what the flags say.
func (s *server) certify(config *tls.Config) error {
	if s.cert == "" && s.key == "" && s.cacert == "" {
		return nil
	}
	if config == nil {
		return errors.New("-cert, -key and -cacert are for TLS: want a URL that begins with rediss")
	}
	if s.cert != "" || s.key != "" {
		pair, err := tls.LoadX509KeyPair(s.cert, s.key)
		if err != nil {
			return fmt.Errorf("-cert and -key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if s.cacert != "" {
		pem, err := os.ReadFile(s.cacert)
		if err != nil {
			return fmt.Errorf("-cacert: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("-cacert: there is no certificate in %s", s.cacert)
		}
	}
	return nil
}
