package house_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	logged    = regexp.MustCompile(`\.(?:Debug|Info|Warn|Error)(?:Context)?\((?:\w+, )?"([^"]+)"`)
	logLevel  = regexp.MustCompile(`\.(Debug|Info|Warn|Error)`)
	loggedRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (debug|info|warn|error) \\|")
)

func TestDocumentedLogMessagesAreThoseOfTheCode(t *testing.T) { report(t, wrongMessages(everyFile(t))) }

// wrongMessages reports messages that the library logs and docs/operations.md does
// not list, or at another level, and those that nothing logs. One that ends in … is
// the beginning.
func wrongMessages(files map[string]string) (problems []string) {
	coded := map[string]string{} // level by message
	for name, text := range files {
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.Contains(name, "/") && !strings.HasPrefix(name, "internal/") {
			continue
		}
		for _, m := range logged.FindAllStringSubmatch(text, -1) {
			coded[m[1]] = strings.ToLower(logLevel.FindStringSubmatch(m[0])[1])
		}
	}
	listed := map[string]bool{}
	for _, row := range loggedRow.FindAllStringSubmatch(files["docs/operations.md"], -1) {
		begin, long := strings.CutSuffix(row[1], " …")
		found := false
		for message, level := range coded {
			if message == begin || long && strings.HasPrefix(message, begin) {
				found, listed[message] = true, true
				if level != row[2] {
					problems = append(problems, "docs/operations.md lists "+row[1]+" as "+row[2]+", and the code logs it as "+level)
				}
			}
		}
		if !found {
			problems = append(problems, "docs/operations.md lists a message that nothing logs: "+row[1])
		}
	}
	for message := range coded {
		if !listed[message] {
			problems = append(problems, "docs/operations.md does not list a message that the code logs: "+message)
		}
	}
	slices.Sort(problems)
	return problems
}

func TestDocumentedLogMessagesRuleCanFail(t *testing.T) {
	const page = "docs/operations.md"
	files := map[string]string{
		"a.go":          `c.cfg.log.Warn("tried again", slog.Any("err", err)); log.Error("long; and longer")`,
		"internal/b.go": "log.Info(\"told\")",
		"cmd/c/c.go":    `t.Error("not of the library")`,
		page:            "| `tried again` | warn | x |\n| `long …` | error | x |\n| `told` | info | x |",
	}
	if got := wrongMessages(files); len(got) > 0 {
		t.Errorf("the good page is refused: %q", got)
	}
	files["a.go"] += `log.Warn("new")`
	files[page] += "\n| `gone` | warn | x |"
	files["internal/b.go"] = `log.Warn("told")`
	if got := wrongMessages(files); len(got) != 3 {
		t.Errorf("got %q, want one unlisted, one that nothing logs, one of another level", got)
	}
}
