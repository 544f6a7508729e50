package house_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A figure is a constant of the code that sentences name.
type figure struct {
	what   string
	file   string // where it is
	source string // pattern whose group is its expression
	add    float64
	share  bool     // the expression divides: of 100 it is so many percent
	says   []string // patterns of sentences; # is a number there, @ a duration
}

var (
	count    = `(\d[\d,]*(?: 000)*|two|three|four|five|eight|ten)`
	duration = `\b((?:\d[\d.,]* ?|(?:one|two|five|ten|a|a quarter of a) )(?:us|ms|s|seconds?|min|minutes?|h|hours?|years?)\b)`
	inWords  = map[string]float64{"a quarter of a": .25, "a": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "eight": 8, "ten": 10}
	quantity = regexp.MustCompile(`^(.*?) ?(us|ms|s|seconds?|min|minutes?|h|hours?|years?)?$`)
	units    = map[string]time.Duration{"us": time.Microsecond, "ms": time.Millisecond, "s": time.Second, "min": time.Minute, "h": time.Hour, "y": 365 * 24 * time.Hour}
	// bound is a sentence that sets a bound: some figure must claim it.
	bound = pattern(`(?:at most|at latest|up to|fewer than|no more than|bounded to) (?:@|#)|(?:@|#)(?: \w+)?(?: at most| by default)`)
	// boundless are bounds that no constant of the code sets.
	boundless = []string{
		"up to 1 %", "does not dial for up to a second", "at most 72 characters", "13 s at most", "no more than 10 ms at a time", "up to three times", "up to four times", "up to 2^53",
		"at most 512 bytes",
	}
)

// pattern compiles a pattern of sentences.
func pattern(p string) *regexp.Regexp {
	return regexp.MustCompile(strings.NewReplacer("#", count, "@", duration).Replace(p))
}

// amount reads a figure as prose has it, a duration in nanoseconds.
func amount(text string) (float64, error) {
	m := quantity.FindStringSubmatch(text)
	n, known := inWords[m[1]]
	if !known {
		var err error
		if n, err = strconv.ParseFloat(strings.NewReplacer(",", "", " ", "").Replace(m[1]), 64); err != nil {
			return 0, err
		}
	}
	if m[2] == "" {
		return n, nil
	}
	unit, known := units[m[2]]
	if !known {
		unit = units[m[2][:1]] // seconds, hours, years
	}
	if strings.HasPrefix(m[2], "min") {
		unit = time.Minute
	}
	return n * float64(unit), nil
}

// constant reads an expression of the code: a product of numbers and units.
func constant(expression string) (float64, error) {
	product := 1.0
	for factor := range strings.SplitSeq(strings.ReplaceAll(expression, "_", ""), "*") {
		factor = strings.TrimSpace(factor)
		if unit, is := strings.CutPrefix(factor, "time."); is {
			d, known := map[string]time.Duration{
				"Nanosecond": 1, "Microsecond": time.Microsecond, "Millisecond": time.Millisecond,
				"Second": time.Second, "Minute": time.Minute, "Hour": time.Hour,
			}[unit]
			if !known {
				return 0, fmt.Errorf("unit %q", unit)
			}
			product *= float64(d)
			continue
		}
		n, err := strconv.ParseFloat(factor, 64)
		if err != nil {
			return 0, err
		}
		product *= n
	}
	return product, nil
}

// value is the figure's, as the code has it.
func (f figure) value(files map[string]string) (float64, error) {
	m := regexp.MustCompile(f.source).FindStringSubmatch(files[f.file])
	if m == nil {
		return 0, fmt.Errorf("%s has no %s any more: %s", f.file, f.what, f.source)
	}
	v, err := constant(m[1])
	if f.share {
		v = 100 / v
	}
	return v + f.add, err
}

