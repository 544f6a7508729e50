package house_test

import (
	"regexp"
	"strings"
	"testing"
)

// namedApart are the lists of the Makefile that say which tests run without the race
// detector; functionsOfTests are the tests that there are.
var (
	namedApart       = regexp.MustCompile(`(?m)^(SEARCHES|CROWDS|MEASURES|TWICE) := (.*)$`)
	functionsOfTests = regexp.MustCompile(`(?m)^func Test(\w+)\(`)
)

func TestMakefileNamesTestsThatExist(t *testing.T) { report(t, unknownApart(everyFile(t))) }

// unknownApart reports what a list of the Makefile names and no test is called: a test
// that was renamed runs in both ways.
func unknownApart(files map[string]string) (problems []string) {
	var tests []string
	for name, text := range files {
		if strings.HasSuffix(name, "_test.go") {
			for _, m := range functionsOfTests.FindAllStringSubmatch(text, -1) {
				tests = append(tests, m[1])
			}
		}
	}
	lists := namedApart.FindAllStringSubmatch(files["Makefile"], -1)
	if len(lists) != 4 {
		return []string{"Makefile: the lists of tests that run apart are not found"}
	}
	if strings.Index(files["Makefile"], "\nCROWDS :=") > strings.Index(files["Makefile"], "\nSEARCHES :=") {
		problems = append(problems, "Makefile: SEARCHES names CROWDS before that is set: nothing of it runs apart")
	}
	for _, list := range lists {
		for _, pattern := range alternatives(list[2]) {
			if pattern == "$(CROWDS)" { // a list of its own
				continue
			}
			re := regexp.MustCompile("^(" + pattern + ")$")
			known := false
			for _, test := range tests {
				known = known || re.MatchString(test)
			}
			if !known {
				problems = append(problems, "Makefile: "+list[1]+" names "+pattern+", and no test is called so")
			}
		}
	}
	return problems
}

// underRace is what a test asks that the race detector disturbs.
const underRace = "rig." + "UnderRace"

func TestWhatTheRaceDetectorDisturbsRunsWithoutIt(t *testing.T) { report(t, runNowhere(everyFile(t))) }

// runNowhere reports tests that do less under the race detector, and that no list of the
// Makefile has run without it.
func runNowhere(files map[string]string) (problems []string) {
	var lists []string
	for _, list := range namedApart.FindAllStringSubmatch(files["Makefile"], -1) {
		lists = append(lists, strings.ReplaceAll(list[2], "$(CROWDS)", "x"))
	}
	named := regexp.MustCompile("^(" + strings.Join(lists, "|") + ")$")
	for name, text := range files {
		if !strings.HasSuffix(name, "_test.go") {
			continue
		}
		for fn := range strings.SplitSeq(text, "\n}\n") {
			m := functionsOfTests.FindStringSubmatch(fn)
			if m != nil && strings.Contains(fn, underRace) && !named.MatchString(m[1]) {
				problems = append(problems, name+": Test"+m[1]+" does less under the race detector, and runs without it nowhere; name it in a list of the Makefile")
			}
		}
	}
	return problems
}

// alternatives divides a pattern at each | that stands in no parentheses.
func alternatives(pattern string) (all []string) {
	depth, begin := 0, 0
	for i, r := range pattern {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == '|' && depth == 0:
			all, begin = append(all, pattern[begin:i]), i+1
		}
	}
	return append(all, pattern[begin:])
}

func TestMakefileRuleCanFail(t *testing.T) {
	files := map[string]string{
		"Makefile":  "\nCROWDS := D\nSEARCHES := A(b|c)|Gone|$(CROWDS)\nMEASURES := D\nTWICE := D\n",
		"a_test.go": "func TestAc(t *testing.T) {}\nfunc TestD(t *testing.T) {}\n",
	}
	if got := unknownApart(files); len(got) != 1 || !strings.Contains(got[0], "Gone") {
		t.Errorf("got %q, want Gone named", got)
	}
	files["b_test.go"] = strings.ReplaceAll("func TestD(t *testing.T) {\n\tif UNDER {\n\t}\n}\n\nfunc TestE(t *testing.T) {\n\tif UNDER {\n\t}\n}\n", "UNDER", underRace)
	if got := runNowhere(files); len(got) != 1 || !strings.Contains(got[0], "TestE") {
		t.Errorf("got %q, want TestE named", got)
	}
}
