package host

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// Fact is one line about where and with what it was measured.
type Fact struct{ What, Value string }

// Facts tells the machine, the versions and the commit.
func (s *Server) Facts(ctx context.Context) []Fact {
	facts := []Fact{
		{"CPU", cpuModel()},
		{"cores", strconv.Itoa(runtime.NumCPU()) + ", shared by the program and the server"},
		{"kernel", runtime.GOOS + " " + fileLine("/proc/sys/kernel/osrelease")},
		{"load when it began", loadAverage()},
		{"Go", runtime.Version()},
		{"Redis", s.Version(ctx) + ", nothing on disk, loopback"},
		{"commit", commit(ctx)},
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return facts
	}
	for _, m := range info.Deps {
		for _, name := range []string{"bsm/redislock", "go-redsync/redsync", "redis/rueidis", "redis/go-redis"} {
			if strings.Contains(m.Path, name) {
				facts = append(facts, Fact{m.Path, m.Version})
			}
		}
	}
	return facts
}

func fileLine(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

func cpuModel() string {
	for line := range strings.Lines(fileLine("/proc/cpuinfo")) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
			return strings.TrimSpace(v)
		}
	}
	return runtime.GOARCH
}

func loadAverage() string {
	first, _, _ := strings.Cut(fileLine("/proc/loadavg"), " ")
	if first == "" {
		return "unknown"
	}
	return first
}

func commit(ctx context.Context) string {
	id, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	state := ""
	// The page itself, and its plots, are written by this program.
	changed, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--", ":/", ":!/docs/benchmarks*").Output()
	if err != nil || len(changed) > 0 {
		state = " with changes"
	}
	return strings.TrimSpace(string(id)) + state
}
