package stat_test

import (
	"math"
	"testing"
	"time"

	"github.com/relock-go/relock/bench/internal/stat"
)

func TestMedianIsTheMiddleWhateverTheOrder(t *testing.T) {
	for _, c := range []struct {
		in   []float64
		want float64
	}{
		{[]float64{3}, 3},
		{[]float64{9, 1, 5}, 5},
		{[]float64{4, 1, 3, 2}, 2.5},
		{[]float64{7, 7, 1000}, 7},
	} {
		before := append([]float64(nil), c.in...)
		if got := stat.Median(c.in); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.in, got, c.want)
		}
		for i := range before {
			if c.in[i] != before[i] {
				t.Errorf("median reordered its argument %v to %v", before, c.in)
			}
		}
	}
	if got := stat.Median(nil); !math.IsNaN(got) {
		t.Errorf("median of nothing is %v, want NaN", got)
	}
}

func TestSpreadLeavesOutRoundsWithoutAResult(t *testing.T) {
	got := stat.Of([]float64{math.NaN(), 5, 1, 3})
	if want := (stat.Spread{Median: 3, Min: 1, Max: 5}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := stat.Of([]float64{math.NaN()}); !math.IsNaN(got.Median) {
		t.Errorf("median of no result is %v, want NaN", got.Median)
	}
}

func TestPercentileIsAMeasuredValueAtItsRank(t *testing.T) {
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(i+1))
	}
	for _, c := range []struct {
		in   []time.Duration
		p    float64
		want time.Duration
	}{
		{hundred, 50, 50},
		{hundred, 99, 99},
		{hundred, 100, 100},
		{hundred, 0, 1},
		{hundred[:1], 99, 1},
		{[]time.Duration{1, 2, 3}, 50, 2},
		{[]time.Duration{1, 2, 3, 4}, 50, 2},
		{nil, 50, 0},
	} {
		if got := stat.Percentile(c.in, c.p); got != c.want {
			t.Errorf("p%v of %d values is %d, want %d", c.p, len(c.in), got, c.want)
		}
	}
}

func TestJainIsOneForEqualSharesAndOneOverNForOneWinner(t *testing.T) {
	for _, c := range []struct {
		shares []int64
		want   float64
	}{
		{[]int64{5, 5, 5, 5}, 1},
		{[]int64{0, 0, 8, 0}, 0.25},
		{[]int64{1, 3}, 0.8},
		{[]int64{0, 0}, 0},
		{nil, 0},
	} {
		if got := stat.Jain(c.shares); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("Jain of %v is %v, want %v", c.shares, got, c.want)
		}
	}
}
