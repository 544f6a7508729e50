package rig

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/relock-go/relock/internal/script"
	"github.com/relock-go/relock/lua"
	"github.com/relock-go/relock/test/torture/history"
	"github.com/relock-go/relock/test/torture/server"
)

// This file looks how long servers keep their other clients waiting.

// lateAfter is how long a PING may take without being noted one by one.
const lateAfter = 5 * time.Millisecond

// busy: a server that had to wait for a processor for more than this part of the
// time is on a machine that is too busy to judge its scripts.
const busy = 5

// Control is the server that nobody uses: what its pings take, the machine takes.
const Control = "control"

// pings returns a function that asks a server how it is, and one that says how
// often that was. A server that does not answer is another fault's. For how long a server
// was ready to run, and the machine ran something else, is no part of what others waited for
// its scripts; of that which nobody uses it is what the machine takes.
func pings(out *history.Writer, on string, r *server.Redis) (ping func(ctx context.Context), end func()) {
	var count atomic.Int64
	ping = func(ctx context.Context) {
		delayed, before := delay(r), history.Now()
		if r.RDB.Ping(ctx).Err() != nil && ctx.Err() != nil {
			return
		}
		now := history.Now()
		until := now
		if on != Control {
			until -= max(int64(delay(r)-delayed), 0)
		}
		count.Add(1)
		if until-before > int64(lateAfter) {
			out.Add(history.Event{T: before, Worker: -1, What: history.Ping, On: on, Until: until})
		}
		if now-before > int64(history.StallsAfter) {
			out.Add(history.Event{T: before, Worker: -1, What: history.Fault, Fault: history.Stall, On: on, Until: now})
		}
	}
	return ping, func() {
		out.Add(history.Event{Worker: -1, What: history.Ping, On: on, By: count.Load()})
	}
}

// scripts returns a function that notes the scripts which took a server long. What
// the machine kept the server from running meanwhile is not the script's.
func scripts(out *history.Writer, on string, r *server.Redis) func(ctx context.Context) {
	names := map[string]string{}
	for _, name := range []string{"acquire", "hold", "release", "downgrade", "where", "force", "info", "waiters"} {
		names[script.MustLoad(lua.FS, name).SHA] = name
	}
	since, delayed := history.Now(), delay(r)
	return func(ctx context.Context) {
		slow, err := r.RDB.SlowLogGet(ctx, -1).Result()
		if err != nil || r.RDB.Do(ctx, "SLOWLOG", "RESET").Err() != nil {
			return
		}
		now, delayedNow := history.Now(), delay(r)
		waited := delayedNow - delayed
		if waited > time.Duration(now-since)/busy {
			slow = nil // what a script took says nothing then
		}
		for _, s := range slow {
			if len(s.Args) < 2 || !strings.HasPrefix(strings.ToLower(s.Args[0]), "eval") {
				continue
			}
			name := names[s.Args[1]]
			if name == "" {
				name = fmt.Sprintf("%.20s", s.Args[1])
			}
			if net := s.Duration - waited; net > 0 {
				out.Add(history.Event{T: since, Worker: -1, What: history.Script, On: on, Err: name, By: int64(net), Until: now})
			}
		}
		since, delayed = now, delayedNow
	}
}

// delay is how long the server's main thread has been ready to run and has not.
func delay(r *server.Redis) time.Duration {
	pid := r.PID()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	n, _ := strconv.ParseInt(fields[1], 10, 64)
	return time.Duration(n)
}
