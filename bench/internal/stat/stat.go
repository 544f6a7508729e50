// Package stat is the arithmetic of the measurements.
package stat

import (
	"math"
	"slices"
	"time"
)

// Spread is what several rounds of one measurement gave.
type Spread struct{ Median, Min, Max float64 }

// Of returns the spread of values, which it leaves as they are. NaN stands for a
// round without a result and is left out; of none there is no median.
func Of(values []float64) Spread {
	var known []float64
	for _, v := range values {
		if !math.IsNaN(v) {
			known = append(known, v)
		}
	}
	if len(known) == 0 {
		return Spread{math.NaN(), math.NaN(), math.NaN()}
	}
	return Spread{Median(known), slices.Min(known), slices.Max(known)}
}

// Median returns the middle of values, or the mean of the two in the middle.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

// Percentile returns the smallest of the sorted durations that at least p percent
// of them do not exceed.
func Percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(p/100*float64(len(sorted)))) - 1
	return sorted[min(max(rank, 0), len(sorted)-1)]
}

// Jain is Jain's fairness index of the shares: 1 if all are equal, 1/n if one
// has everything, and 0 if nobody has anything.
func Jain(shares []int64) float64 {
	var sum, squares float64
	for _, s := range shares {
		sum += float64(s)
		squares += float64(s) * float64(s)
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(shares)) * squares)
}
