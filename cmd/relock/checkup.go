//go:build unix

package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// A checkup examines one server.
type checkup struct {
	*doctor
	rdb  *redis.Client
	addr string
}

func (c *checkup) add(check, result, found, advice string) {
	c.doctor.add(finding{Check: check, Server: c.addr, Result: result, Found: found, Advice: advice})
}

// version reads the server's version by HELLO, which every user may send.
func (c *checkup) version(ctx context.Context) {
	hello := map[string]string{}
	said, err := c.rdb.Do(ctx, "HELLO").Result()
	if err != nil {
		// A server that only has RESP2 has no HELLO.
		info, infoErr := c.section(ctx, "server")
		if infoErr != nil || info["redis_version"] == "" {
			c.add("version", unknown, err.Error(), "Redis 7.0 or Valkey is needed, and RESP2 is enough: see the check of locks below")
			return
		}
		hello["server"], hello["version"], hello["mode"] = "redis", info["redis_version"], info["redis_mode"]
		if info["valkey_version"] != "" {
			hello["server"], hello["version"] = "valkey", info["valkey_version"]
		}
	}
	switch said := said.(type) {
	case map[any]any:
		for k, v := range said {
			hello[fmt.Sprint(k)] = fmt.Sprint(v)
		}
	case []any:
		for pair := range slices.Chunk(said, 2) {
			hello[fmt.Sprint(pair[0])] = fmt.Sprint(pair[len(pair)-1])
		}
	}
	name, version := hello["server"], hello["version"]
	found := strings.Join(strings.Fields(name+" "+version+" "+hello["mode"]+" "+hello["role"]), " ")
	major, _, _ := strings.Cut(version, ".")
	switch n, err := strconv.Atoi(major); {
	case hello["role"] != "" && hello["role"] != "master":
		c.replica = true // for a single server only
		c.add("version", wrong, found, "no lock can be taken on a replica: connect to the primary, or through the Sentinels")
	case name == "redis" && (err != nil || n < 7):
		c.add("version", wrong, found, "Redis 7.0 or Valkey is needed")
	default:
		c.add("version", fine, found, "")
	}
}

// settings checks memory and persistence, as INFO shows them.
func (c *checkup) settings(ctx context.Context) {
	memory, err := c.section(ctx, "memory")
	if err != nil {
		c.add("eviction", unknown, err.Error(), adviceEviction)
		c.add("persistence", unknown, err.Error(), adviceKept)
		return
	}
	c.eviction(memory["maxmemory_policy"], memory["maxmemory"])
	if kept, err := c.section(ctx, "persistence"); err == nil {
		c.persistence(ctx, kept)
	}
}

func (c *checkup) eviction(policy, most string) {
	const advice = "set maxmemory-policy to noeviction: Redis may remove a lock that is held"
	switch {
	case policy == "":
		c.add("eviction", unknown, "the server does not report its policy", "")
	case policy == "noeviction":
		c.add("eviction", fine, policy, "")
	case most == "0":
		c.add("eviction", warning, policy+", and maxmemory is not set", advice+" once maxmemory is set")
	default:
		c.add("eviction", wrong, policy+", at maxmemory "+most, advice)
	}
}

func (c *checkup) persistence(ctx context.Context, kept map[string]string) {
	if kept["aof_enabled"] == "1" {
		found := "append-only file"
		if set, err := c.rdb.ConfigGet(ctx, "appendfsync").Result(); err == nil {
			found += ", appendfsync " + set["appendfsync"]
		}
		c.add("persistence", fine, found, "")
		return
	}
	set, err := c.rdb.ConfigGet(ctx, "save").Result()
	switch {
	case err != nil:
		c.add("persistence", unknown, "no append-only file; "+err.Error(), adviceKept)
	case set["save"] != "":
		c.add("persistence", warning, "snapshots only", "a restart brings back old locks, or none; appendonly yes keeps locks")
	default:
		c.add("persistence", warning, "none", "a restart frees all locks while their holders still work; appendonly yes prevents that")
	}
}

