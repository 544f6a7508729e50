// Package rig runs the torture: rounds of deployments, workers and faults, and
// an inspection of what each round leaves behind.
package rig

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/relock-go/relock/internal/script"
	"github.com/relock-go/relock/lua"
	"github.com/relock-go/relock/test/torture/history"
	"github.com/relock-go/relock/test/torture/nemesis"
	"github.com/relock-go/relock/test/torture/server"
	"github.com/relock-go/relock/test/torture/store"
	"github.com/relock-go/relock/test/torture/worker"
)

// Options say what a run is.
type Options struct {
	For     time.Duration
	Seed    uint64
	Dir     string         // of the histories; it must be empty or not there
	Round   time.Duration  // how long each deployment is used; 0: as fits
	Forms   []string       // of the deployments, in turn; nil: all
	Workers int            // processes; 0: 3
	Actors  map[string]int // goroutines of each workload in a process; nil: all workloads
	Calm    bool           // no faults
	Kinds   []string       // of faults; nil: all
	Bin     string         // of the workers; "": this program
	Hasty   bool           // stop the workers by force, and leave the inspection out
	Log     io.Writer
}

// DefaultForms are the deployments of a run, in turn.
func DefaultForms() []string {
	return []string{server.Standalone, server.Cluster, server.Sentinel, server.Skewed, server.Replicated, server.Standalone, server.Cluster}
}

func (o Options) withDefaults() Options {
	if o.Forms == nil {
		o.Forms = DefaultForms()
	}
	if o.Round == 0 {
		o.Round = min(time.Minute, max(6*time.Second, o.For/time.Duration(len(o.Forms))))
	}
	if o.Workers == 0 {
		o.Workers = 3
	}
	if o.Actors == nil {
		o.Actors = worker.Loads()
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.Bin == "" {
		o.Bin, _ = os.Executable()
	}
	return o
}

// Result is what the rig itself saw; the rest is in the histories.
type Result struct {
	Rounds  int
	Refused []string       // faults that could not be injected as they should
	Kinds   map[string]int // faults by kind
	Crashed []string       // workers that ended by themselves
}

// rig is a run.
type rig struct {
	Options
	out    *history.Writer // the rig's own events
	store  *store.Store
	clock  *server.Clock
	idle   *server.Redis // that nobody uses
	shas   []string
	worker int // the number of the next worker
	result Result
}

// Run tortures, and leaves the histories in o.Dir.
func Run(ctx context.Context, o Options) (Result, error) {
	r := &rig{Options: o.withDefaults(), result: Result{Kinds: map[string]int{}}}
	if err := r.open(ctx); err != nil {
		return r.result, err
	}
	defer r.close()
	begin := time.Now()
	r.out.Add(history.Event{Worker: -1, What: history.Start, Until: history.Now() + int64(r.For), By: int64(r.Seed)})
	for n := 0; time.Since(begin) < r.For && ctx.Err() == nil; n++ {
		length := min(r.Round, r.For-time.Since(begin))
		if err := r.round(ctx, n, r.Forms[n%len(r.Forms)], max(length, time.Second)); err != nil {
			return r.result, fmt.Errorf("round %d: %w", n, err)
		}
		r.result.Rounds++
	}
	return r.result, ctx.Err()
}

func (r *rig) open(ctx context.Context) (err error) {
	if err = os.MkdirAll(r.Dir, 0o700); err != nil {
		return err
	}
	if r.out, err = history.Create(filepath.Join(r.Dir, "rig.jsonl")); err != nil {
		return err
	}
	effects, err := history.Create(filepath.Join(r.Dir, "store.jsonl"))
	if err != nil {
		return err
	}
	if err = os.MkdirAll(filepath.Join(r.Dir, "servers"), 0o700); err != nil {
		return err
	}
	_ = os.Remove(r.socket()) // of a run that was killed
	if r.store, err = store.Listen(r.socket(), effects); err != nil {
		return err
	}
	if r.clock, err = server.NewClock(filepath.Join(r.Dir, "servers")); err != nil {
		return err
	}
	idle, err := server.Start(ctx, filepath.Join(r.Dir, "servers"), Control, nil)
	if err != nil {
		return err
	}
	r.idle = idle
	for _, name := range []string{"acquire", "hold", "release", "downgrade", "where"} {
		r.shas = append(r.shas, script.MustLoad(lua.FS, name).SHA)
	}
	return nil
}

// socket is in the working directory's terms: a path to a socket must be short.
func (r *rig) socket() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("relock-torture-%d.sock", os.Getpid()))
}

