package host

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// Counts is what the server has done until now.
type Counts struct {
	Calls map[string]int64   // by command, those made by scripts included
	Usec  map[string]float64 // time spent in them; a script's includes its commands'
	In    int64              // bytes from the network
	Out   int64
	CPU   float64 // us of its process, sockets and all
}

// wire are the commands that no script can call, so that each is a message of its own.
var wire = map[string]bool{
	"evalsha": true, "eval": true, "evalsha_ro": true, "eval_ro": true, "fcall": true, "fcall_ro": true,
	"subscribe": true, "unsubscribe": true, "ssubscribe": true, "sunsubscribe": true, "psubscribe": true,
	"multi": true, "exec": true, "script|load": true, "script|exists": true, "hello": true, "auth": true,
	"client|setinfo": true, "client|tracking": true, "client|id": true, "client|caching": true,
	"client|maint_notifications": true, "client": true, "wait": true,
}

// scripts are the commands whose time is that of a lock's script.
var scripts = map[string]bool{"evalsha": true, "eval": true, "evalsha_ro": true, "fcall": true}

// Counts reads the statistics. The command that reads them is not among them.
func (s *Server) Counts(ctx context.Context) (Counts, error) {
	c := Counts{Calls: map[string]int64{}, Usec: map[string]float64{}}
	stats, err := s.info(ctx, "stats")
	if err != nil {
		return c, err
	}
	c.In, _ = strconv.ParseInt(stats["total_net_input_bytes"], 10, 64)
	c.Out, _ = strconv.ParseInt(stats["total_net_output_bytes"], 10, 64)
	if c.CPU, err = s.cpu(ctx); err != nil {
		return c, err
	}
	commands, err := s.info(ctx, "commandstats")
	if err != nil {
		return c, err
	}
	for name, fields := range commands {
		name = strings.TrimPrefix(name, "cmdstat_")
		if name == "info" {
			continue
		}
		for field := range strings.SplitSeq(fields, ",") {
			k, v, _ := strings.Cut(field, "=")
			switch k {
			case "calls":
				c.Calls[name], err = strconv.ParseInt(v, 10, 64)
			case "usec":
				c.Usec[name], err = strconv.ParseFloat(v, 64)
			}
			if err != nil {
				return c, fmt.Errorf("statistics of %s: %w", name, err)
			}
		}
	}
	return c, nil
}

// cpu is what the server's process has used, in us.
func (s *Server) cpu(ctx context.Context) (us float64, err error) {
	used, err := s.info(ctx, "cpu")
	if err != nil {
		return 0, err
	}
	for _, part := range []string{"used_cpu_user", "used_cpu_sys"} {
		seconds, err := strconv.ParseFloat(used[part], 64)
		if err != nil {
			return 0, fmt.Errorf("statistics of %s: %w", part, err)
		}
		us += 1e6 * seconds
	}
	return us, nil
}

func (s *Server) info(ctx context.Context, section string) (map[string]string, error) {
	text, err := s.Admin.Info(ctx, section).Result()
	if err != nil {
		return nil, err
	}
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[k] = v
		}
	}
	return fields, nil
}

// Version is the server's. Valkey has one of its own: the other is that of the
// Redis with which it says it is compatible.
func (s *Server) Version(ctx context.Context) string {
	i, err := s.info(ctx, "server")
	if err != nil {
		return err.Error()
	}
	if v := i["valkey_version"]; v != "" {
		return "Valkey " + v
	}
	return i["redis_version"]
}

// Since returns what was done after before.
func (c Counts) Since(before Counts) Counts {
	d := Counts{Calls: maps.Clone(c.Calls), Usec: maps.Clone(c.Usec), In: c.In - before.In, Out: c.Out - before.Out, CPU: c.CPU - before.CPU}
	for name, n := range before.Calls {
		d.Calls[name] -= n
	}
	for name, us := range before.Usec {
		d.Usec[name] -= us
	}
	return d
}

// Commands is the number of commands that came over the network: those that
// scripts cannot call, and those that the measured client says it sends and
// its scripts do not call.
func (c Counts) Commands(sends []string) int64 { return sum(c.Calls, wire, sends) }

// ServerUsec is the time that those commands took in the server, without reading
// and writing the sockets.
func (c Counts) ServerUsec(sends []string) float64 { return sum(c.Usec, scripts, sends) }

func sum[N int64 | float64](by map[string]N, usual map[string]bool, sends []string) (all N) {
	for name, n := range by {
		if usual[name] {
			all += n
		}
	}
	for _, name := range sends {
		all += by[name]
	}
	return all
}