// prose is what pages and comments say, each as one line. What is past may have
// other figures.
func prose(files map[string]string) map[string]string {
	pages := map[string]string{}
	for name, text := range files {
		switch {
		case strings.HasPrefix(name, "docs/benchmarks") || name == "docs/decisions/track-record.md" || name == "CHANGELOG.md" || strings.HasPrefix(name, "test/torture/") || strings.HasPrefix(name, "bench/"):
			continue
		case strings.HasSuffix(name, ".md"):
			text = strings.ReplaceAll(text, "\n\n", " | ")
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && !strings.Contains(name, "internal/redistest/"):
			text = comments(text, "//")
		case strings.HasSuffix(name, ".lua"):
			text = comments(text, "--")
		default:
			continue
		}
		pages[name] = strings.Join(strings.Fields(text), " ")
	}
	return pages
}

// comments are the lines of a program that are for readers.
func comments(program, mark string) string {
	var all strings.Builder
	for line := range strings.Lines(program) {
		said, is := strings.CutPrefix(strings.TrimSpace(line), mark)
		if !is {
			said = " | " // a sentence does not go on beyond it
		}
		all.WriteString(said + " ")
	}
	return all.String()
}

func TestFiguresInDocsAreThoseOfTheCode(t *testing.T) { report(t, wrongFigures(everyFile(t))) }

// wrongFigures reports sentences whose figure is not that of the code, constants
// that no sentence names any more, and bounds that no figure claims.
func wrongFigures(files map[string]string) (problems []string) {
	pages := prose(files)
	claimed := map[string][]int{} // where figures are, by page
	for _, f := range figures {
		problems = append(problems, f.wrong(files, pages, claimed)...)
	}
	return append(problems, unclaimed(pages, claimed)...)
}

// wrong reports the sentences that have another figure, and notes where all are.
func (f figure) wrong(files, pages map[string]string, claimed map[string][]int) (problems []string) {
	want, err := f.value(files)
	if err != nil {
		return []string{err.Error()}
	}
	for _, says := range f.says {
		found, sentence := false, pattern(says)
		for name, text := range pages {
			for _, m := range sentence.FindAllStringSubmatchIndex(text, -1) {
				found = true
				claimed[name] = append(claimed[name], m[2])
				if got, err := amount(text[m[2]:m[3]]); err != nil || got != want {
					problems = append(problems, fmt.Sprintf("%s says %q of %s, which is %v in %s", name, text[m[0]:m[1]], f.what, want, f.file))
				}
			}
		}
		if !found {
			problems = append(problems, fmt.Sprintf("no sentence names %s as in %q", f.what, says))
		}
	}
	return problems
}

// unclaimed reports bounds that are compared with nothing.
func unclaimed(pages map[string]string, claimed map[string][]int) (problems []string) {
	for name, text := range pages {
		for _, m := range bound.FindAllStringSubmatchIndex(text, -1) {
			at := m[2:]
			for at[0] < 0 {
				at = at[2:]
			}
			exempt := func(phrase string) bool {
				i := strings.Index(text[max(0, m[0]-len(phrase)):min(len(text), m[1]+len(phrase))], phrase)
				return i >= 0
			}
			if !slices.Contains(claimed[name], at[0]) && !slices.ContainsFunc(boundless, exempt) {
				problems = append(problems, fmt.Sprintf("%s sets a bound that no figure is compared with; add it to figures, or to boundless if no constant of the code sets it: %q",
					name, text[max(0, m[0]-50):min(len(text), m[1]+30)]))
			}
		}
	}
	return problems
}

// TestFigureRulesCanFail: each constant that is changed in the code alone is found,
// and so is a sentence with a bound of its own.
func TestFigureRulesCanFail(t *testing.T) {
	files := everyFile(t)
	pages := prose(files)
	for _, f := range figures {
		text := files[f.file]
		m := regexp.MustCompile(f.source).FindStringSubmatchIndex(text)
		if m == nil {
			t.Fatalf("%s has no %s", f.file, f.what)
		}
		changed := map[string]string{f.file: text[:m[2]] + "7 * " + text[m[2]:]}
		if got := f.wrong(changed, pages, map[string][]int{}); len(got) < len(f.says) {
			t.Errorf("%s is seven times as much in the code, and of the sentences that say so only these are wrong: %q", f.what, got)
		}
	}
	own := prose(map[string]string{"docs/new.md": "It waits for up to 17 ms, and holds 9 locks at most."})
	if got := unclaimed(own, nil); len(got) != 2 {
		t.Errorf("got %q, want two bounds that are compared with nothing", got)
	}
}
