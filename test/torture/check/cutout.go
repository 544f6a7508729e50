package check

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/relock-go/relock/test/torture/history"
)

// A cutout gathers the events around one violation.
type cutout struct {
	v        *Violation
	from, to int64
	events   []history.Event
}

const (
	perName    = 5      // cut-outs of violations of one name
	cutoutSize = 20_000 // events
)

// cutouts writes, for the first violations, the events of their lock and all
// faults from one ttl before to one after, in order.
func (k *checker) cutouts(dir string) error {
	limit := k.opts.Cutouts
	if limit == 0 {
		limit = 20
	}
	named := map[Name]int{}
	var cuts []*cutout
	for i := range k.report.Violations {
		v := &k.report.Violations[i]
		if v.Lock == "" || len(cuts) >= limit || named[v.Name] >= perName {
			continue
		}
		named[v.Name]++
		around := int64(time.Second)
		if s := k.stories[v.Lock]; s != nil {
			around = max(around, int64(s.ttl))
		}
		cuts = append(cuts, &cutout{v: v, from: v.From - around, to: v.To + around})
	}
	if len(cuts) == 0 {
		return nil
	}
	if err := gather(dir, cuts); err != nil {
		return err
	}
	out := k.opts.CutoutDir
	if out == "" {
		out = dir
	}
	for i, c := range cuts {
		if err := c.write(filepath.Join(out, fmt.Sprintf("violation-%02d-%s.txt", i+1, strings.ReplaceAll(string(c.v.Name), " ", "-")))); err != nil {
			return err
		}
	}
	return nil
}

// gather reads the files once more.
func gather(dir string, cuts []*cutout) error {
	paths, err := histories(dir)
	if err != nil {
		return err
	}
	p := newParser()
	for _, path := range paths {
		f, err := open(path)
		if err != nil {
			return err
		}
		_, err = lines(f, func(b []byte) {
			var e history.Event
			if p.line(b, &e) != nil {
				return
			}
			for _, c := range cuts {
				c.take(e)
			}
		})
		_ = f.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *cutout) take(e history.Event) {
	late := e.T > c.to || max(e.T, e.Until) < c.from && e.What == history.Fault || e.T < c.from && e.What != history.Fault
	if late || len(c.events) >= cutoutSize {
		return
	}
	if e.Lock == c.v.Lock || e.Lock == "" && (e.What == history.Fault || e.What == history.Died) {
		c.events = append(c.events, e)
	}
}

func (c *cutout) write(path string) error {
	slices.SortStableFunc(c.events, func(a, b history.Event) int { return compare(a.T, b.T) })
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	_, _ = fmt.Fprintf(w, "# %s\n# repeat with seed %d\n", c.v, c.v.Seed)
	enc := json.NewEncoder(w)
	for _, e := range c.events {
		if err := enc.Encode(e); err != nil {
			break
		}
	}
	if err := w.Flush(); err != nil {
		_ = f.Close()
		return err
	}
	c.v.File = path
	return f.Close()
}
