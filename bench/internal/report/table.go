// Package report writes what was measured.
package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/relock-go/relock/bench/internal/load"
	"github.com/relock-go/relock/bench/internal/stat"
)

// Results are all samples of a run.
type Results []load.Sample

// A query names a set of samples; an empty field matches all.
type query struct{ workload, kase, regime, rival string }

func (q query) matches(s load.Sample) bool {
	return (q.workload == "" || q.workload == s.Workload) && (q.kase == "" || q.kase == s.Case) &&
		(q.regime == "" || q.regime == s.Regime) && (q.rival == "" || q.rival == s.Rival)
}

func (r Results) where(q query) (out Results) {
	for _, s := range r {
		if q.matches(s) {
			out = append(out, s)
		}
	}
	return out
}

// distinct returns the values of a field in the order of their first appearance.
func (r Results) distinct(field func(load.Sample) string) (out []string) {
	for _, s := range r {
		if v := field(s); !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

func byCase(s load.Sample) string   { return s.Case }
func byRegime(s load.Sample) string { return s.Regime }
func byRival(s load.Sample) string  { return s.Rival }

// rounds returns a metric by round; NaN where a round has none.
func (r Results) rounds(q query, metric string) []float64 {
	var out []float64
	for _, s := range r.where(q) {
		for len(out) <= s.Round {
			out = append(out, math.NaN())
		}
		if v, ok := s.Values[metric]; ok && !math.IsInf(v, 0) {
			out[s.Round] = v
		}
	}
	return out
}

func (r Results) spread(q query, metric string) stat.Spread { return stat.Of(r.rounds(q, metric)) }

// table writes one row for each rival of a case, and a column for each metric.
func (r Results) table(b *strings.Builder, q query, metrics []string) {
	b.WriteString("| |")
	for _, m := range metrics {
		fmt.Fprintf(b, " %s |", m)
	}
	b.WriteString(" errors |\n|---|" + strings.Repeat("---:|", len(metrics)+1) + "\n")
	for _, name := range r.where(q).distinct(byRival) {
		row := q
		row.rival = name
		of := r.where(row)
		fmt.Fprintf(b, "| %s%s |", name, of.mark())
		for _, m := range metrics {
			fmt.Fprintf(b, " %s |", cell(of.spread(query{}, m)))
		}
		fmt.Fprintf(b, " %s |\n", of.errors())
	}
	b.WriteString("\n")
}

// mark is put beside a name whose figures rest on too little.
func (r Results) mark() string {
	for _, s := range r {
		if s.Few {
			return " †"
		}
	}
	return ""
}

func (r Results) errors() string {
	var n int64
	for _, s := range r {
		n += s.Errors
	}
	return fmt.Sprint(n)
}

// cell writes a median and the spread of the rounds.
func cell(s stat.Spread) string {
	if math.IsNaN(s.Median) {
		return "–"
	}
	if s.Min == s.Max {
		return number(s.Median)
	}
	return fmt.Sprintf("%s (%s–%s)", number(s.Median), number(s.Min), number(s.Max))
}

// number writes three significant digits, and large numbers in thousands. What is small is not written as 0.
func number(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v):
		return "–"
	case a >= 999.5:
		digits := fmt.Sprintf("%.0f", v)
		for i := len(digits) - 3; i > 0; i -= 3 {
			digits = digits[:i] + " " + digits[i:]
		}
		return digits
	case a >= 99.5:
		return fmt.Sprintf("%.0f", v)
	case a >= 9.95:
		return fmt.Sprintf("%.1f", v)
	case a >= 0.005 || v == 0:
		return fmt.Sprintf("%.2f", v)
	case a >= 0.0005:
		return fmt.Sprintf("%.3f", v)
	default:
		return "< 0.001"
	}
}
