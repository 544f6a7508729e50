//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock"
)

const doctorAbout = `Asks each primary for its version, settings and clock, takes a lock of its own, and hands
the lock over. Its data under the key prefix expires after about a minute, the labels of
its clients after about ten.
`

const doctorAfter = `For all checks, the user needs +info and +config|get besides the permissions for locks.

Exit status: 0 nothing is wrong, but there may be warnings; 1 something is wrong;
64 wrong usage; 69 Redis cannot be reached.
`

// The results of a check. If a user may not see something, the result is unknown, which is no fault.
const (
	fine    = "ok"
	warning = "warning"
	wrong   = "wrong"
	unknown = "unknown"
)

// A finding is the doctor's result for one check.
type finding struct {
	Check  string `json:"check"`
	Server string `json:"server"` // "": of all
	Result string `json:"result"`
	Found  string `json:"found"`
	Advice string `json:"advice"`
}

// A doctor examines one Redis.
type doctor struct {
	*tool
	at    server
	link  *link
	watch time.Duration
	// The servers of a Cluster are examined at the same time.
	mu      sync.Mutex
	found   []finding
	replica bool // a replica can only be looked at
}

func (t *tool) doctor(fs *flags) action {
	d := &doctor{tool: t}
	spanVar(fs, &d.watch, "watch", 2*time.Second, "D: how long to compare the server's clock with this machine's (default 2s)")
	d.at.flags(fs, t.env)
	return t.takesNothing("doctor", func(ctx context.Context) int {
		var err error
		if d.link, err = d.at.connect(ctx, relock.TokenKeep(doctorKeep)); err != nil {
			if d.unreachable(ctx, err) {
				return d.report()
			}
			return t.fail(err)
		}
		defer d.link.close()
		if err := d.examine(ctx); err != nil {
			return t.fail(err)
		}
		return d.report()
	})
}

// doctorKeep is how long the doctor's data stays in Redis. doctorTTL is how long its lock outlives a doctor
// that is killed.
const (
	doctorKeep = time.Minute
	doctorTTL  = 5 * time.Second
)

// examine examines each server, and then how locks work there.
func (d *doctor) examine(ctx context.Context) error {
	look := func(ctx context.Context, rdb *redis.Client) error {
		c := &checkup{doctor: d, rdb: rdb, addr: rdb.Options().Addr}
		if redis.UniversalClient(rdb) == d.link.rdb {
			c.addr = d.link.addr // go-redis has no address of a client by Sentinel
		}
		c.version(ctx)
		c.writes(ctx)
		c.commands(ctx)
		c.settings(ctx)
		c.clock(ctx)
		return nil
	}
	var err error
	switch rdb := d.link.rdb.(type) {
	case *redis.ClusterClient:
		err = rdb.ForEachMaster(ctx, look)
	case *redis.Client:
		err = look(ctx, rdb)
	default:
		err = fmt.Errorf("cannot examine a %T", rdb)
	}
	if err != nil {
		return err
	}
	if !d.replica {
		d.messages(ctx)
		d.locks(ctx)
	}
	return ctx.Err()
}

func (d *doctor) add(f finding) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.found = append(d.found, f)
}

// report prints the findings in the order in which they came. With -q it prints only what is wrong.
func (d *doctor) report() (status int) {
	style := map[string]string{fine: green, warning: yellow, wrong: red, unknown: faint}
	p := &printer{say: d.say, color: colored(d.out, d.env)}
	for _, f := range d.found {
		if f.Result == wrong {
			status = exitFailed
		}
		switch {
		case d.json:
			d.tell(d.out, f)
			continue
		case d.quiet && f.Result != wrong:
			continue
		}
		where := f.Check
		if f.Server != "" {
			where += " of " + f.Server
		}
		d.say("%s  %s: %s\n", p.paint(style[f.Result], fmt.Sprintf("%-7s", f.Result)), where, f.Found)
		if f.Advice != "" {
			d.say("         %s\n", f.Advice)
		}
	}
	return status
}

// locks takes a lock, has a second client wait for it, and hands it over.
func (d *doctor) locks(ctx context.Context) {
	f := finding{Check: "locks", Result: fine}
	defer func() { d.add(f) }()
	took, err := d.handOff(ctx)
	switch {
	case errors.Is(err, context.Canceled):
		f.Result, f.Found = unknown, err.Error()
	case err != nil:
		f.Result, f.Found, f.Advice = wrong, trimName(err), advice(err)
	case took > time.Second/2:
		f.Result, f.Found = warning, fmt.Sprintf("handed over after %v", took)
		f.Advice = "the waiter was not woken, but polled: see messages"
	default:
		f.Found = fmt.Sprintf("taken, and handed over in %v", took)
	}
}

// handOff returns how long after the release a second client, which waited, held the lock.
func (d *doctor) handOff(ctx context.Context) (took time.Duration, err error) {
	const most = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	name := "doctor/" + uuid.NewString()
	lock := d.link.locks.NewLock(name, relock.TTL(doctorTTL))
	hold, err := lock.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = hold.Release() }() // already released, unless something is wrong
	second, err := d.at.connect(ctx, relock.TokenKeep(doctorKeep))
	if err != nil {
		return 0, err
	}
	defer second.close()
	next := make(chan error, 1)
	var got time.Time
	go func() {
		h, err := second.locks.NewLock(name, relock.TTL(doctorTTL)).Acquire(ctx)
		if got = time.Now(); err == nil {
			err = h.Release()
		}
		next <- err
	}()
	if err = d.awaitWaiter(ctx, lock); err != nil {
		cancel()
		return 0, errors.Join(err, <-next)
	}
	began := time.Now()
	err = errors.Join(hold.Release(), <-next)
	return got.Sub(began).Round(time.Microsecond), err
}

// awaitWaiter polls until somebody waits, because Redis sends no message when a waiter joins.
func (d *doctor) awaitWaiter(ctx context.Context, lock *relock.Lock) error {
	again := time.NewTicker(probeEvery)
	defer again.Stop()
	for {
		info, err := lock.Info(ctx)
		if err != nil || info.Waiters > 0 {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
