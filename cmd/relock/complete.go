//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// completeCommand is the hidden command that the completion scripts call. Its arguments are the shell's name
// and the words so far, of which the last one must be completed. Bash splits words differently, so its script
// passes the whole line.
const completeCommand = "complete"

const (
	// namesWithin bounds how long a completion waits for Redis. namesMost bounds how many names it offers.
	namesWithin = time.Second
	namesMost   = 500
)

// A candidate is a word that may stand at the cursor.
type candidate struct{ word, about string }

// A cursor is the place in a line that must be completed.
type cursor struct {
	typed   string // of the word to complete
	verb    verb   // has no name if the line has no verb yet
	fs      *flags // the flags that may stand there
	at      server // the server that the line names
	value   string // the value that the flag before it takes
	words   int    // number of the verb's arguments before it
	command int    // index of the word at which a command begins; 0: none
	dashed  bool   // after a "--", so no flags may follow
	known   bool   // relock understands everything before it
}

func (t *tool) complete(ctx context.Context, args []string) (status int) {
	if len(args) < 2 {
		return t.fail(usageError{errors.New(completeCommand + " is only for the scripts that relock completion prints")})
	}
	shell, words := args[0], args[1:]
	var line bashLine
	if shell == "bash" {
		line = splitBash(words[0], strings.Join(words[1:], ""))
		words = line.words
	}
	c := locate(t.env, words)
	if c.value == "FILE" || c.value == "" && c.command > 0 {
		t.say("%s\n", c.elsewhere(shell, len(words)))
		return 0
	}
	t.say("words\n")
	for _, one := range c.candidates(ctx) {
		switch {
		case !strings.HasPrefix(one.word, c.typed):
		case shell == "bash":
			t.say("%s\n", line.rest(one.word))
		default:
			t.say("%s\t%s\n", one.word, one.about)
		}
	}
	return 0
}

// elsewhere tells the shell to complete by itself: files, or a command that begins at a word.
func (c *cursor) elsewhere(shell string, words int) string {
	switch {
	case c.value != "":
		return "files"
	case shell != "bash":
		return "command " + strconv.Itoa(c.command)
	case c.command == words-1:
		return "commands"
	}
	return "files"
}

// locate reads the words before the last one as relock would.
func locate(env, words []string) *cursor {
	last := len(words) - 1
	c := &cursor{typed: words[last]}
	c.fs = commonFlags(&c.at, env)
	said := newFlags() // server flags, before and after the verb
	c.at.flags(said, env)
	for i := 0; i < last; i++ {
		word := words[i]
		switch {
		case !c.dashed && word == "--":
			c.dashed = true
		case !c.dashed && len(word) > 1 && word[0] == '-':
			if !takesValue(c.fs, word) {
				_ = said.Parse(words[i : i+1]) // fails for flags that are not about the server
				continue
			}
			if i++; i == last {
				c.value = c.fs.row(undashed(word)).value
				return c
			}
			_ = said.Parse(words[i-1 : i+1])
		case c.verb.name == "":
			if c.verb, c.known = verbOf(word); !c.known {
				return c
			}
			c.fs, _ = c.verb.flags(&tool{env: env})
		case c.place() == aCommand:
			c.command = i
			return c
		default:
			c.words++
		}
	}
	if c.known = c.verb.name != "" || !c.dashed; c.place() == aCommand && (c.dashed || !strings.HasPrefix(c.typed, "-")) {
		c.command = last
	}
	return c
}

// place returns the name of the next argument that is not a flag, or "" if there is none.
func (c *cursor) place() string {
	if places := c.verb.places(); c.words < len(places) {
		return places[c.words]
	}
	return ""
}

func (c *cursor) candidates(ctx context.Context) (all []candidate) {
	place := c.place()
	switch {
	case !c.known || c.value != "":
	case !c.dashed && (strings.HasPrefix(c.typed, "-") || c.verb.name != "" && place == ""):
		for _, f := range c.fs.rows() {
			all = append(all, candidate{"-" + f.name, wrapped(f.text, math.MaxInt)[0]})
		}
	case c.verb.name == "":
		for _, v := range verbs() {
			all = append(all, candidate{v.name, v.brief})
		}
	case place == "NAME", place == "PREFIX":
		return c.locks(ctx)
	case place != "":
		for one := range strings.SplitSeq(place, "|") {
			all = append(all, candidate{one, ""})
		}
	}
	return all
}

// locks returns the locks that are in use, as far as Redis answers in time.
func (c *cursor) locks(ctx context.Context) (all []candidate) {
	ctx, cancel := context.WithTimeout(ctx, namesWithin)
	defer cancel()
	c.at.within = namesWithin
	l, err := c.at.connect(ctx)
	if err != nil {
		return nil
	}
	defer l.close()
	for info, err := range l.locks.Locks(ctx, literal.Replace(c.typed)+"*") {
		if err != nil || len(all) == namesMost {
			break
		}
		all = append(all, candidate{info.Name, info.Kind})
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(a.word, b.word) })
	return all
}