func (r *rig) close() {
	if r.store != nil {
		r.store.Close()
	}
	if r.idle != nil {
		r.idle.Close()
	}
	if r.clock != nil {
		r.clock.Close()
	}
	_ = r.out.Close()
}

func (r *rig) logf(format string, args ...any) {
	_, _ = fmt.Fprintf(r.Log, format+"\n", args...)
}

// round is one deployment from its start to its inspection.
func (r *rig) round(ctx context.Context, n int, form string, length time.Duration) error {
	name := fmt.Sprintf("%s%d", form, n)
	d, err := server.Deploy(ctx, form, name, filepath.Join(r.Dir, "servers"), r.clock)
	if err != nil {
		return err
	}
	defer d.Close()
	p, err := r.enlist(d)
	if err != nil {
		return err
	}
	defer p.dismiss()
	eye, err := open(d, r.idle)
	if err != nil {
		return err
	}
	defer eye.close()
	watch := eye.watch(r.out)
	site := &nemesis.Site{
		Deployment: d, Clock: r.clock, Workers: r.Workers, Victim: p.victim, Replace: p.replace,
		Locks: eye.locks, SHAs: r.shas, Out: r.out,
	}
	roles := site.Watch()
	defer roles()
	if err := r.weather(ctx, n, site, length); err != nil {
		return err
	}
	watch()
	if !r.Hasty {
		over := p.haunt()
		pause(ctx, 100*time.Millisecond)
		left := p.stop(over)
		roles()
		r.inspect(ctx, d, eye, left)
	}
	roles()
	r.count(n, site)
	r.logf("round %d (%s, %v): %d faults so far", n, form, length.Round(time.Second), total(r.result.Kinds))
	return nil
}

// weather is what befalls a deployment in a round, and the calm after it: everybody gets
// going again, without faults, for longer than the longest lease.
func (r *rig) weather(ctx context.Context, n int, site *nemesis.Site, length time.Duration) error {
	if !r.Calm {
		r.harass(ctx, n, site, length)
	} else {
		pause(ctx, length)
	}
	if d := site.Deployment; d.Form != server.Standalone {
		if err := d.Settled(ctx); err != nil {
			return err
		}
	}
	pause(ctx, calm)
	return nil
}

// calm is how long the workers go on after the last fault.
const calm = 1500 * time.Millisecond

// harass has the nemesis act for some time.
func (r *rig) harass(ctx context.Context, n int, site *nemesis.Site, length time.Duration) {
	lanes := nemesis.Schedule(r.Seed, n, site.Deployment.Form, r.Kinds, int(length/(100*time.Millisecond)))
	r.record(n, site.Deployment.Form, lanes)
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	site.Run(ctx, lanes, min(nemesis.Quiet, length/3))
	r.clock.Set(0)
}

// count adds up what the nemesis did.
func (r *rig) count(n int, site *nemesis.Site) {
	counts, failed := site.Counts()
	for kind, n := range counts {
		r.result.Kinds[kind] += n
	}
	for _, err := range failed {
		r.logf("round %d: %v", n, err)
		r.result.Refused = append(r.result.Refused, err.Error())
	}
}

// record writes the schedule down, for who wants to see what a seed does.
func (r *rig) record(n int, form string, lanes nemesis.Lanes) {
	f, err := os.OpenFile(filepath.Join(r.Dir, "schedule.txt"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return // it follows from the seed anyway
	}
	defer func() { _ = f.Close() }()
	for _, lane := range []string{"servers", "clients", "links"} {
		_, _ = fmt.Fprintf(f, "round %d, %s, %s\n", n, form, lane)
		for _, step := range lanes[lane] {
			_, _ = fmt.Fprintf(f, "  %s\n", step)
		}
	}
}

func total(m map[string]int) (n int) {
	for _, v := range m {
		n += v
	}
	return n
}

func pause(ctx context.Context, d time.Duration) {
	over := time.NewTimer(d)
	defer over.Stop()
	select {
	case <-over.C:
	case <-ctx.Done():
	}
}
