package report_test

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/relock-go/relock/bench/internal/load"
	"github.com/relock-go/relock/bench/internal/report"
	"github.com/relock-go/relock/bench/internal/rival"
)

// sample is one of the case that the tests are about.
func sample(name string, round int, p50 float64) load.Sample {
	return load.Sample{
		Workload: "pair", Case: "1", Regime: load.Asleep, Rival: name, Round: round,
		Values: map[string]float64{"p50 us": p50, "commands/pair": 2, "pairs/s": 1e6 / p50},
	}
}

func rowOf(t *testing.T, page, begins string) string {
	t.Helper()
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, begins) {
			return strings.TrimSpace(line)
		}
	}
	t.Fatalf("no line begins with %q in:\n%s", begins, page)
	return ""
}

// TestTargetIsTheMedianOfTheRatiosOfEachRound: the ratio of the medians would be
// 0.5 in the first case.
func TestTargetIsTheMedianOfTheRatiosOfEachRound(t *testing.T) {
	ours, theirs := rival.Relock().Name, rival.ByHand().Name
	for _, c := range []struct {
		ours, theirs [3]float64
		want         string
	}{
		{[3]float64{10, 11, 50}, [3]float64{10, 22, 40}, "| 1.00 (0.50–1.25) | yes |"},
		{[3]float64{30, 30, 30}, [3]float64{20, 15, 10}, "| 2.00 (1.50–3.00) | **no** |"},
	} {
		var r report.Results
		for i := range 3 {
			r = append(r, sample(ours, i, c.ours[i]), sample(theirs, i, c.theirs[i]))
		}
		row := rowOf(t, r.Markdown(report.Page{Rounds: 3}), "| uncontended pair: p50 of 1 goroutine / by hand | left to sleep")
		if !strings.HasSuffix(row, c.want) {
			t.Errorf("got %s\nwant …%s", row, c.want)
		}
	}
}

func TestTargetWithoutResultsIsNotCalledMet(t *testing.T) {
	page := report.Results{sample(rival.Relock().Name, 0, 10)}.Markdown(report.Page{Rounds: 1})
	for _, what := range []string{"| nested / uncontended pair", "| hot lock, 4 x 16, tight"} {
		if row := rowOf(t, page, what); !strings.HasSuffix(row, "| not measured |") {
			t.Error(row)
		}
	}
}

func TestErrorsAndTooLittleProgressAreShown(t *testing.T) {
	s := sample("weak", 0, 10)
	s.Errors, s.Err, s.Few = 3, "out of order", true
	results := report.Results{sample("strong", 0, 10), s}
	page := results.Tables(report.Page{Rounds: 1})
	if row := rowOf(t, page, "| weak"); !strings.HasPrefix(row, "| weak † |") || !strings.HasSuffix(row, "| 3 |") {
		t.Error(row)
	}
	if row := rowOf(t, page, "| strong"); strings.Contains(row, "†") || !strings.HasSuffix(row, "| 0 |") {
		t.Error(row)
	}
	rowOf(t, results.Markdown(report.Page{Rounds: 1}), "| pair 1, cores left to sleep | weak | 1 | 3 | out of order |")
}

func TestRunThatIsNotWholeSaysSo(t *testing.T) {
	const notice = "Not a whole run"
	r := report.Results{sample("one", 0, 10)}
	if !strings.Contains(r.Markdown(report.Page{}), notice) || strings.Contains(r.Markdown(report.Page{Whole: true}), notice) {
		t.Error("the notice belongs to a run that is not whole, and to no other")
	}
}

func TestPlotsAreWellFormedForLightAndDark(t *testing.T) {
	s := sample("a <b> & c", 0, 10)
	s.Regime = load.Awake
	dir := t.TempDir()
	names, err := report.Results{s, s}.WritePlots(dir)
	if err != nil || len(names) == 0 {
		t.Fatalf("plots %v, %v", names, err)
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "prefers-color-scheme:dark") {
			t.Errorf("%s has one set of colors", name)
		}
		for d := xml.NewDecoder(strings.NewReader(string(text))); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
}