func (c *checkup) section(ctx context.Context, name string) (map[string]string, error) {
	text, err := c.rdb.Info(ctx, name).Result()
	if err != nil {
		return nil, err
	}
	said := map[string]string{}
	for line := range strings.Lines(text) {
		if k, v, is := strings.Cut(strings.TrimSpace(line), ":"); is {
			said[k] = v
		}
	}
	return said, nil
}

// A reading is one reading of a server's clock. The clock showed that time at some instant between the
// request and the answer.
type reading struct {
	asked, answered, there time.Time
}

const (
	readEvery = 50 * time.Millisecond
	// clockRate is how much slower or faster than this machine's clock a server's clock may run. Redis tells
	// the time of its event loop's last iteration, which a busy machine delays.
	clockRate  = 0.01
	clockSlack = 20 * time.Millisecond
	// farOff is a difference of two clocks that a late answer cannot explain.
	farOff = 30 * time.Second
	slow   = 20 * time.Millisecond // a round trip that is worth a warning
)

// clock compares the server's clock with this machine's monotonic clock. It reports how long the server took
// to answer.
func (c *checkup) clock(ctx context.Context) {
	var all []reading
	again := time.NewTicker(readEvery)
	defer again.Stop()
	for began := time.Now(); ctx.Err() == nil && (len(all) < 10 || time.Since(began) < c.watch); {
		asked := time.Now()
		there, err := c.rdb.Time(ctx).Result()
		if err != nil {
			c.add("clock", unknown, err.Error(), "")
			return
		}
		all = append(all, reading{asked, time.Now(), there})
		<-again.C
	}
	if len(all) == 0 {
		return
	}
	last := all[len(all)-1]
	off := last.there.Sub(last.asked.Round(0)).Round(time.Millisecond)
	step, at := stepOf(all)
	switch {
	case step != 0:
		c.add("clock", wrong, fmt.Sprintf("the clock stepped by %v after %v", step.Round(time.Millisecond), at.Round(time.Millisecond)),
			"leases, tickets and tokens depend on this clock: slew it, never step it")
	case off > farOff || off < -farOff:
		c.add("clock", warning, fmt.Sprintf("%v off this machine's clock", off), "one of the two clocks is wrong")
	default:
		c.add("clock", fine, fmt.Sprintf("no step in %v, %v off this machine's clock", last.asked.Sub(all[0].asked).Round(time.Second/10), off), "")
	}
	c.latency(all)
}

// stepOf returns by how much a clock has been stepped, and when.
func stepOf(all []reading) (step, at time.Duration) {
	first := all[0]
	for _, r := range all[1:] {
		went := r.there.Sub(first.there)
		least, most := r.asked.Sub(first.answered), r.answered.Sub(first.asked)
		slack := clockSlack + time.Duration(clockRate*float64(most))
		switch {
		case went < least-slack:
			return went - least, r.asked.Sub(first.asked)
		case went > most+slack:
			return went - most, r.asked.Sub(first.asked)
		}
	}
	return 0, 0
}

// latency reports how long a round trip takes. A try has a third of the TTL. If the TTL is shorter than six
// round trips, the try has no time to make a connection first.
func (c *checkup) latency(all []reading) {
	var took []time.Duration
	for _, r := range all {
		took = append(took, r.answered.Sub(r.asked))
	}
	slices.Sort(took)
	median, worst := took[len(took)/2].Round(time.Microsecond), took[len(took)-1].Round(time.Microsecond)
	found := fmt.Sprintf("%v, at worst %v, of %d round trips", median, worst, len(took))
	if median > slow {
		least := (6 * worst).Round(time.Millisecond)
		c.add("latency", warning, found, fmt.Sprintf("a lock and its unlock take two round trips; with a TTL below %v (six of the worst), a lock may not be acquired in time", least))
		return
	}
	c.add("latency", fine, found, "")
}
