//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const manPage = "../../docs/relock.1"

func TestManPageIsThatOfTheHelp(t *testing.T) {
	page, err := os.ReadFile(manPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != manual() {
		t.Errorf("%s is not what relock man prints: run make man", manPage)
	}
	w := newWorld(t)
	if status, out, complaint := w.relock("man"); status != 0 || out != manual() || complaint != "" {
		t.Errorf("man: status %d, %q, complaint %q", status, out, complaint)
	}
}

// checkers of man pages print what is wrong with one.
var checkers = [][]string{
	{"mandoc", "-T", "lint"},
	{"groff", "-man", "-ww", "-z"},
	{"man", "--warnings", "-l", "-E", "UTF-8", "-Tutf8", "-Z"},
}

func TestManPageIsWrittenRight(t *testing.T) {
	path, err := filepath.Abs(manPage)
	if err != nil {
		t.Fatal(err)
	}
	for _, checker := range checkers {
		t.Run(checker[0], func(t *testing.T) {
			if _, err := exec.LookPath(checker[0]); err != nil {
				t.Skip("left out: there is no ", checker[0])
			}
			cmd := exec.CommandContext(t.Context(), checker[0], append(checker[1:], path)...)
			var complaint strings.Builder
			cmd.Stderr = &complaint
			out, err := cmd.Output()
			if checker[0] == "mandoc" {
				complaint.Write(out)
			}
			if err != nil || complaint.Len() > 0 {
				t.Errorf("%v: %s", err, complaint.String())
			}
		})
	}
}

// What roff would take for requests and escapes is text.
func TestManPageEscapesWhatRoffObeys(t *testing.T) {
	for text, want := range map[string]string{
		`.x`: `\&.x`, `'x`: `\(aqx`, `a\b`: `a\eb`, `-q`: `\-q`,
	} {
		if got := escaped(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
