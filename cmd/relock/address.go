//go:build unix

package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"

	"github.com/redis/go-redis/v9"
)

// An address is a parsed URL of Redis, in the form that go-redis reads.
type address struct {
	kind  string // "", "cluster" or "sentinel"
	url   string
	hosts string // as the user wrote them
}

// forms are the allowed forms of URLs, by kind.
var forms = map[string]string{
	"":         "redis://[user:password@]host:port[/db]",
	"cluster":  "redis+cluster://[user:password@]host:port,...",
	"sentinel": "redis+sentinel://[user:password@]sentinel:port,.../master[/db]",
}

// wrong returns an error that says what is wrong with a URL, and which form is expected. It shows no part of
// the URL: if the password is not escaped correctly, any part may belong to it.
func (a address) wrong(what string) error {
	return fmt.Errorf("the URL of Redis: %s; want %s, with / # ? @ %% in a password escaped as %%2F %%23 %%3F %%40 %%25", what, forms[a.kind])
}

// ownWords are the fixed beginnings of go-redis' errors. The URL may follow them.
var ownWords = regexp.MustCompile(`^redis: (unexpected option|invalid [A-Za-z_]+ (?:number|duration|boolean|scheme|path)): `)

// refused is wrong for an error of a parser. It shows only the fixed part of that error.
func (a address) refused(err error) error {
	if own := ownWords.FindStringSubmatch(err.Error()); own != nil {
		return a.wrong(own[1])
	}
	return a.wrong(unreadable)
}

// hostAndPort is an address without a scheme. There is no room for a password in it.
var hostAndPort = regexp.MustCompile(`^([A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\]):[0-9]+$`)

const unreadable = "it cannot be parsed"

// parseAddress reads redis://, rediss:// and unix:// as go-redis does. With +cluster or +sentinel after the
// scheme it reads several hosts, separated by commas. It reads host:port as redis://host:port. Its errors never show
// the URL, which may hold a password.
func parseAddress(raw string) (a address, err error) {
	if hostAndPort.MatchString(raw) {
		raw = "redis://" + raw
	}
	scheme, rest, is := strings.Cut(raw, "://")
	scheme, kind, _ := strings.Cut(scheme, "+")
	if !is || forms[kind] == "" {
		return a, a.wrong("it must be host:port, or begin with redis://, rediss:// or unix:// (the first two also with +cluster or +sentinel)")
	}
	a.kind = kind
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	user, hosts := "", authority
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		user, hosts = authority[:at+1], authority[at+1:]
	}
	// If a password has an unescaped slash, # or ?, its beginning would be read as a host and shown as one.
	_, malformed := url.ParseQuery(query) // go-redis skips malformed parameters
	behind := strings.Contains(path, "@") && (scheme != "unix" || hosts != "")
	if behind || malformed != nil || strings.Contains(raw, "#") {
		return a, a.wrong(unreadable)
	}
	if a.kind == "" {
		a.url = raw
		return a, nil
	}
	a.hosts = hosts
	err = a.rewrite(scheme+"://"+user, path, query)
	return a, err
}

// rewrite turns a URL with several hosts into one that go-redis reads.
func (a *address) rewrite(before, path, query string) error {
	first, others, _ := strings.Cut(a.hosts, ",")
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
			return a.wrong("the name of the master is missing")
		}
		path, more = db, append(more, "master_name="+url.QueryEscape(master))
	}
	a.url = before + a.ported(first) + "/" + path + "?" + strings.Join(more, "&")
	return nil
}

// ported adds the default port to a host that has none.
func (a address) ported(host string) string {
	if strings.LastIndex(host, ":") > strings.LastIndex(host, "]") {
		return host
	}
	if a.kind == "sentinel" {
		return host + ":26379"
	}
	return host + ":6379"
}

// dial returns a link without locks. It sends nothing yet.
func (s *server) dial() (*link, error) {
	a, err := parseAddress(s.url)
	if err != nil {
		return nil, err
	}
	var config *tls.Config
	var client func() redis.UniversalClient
	l := &link{addr: a.hosts}
	// Without ContextTimeoutEnabled, a server that hangs is waited for beyond the context's end.
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
	if err != nil {
		return nil, a.refused(err)
	}
	if err := s.certify(config); err != nil {
		return nil, err
	}
	l.rdb = client()
	return l, nil
}

// certify adds the flags' certificates to a client's TLS configuration.
func (s *server) certify(config *tls.Config) error {
	if s.cert == "" && s.key == "" && s.cacert == "" {
		return nil
	}
	if config == nil {
		return errors.New("-cert, -key and -cacert need TLS: use a URL that begins with rediss")
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
			return fmt.Errorf("-cacert: no certificate in %s", s.cacert)
		}
	}
	return nil
}
