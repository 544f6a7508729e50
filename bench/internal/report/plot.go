package report

import (
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/relock-go/relock/bench/internal/load"
)

// A plot is bars in groups: a group for each case, a bar for each rival.
type plot struct {
	file, title, metric string
	q                   query
	cases               []string // nil: all
	log                 bool
}

func plots() []plot {
	tightCases := []string{"1 x 16, tight", tight, single}
	slowCases := []string{"1 x 16, 2ms", slow, "32 x 1, 2ms"}
	pairs := query{workload: "pair", regime: load.Awake}
	hot := query{workload: "hot", regime: load.Awake}
	return []plot{
		{file: "pairs.svg", title: "Uncontended pairs a second, by goroutines", metric: "pairs/s", q: pairs},
		{file: "hot-grants.svg", title: "One hot lock, tight: grants a second, logarithmic", metric: "grants/s", q: hot, cases: tightCases, log: true},
		{file: "hot-wait.svg", title: "One hot lock, tight: longest wait in ms, logarithmic", metric: "longest wait ms", q: hot, cases: tightCases, log: true},
		{file: "hot-gap.svg", title: "One hot lock, 2 ms: gap from Unlock to the next holder, p50 in µs, logarithmic", metric: "gap p50 us", q: hot, cases: slowCases, log: true},
		{file: "hot-commands.svg", title: "One hot lock, 2 ms: network commands a grant, logarithmic", metric: "commands/grant", q: hot, cases: slowCases, log: true},
		{file: "link.svg", title: "Hand-off over a link, p50 in µs", metric: "hand-off p50 us", q: query{workload: "link"}},
		{file: "depth.svg", title: "Server's time a hand-off in µs, by waiters", metric: "server us/hand-off", q: query{workload: "depth"}},
		{file: "held.svg", title: "CPU of a process in a TTL in ms, by held locks (rueidislock: a tenth)", metric: "CPU ms", q: query{workload: "held"}, log: true},
	}
}

// WritePlots writes the plots that there is data for, and returns their names.
func (r Results) WritePlots(dir string) (written []string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	for _, p := range plots() {
		svg := r.svg(p)
		if svg == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, p.file), []byte(svg), 0o644); err != nil {
			return nil, err
		}
		written = append(written, p.file)
	}
	return written, nil
}

// colors of the bars in light and dark, told apart without red and green.
var colors = [][2]string{
	{"#0b62c4", "#58a6ff"},
	{"#6cb0f5", "#1f5fa8"},
	{"#d97706", "#f0a04b"},
	{"#7c3aed", "#b794f6"},
	{"#0f766e", "#4fd1c5"},
	{"#8a8f98", "#9aa0a8"},
	{"#c9ced6", "#565c66"},
}

const (
	chartWidth, chartHeight = 860.0, 340.0
	left, top, bottom       = 70.0, 78.0, 40.0
)

// drawn is what a plot shows: one median for each case of each rival that has any.
type drawn struct {
	cases, rivals []string
	values        map[[2]string]float64 // by case and rival
	least, most   float64
}

func (r Results) drawn(p plot) drawn {
	data := r.where(p.q)
	d := drawn{cases: p.cases, values: map[[2]string]float64{}, least: math.Inf(1)}
	if d.cases == nil {
		d.cases = data.distinct(byCase)
	}
	for _, name := range data.distinct(byRival) {
		before := len(d.values)
		for _, c := range d.cases {
			v := data.spread(query{kase: c, rival: name}, p.metric).Median
			if v > 0 && !math.IsInf(v, 0) {
				d.values[[2]string{c, name}] = v
				d.most, d.least = max(d.most, v), min(d.least, v)
			}
		}
		if len(d.values) > before {
			d.rivals = append(d.rivals, name)
		}
	}
	return d
}

// svg draws the plot; it is empty where there is no data. The page that shows it
// cannot hand colors to an image, so it asks the reader's preference itself.
func (r Results) svg(p plot) string {
	d := r.drawn(p)
	if len(d.values) == 0 {
		return ""
	}
	var b strings.Builder
	head(&b, p.title, d.rivals)
	s := scaleOf(d.least, d.most, p.log)
	for _, v := range s.ticks {
		y := s.y(v)
		fmt.Fprintf(&b, `<line class="grid" x1="%.0f" x2="%.0f" y1="%.1f" y2="%.1f"/><text x="%.0f" y="%.1f" text-anchor="end">%s</text>`+"\n", left, chartWidth-10, y, y, left-8, y+4, number(v))
	}
	d.bars(&b, s)
	b.WriteString("</svg>\n")
	return b.String()
}

// bars draws those of a case side by side, and names the case below.
func (d drawn) bars(b *strings.Builder, s scale) {
	group := (chartWidth - left - 10) / float64(len(d.cases))
	bar := group * 0.84 / float64(len(d.rivals))
	for i, c := range d.cases {
		x := left + group*float64(i)
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", x+group/2, chartHeight-bottom+20, html.EscapeString(c))
		for j, name := range d.rivals {
			v, ok := d.values[[2]string{c, name}]
			if !ok {
				continue
			}
			fmt.Fprintf(b, `<rect class="c%d" x="%.1f" y="%.1f" width="%.1f" height="%.1f"><title>%s, %s: %s</title></rect>`+"\n",
				j%len(colors), x+group*0.08+bar*float64(j), s.y(v), bar*0.9, chartHeight-bottom-s.y(v), html.EscapeString(name), html.EscapeString(c), number(v))
		}
	}
}

func head(b *strings.Builder, title string, shown []string) {
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" role="img" aria-label="%s">`+"\n<style>\n", chartWidth, chartHeight, html.EscapeString(title))
	b.WriteString("text{font:12px system-ui,sans-serif;fill:#24292f}.title{font-weight:600;font-size:15px}.grid{stroke:#d0d7de}\n")
	for i, c := range colors {
		fmt.Fprintf(b, ".c%d{fill:%s}", i, c[0])
	}
	b.WriteString("\n@media (prefers-color-scheme:dark){text{fill:#e6edf3}.grid{stroke:#3d444d}")
	for i, c := range colors {
		fmt.Fprintf(b, ".c%d{fill:%s}", i, c[1])
	}
	fmt.Fprintf(b, "}\n</style>\n<text class=\"title\" x=\"10\" y=\"20\">%s</text>\n", html.EscapeString(title))
	x := 10.0
	for i, name := range shown {
		fmt.Fprintf(b, `<rect class="c%d" x="%.0f" y="36" width="12" height="12"/><text x="%.0f" y="46">%s</text>`+"\n", i%len(colors), x, x+17, html.EscapeString(name))
		x += 36 + 6.6*float64(len(name))
	}
}

type scale struct {
	y     func(v float64) float64
	ticks []float64
}

func scaleOf(least, most float64, log bool) scale {
	const height = chartHeight - top - bottom
	base := chartHeight - bottom
	if log {
		low, high := math.Floor(math.Log10(least)-0.05), math.Ceil(math.Log10(most))
		s := scale{y: func(v float64) float64 { return base - height*(math.Log10(v)-low)/(high-low) }}
		for e := low; e <= high; e++ {
			s.ticks = append(s.ticks, math.Pow(10, e))
		}
		return s
	}
	step := math.Pow(10, math.Floor(math.Log10(most)))
	for most/step < 4 {
		step /= 2
	}
	high := math.Ceil(most/step) * step
	s := scale{y: func(v float64) float64 { return base - height*v/high }}
	for v := 0.0; v <= high+step/2; v += step {
		s.ticks = append(s.ticks, v)
	}
	return s
}
