//go:build unix

package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// The doctor's advice about servers that refuse something, as hosted servers do. docs/servers.md has the same
// list.
const (
	adviceSharded  = "use the option ShardedPubSub (here -sharded)"
	advicePlain    = "leave out the option ShardedPubSub (here -sharded)"
	adviceListed   = "docs/operations.md lists the permissions that locks need"
	adviceDatabase = "use database 0; keep applications apart with KeyPrefix (here -prefix)"
	adviceTLS      = "use a URL that begins with rediss; in Go, set TLSConfig"
	advicePrimary  = "no lock can be taken here: connect to the primary"
	adviceEviction = "ask the provider whether maxmemory-policy is noeviction, or grant +info"
	adviceKept     = "ask the provider whether data survives a restart, or grant +config|get"
)

// advice returns what helps against an error of a lock.
func advice(err error) string {
	switch text := err.Error(); {
	case strings.Contains(text, "ShardedPubSub"):
		return adviceSharded
	case redis.HasErrorPrefix(err, "READONLY"), strings.Contains(text, "READONLY"):
		return advicePrimary
	}
	return adviceListed
}

// unreachable looks for the reason why Redis cannot be asked, and reports whether it has found one.
func (d *doctor) unreachable(ctx context.Context, failed error) bool {
	l, err := d.at.dial()
	if err != nil {
		return false
	}
	defer l.rdb.Close()
	rdb, is := l.rdb.(*redis.Client)
	if !is {
		return false
	}
	f := finding{Server: l.addr, Result: wrong, Found: failed.Error()}
	var answer redis.Error
	switch o := rdb.Options(); {
	case errors.As(failed, &answer) && o.DB != 0 && (&link{rdb: d.without(rdb)}).answers(ctx):
		f.Check, f.Advice = "database", adviceDatabase
		f.Found = fmt.Sprintf("database %d is refused: %v", o.DB, errors.Unwrap(failed))
	case o.TLSConfig == nil && hungUp(failed) && takesTLS(ctx, o):
		f.Check, f.Found, f.Advice = "connection", "the server accepts only TLS", adviceTLS
	default:
		return false
	}
	d.add(f)
	return true
}

// without returns a client of the same server that selects no database. The caller must close it.
func (d *doctor) without(rdb *redis.Client) *redis.Client {
	o := *rdb.Options()
	o.DB = 0
	return redis.NewClient(&o)
}

// answers reports whether Redis answers, and closes the link.
func (l *link) answers(ctx context.Context) bool {
	defer l.rdb.Close()
	err := l.rdb.Time(ctx).Err()
	return err == nil || redis.IsPermissionError(err)
}

// hungUp reports whether a server has sent nothing, or nothing that Redis would send.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "can't parse")
}

