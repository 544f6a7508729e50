//go:build unix

package main

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// completed are the candidates for the last of those words, each with what is said of it.
func (w *world) completed(words ...string) (how string, lines []string) {
	w.Helper()
	status, out, complaint := w.relock(append([]string{"complete", "zsh"}, words...)...)
	if status != 0 || complaint != "" {
		w.Errorf("complete %q: status %d, complaint %q", words, status, complaint)
	}
	all := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	for _, line := range all[1:] {
		word, _, _ := strings.Cut(line, "\t")
		lines = append(lines, word)
	}
	return all[0], lines
}

// Whatever the help shows can be completed, since both are made of it.
func TestEachVerbAndFlagOfTheHelpIsCompleted(t *testing.T) {
	w := newWorld(t)
	_, names := w.completed("")
	for _, v := range verbs() {
		if !slices.Contains(names, v.name) {
			t.Errorf("the verb %s is not among %q", v.name, names)
		}
		_, found := w.completed(v.name, "-")
		for line := range strings.Lines(v.help(&tool{})) {
			if name, is := strings.CutPrefix(line, "  -"); is && !slices.Contains(found, "-"+strings.Fields(name)[0]) {
				t.Errorf("%s: -%s is not among %q", v.name, strings.Fields(name)[0], found)
			}
		}
	}
}

func TestCursorIsFoundWhereverFlagsStand(t *testing.T) {
	w := newWorld(t)
	h := w.hold("held")
	defer func() { _ = h.Release() }()
	for _, row := range []struct{ line, how, words string }{
		{"unl|", "words", "unlock"},
		{"-q unl|", "words", "unlock"},
		{"info h|", "words", "held"},
		{"info -json he|", "words", "held"},
		{"-prefix other info he|", "words", ""},
		{"-prefix=other info he|", "words", ""},
		{"info -redis redis://127.0.0.1:1 he|", "words", ""},
		{"info he* |", "words", "-redis -prefix -cert -key -cacert -sharded -q -json"},
		{"ls he|", "words", "held"},
		{"unlock -f|", "words", "-force"},
		{"info -- he|", "words", "held"},
		{"info -- -|", "words", ""},
		{"run -wait |", "words", ""},
		{"run -cert |", "files", ""},
		{"run x -wai|", "words", "-wait"},
		{"run x |", "command 2", ""},
		{"run x -wait 3 -fair -- -|", "command 6", ""},
		{"run x ls -|", "command 2", ""},
		{"dance |", "words", ""},
		{"completion b|", "words", "bash"},
	} {
		line := strings.TrimSuffix(row.line, "|")
		how, words := w.completed(strings.Split(line, " ")...)
		if how != row.how || strings.Join(words, " ") != row.words {
			t.Errorf("%q: %s %q, want %s %q", row.line, how, words, row.how, row.words)
		}
	}
}

func TestBashGetsWordsAsItDividesThem(t *testing.T) {
	for _, row := range []struct{ line, word, rest string }{
		{`relock info a`, `a:b c`, `a:b\ c`},
		{`relock info a:`, `a:b c`, `b\ c`},
		{`relock info a:b\ `, `a:b c`, `b\ c`},
		{`relock info "a:`, `a:b "c" $d`, `a:b \"c\" \$d`},
		{`relock info "`, `a!b`, `a"\!"b`},
		{`relock info 'a`, `a'b`, `a'\''b`},
		{`relock info `, `~x;y`, `\~x\;y`},
		{`relock info `, `größe`, `größe`},
	} {
		if got := splitBash(row.line, bashBreaks).rest(row.word); got != row.rest {
			t.Errorf("%q, %q: %q, want %q", row.line, row.word, got, row.rest)
		}
	}
	got := splitBash(`relock  -redis "a b"'c' \`+"\td", bashBreaks)
	if want := []string{"-redis", "a bc", "\td"}; !slices.Equal(got.words, want) {
		t.Errorf("words %q, want %q", got.words, want)
	}
}

const bashBreaks = " \t\n\"'><=;|&(:"

// A user who has typed Tab waits for a Redis that does not answer no longer than that.
func TestSilentRedisHoldsUpNoCompletion(t *testing.T) {
	w := newWorld(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	began := time.Now()
	how, words := w.completed("info", "-redis", fmt.Sprintf("redis://%s", silent.Addr()), "x")
	if took := time.Since(began); how != "words" || len(words) > 0 || took > time.Second+farewell {
		t.Errorf("%s %q after %v, want nothing, within a second", how, words, took)
	}
}