// takesTLS reports whether a server completes a TLS handshake. Nothing is sent after that, so its certificate
// need not be trusted.
func takesTLS(ctx context.Context, o *redis.Options) bool {
	ctx, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	host, _, _ := net.SplitHostPort(o.Addr)
	dialer := tls.Dialer{Config: &tls.Config{ServerName: host, InsecureSkipVerify: true}} //nolint:gosec // see above
	c, err := dialer.DialContext(ctx, cmp.Or(o.Network, "tcp"), o.Addr)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

// unneeded are commands that hosters refuse and that locks do not need. CLUSTER may be missing, but a user who may not
// run it gets no lock: see lua/permit.lua.
var unneeded = []struct {
	name string
	args []any
}{
	{"CONFIG", []any{"config", "get", "maxmemory"}},
	{"INFO", []any{"info", "server"}},
	{"CLIENT", []any{"client", "id"}},
	{"CLUSTER", []any{"cluster", "myid"}},
	{"SCRIPT LOAD", []any{"script", "load", "return 1"}},
}

// commands reports which of the unneeded commands are refused.
func (c *checkup) commands(ctx context.Context) {
	var refused []string
	for _, command := range unneeded {
		err := c.rdb.Do(ctx, command.args...).Err()
		var answer redis.Error
		switch {
		case !errors.As(err, &answer), strings.Contains(err.Error(), "cluster support disabled"):
		case command.name == "CLUSTER" && redis.IsPermissionError(err): // locks need that permission, and their check names it
		default:
			refused = append(refused, command.name)
		}
	}
	if len(refused) > 0 {
		c.add("commands", fine, "refused: "+strings.Join(refused, ", "), "locks do not need them")
	}
}

// writes checks that the server accepts writes, even if it did not say that it is a replica.
func (c *checkup) writes(ctx context.Context) {
	err := c.rdb.HDel(ctx, c.at.prefix+":doctor:"+uuid.NewString(), "-").Err()
	if redis.IsReadOnlyError(err) && !c.replica {
		c.replica = true
		c.doctor.add(finding{Check: "writes", Server: c.addr, Result: wrong, Found: err.Error(), Advice: advicePrimary})
	}
}

// plainEcho and shardedEcho count the subscribers of a channel in a script, and publish there. They return
// the count, or -1 and the error.
var (
	plainEcho   = newEcho("NUMSUB", "PUBLISH")
	shardedEcho = newEcho("SHARDNUMSUB", "SPUBLISH")
)

func newEcho(count, publish string) *redis.Script {
	return redis.NewScript(fmt.Sprintf(`
local seen, sent = redis.pcall('PUBSUB', '%s', ARGV[1]), redis.pcall('%s', ARGV[1], 'heard')
if type(sent) == 'table' then return { -1, sent.err } end
return { seen.err and -1 or seen[2], '' }
`, count, publish))
}

// An echoed is what happened to a message that a script has sent.
type echoed struct {
	seen    int64  // subscribers that the script has counted; -1: it may not count
	refused string // the error of the script's PUBLISH or SPUBLISH
	heard   bool
	err     error // of the subscription, or of the script
	deaf    bool  // err is the error of the subscription
}

// echo has a script send a message: to a sharded channel in the slot of its key, or to a plain channel that
// is in no slot, as inboxes are.
func (d *doctor) echo(ctx context.Context, sharded bool) (e echoed, channel string) {
	key := d.at.prefix + ":doctor:{" + uuid.NewString() + "}"
	channel, script, subscribe := d.at.prefix+":doctor:"+uuid.NewString(), plainEcho, d.link.rdb.Subscribe
	if sharded {
		channel, script, subscribe = key, shardedEcho, d.link.rdb.SSubscribe
	}
	sub := subscribe(ctx, channel)
	defer sub.Close()
	if _, err := sub.ReceiveTimeout(ctx, farewell); err != nil {
		e.err, e.deaf = err, true
		return e, channel
	}
	reply, err := script.Run(ctx, d.link.rdb, []string{key}, channel).Slice()
	if err != nil || len(reply) != 2 {
		e.err = cmp.Or(err, fmt.Errorf("a script returned %v", reply))
		return e, channel
	}
	e.seen, _ = reply[0].(int64)
	e.refused, _ = reply[1].(string)
	if e.refused == "" {
		e.heard = heard(ctx, sub.Channel())
	}
	return e, channel
}

// heard reports whether a message arrives that a script has sent.
func heard(ctx context.Context, messages <-chan *redis.Message) bool {
	over := time.NewTimer(farewell)
	defer over.Stop()
	select {
	case _, open := <-messages:
		return open
	case <-over.C:
	case <-ctx.Done():
	}
	return false
}

// messages checks that a script sees subscribers, and that its messages arrive.
func (d *doctor) messages(ctx context.Context) {
	f := finding{Check: "messages", Result: fine}
	defer func() { d.add(f) }()
	e, channel := d.echo(ctx, d.at.sharded)
	_, clustered := d.link.rdb.(*redis.ClusterClient) // each server of a Cluster only knows its own subscribers
	f.Result = wrong
	switch {
	case e.deaf:
		f.Found = "cannot subscribe to " + channel + ": " + e.err.Error()
		f.Advice = "the user needs +subscribe and the channels &" + d.at.prefix + ":*; otherwise waiters are not woken"
		if d.at.sharded {
			f.Advice = strings.Replace(f.Advice, "+subscribe", "+ssubscribe", 1)
		}
		d.otherWay(ctx, &f)
	case e.err != nil:
		f.Found, f.Advice = e.err.Error(), adviceListed
	case e.refused != "":
		f.Found, f.Advice = "a script cannot publish to "+channel+": "+e.refused, adviceListed
		d.otherWay(ctx, &f)
	case !e.heard:
		f.Found = fmt.Sprintf("a message from a script does not arrive (NUMSUB %d)", e.seen)
		f.Advice = "waiters are not woken, and poll once a second: is there a proxy in front of several servers?"
	case e.seen == 0 && !clustered:
		f.Found = "a script does not see subscribers (NUMSUB 0)"
		f.Advice = "locks are correct, but the lease of a dead waiter delays the next: is there a proxy in front of several servers?"
	default:
		f.Result, f.Found = fine, "messages from scripts arrive"
	}
}

// otherWay checks whether the other kind of channel would work.
func (d *doctor) otherWay(ctx context.Context, f *finding) {
	e, _ := d.echo(ctx, !d.at.sharded)
	if !e.heard {
		return
	}
	if f.Advice = adviceSharded; d.at.sharded {
		f.Advice = advicePlain
	}
}
