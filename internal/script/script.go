// Package script loads Lua scripts from files and reads their replies. Its only I/O is with the given fs.FS,
// and it does not know what the scripts do.
package script

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Script is a Lua script, ready to be sent. It is read-only once loaded.
type Script struct {
	Name   string // file name without .lua
	Source string // what EVAL sends: shared parts first, no comments, no blank lines
	SHA    string // SHA-1 of Source in lower-case hex, what EVALSHA sends
}

// Read returns a cursor at the first field of a reply to s.
func (s *Script) Read(reply []any) *Cursor {
	return &Cursor{script: s.Name, reply: reply}
}

// sharedPrefix begins the file names of parts that several scripts use.
const sharedPrefix = "shared_"

// usesHeader begins the comment line that names the shared parts of a script.
const usesHeader = "-- uses:"

// Load reads the script name from <name>.lua in fsys. A comment line "-- uses: a b" is replaced by shared_a.lua and
// shared_b.lua, in that order: so a script can answer the usual case before it defines what the others need.
//
// Comments have lines of their own: a comment after code on the same line is sent. Long brackets, as comment
// or as string, are an error, because finding comments would then need a Lua parser.
func Load(fsys fs.FS, name string) (*Script, error) {
	code, uses, err := read(fsys, name)
	if err != nil {
		return nil, err
	}
	var source strings.Builder
	sent := 0
	for _, part := range uses {
		shared, nested, err := read(fsys, sharedPrefix+part.name)
		if err != nil {
			return nil, fmt.Errorf("script %s: %w", name, err)
		}
		if len(nested) > 0 {
			return nil, fmt.Errorf("script %s: shared part %s uses other parts: the script has to name them, in order", name, part.name)
		}
		source.WriteString(code[sent:part.at])
		source.WriteString(shared)
		sent = part.at
	}
	source.WriteString(code[sent:])
	sum := sha1.Sum([]byte(source.String()))
	sha := hex.EncodeToString(sum[:])
	return &Script{Name: name, Source: source.String(), SHA: sha}, nil
}

// MustLoad is Load for scripts that are embedded in the program. It panics if Load returns an error.
func MustLoad(fsys fs.FS, name string) *Script {
	s, err := Load(fsys, name)
	if err != nil {
		panic("relock: bug: " + err.Error())
	}
	return s
}

// A part is a shared part and its position in the code of the script.
type part struct {
	name string
	at   int
}

// read returns the code of one file, each line ended by a newline, and the parts that it names.
func read(fsys fs.FS, name string) (code string, uses []part, err error) {
	text, err := fs.ReadFile(fsys, name+".lua")
	if err != nil {
		return "", nil, fmt.Errorf("script %s: %w", name, err)
	}
	var out strings.Builder
	for i, line := range strings.Split(string(text), "\n") {
		// This also drops the CR of a checkout with CRLF line ends, which would change the SHA of the same script.
		line = strings.TrimRight(line, " \t\r")
		bare := strings.TrimLeft(line, " \t")
		switch {
		case strings.HasPrefix(bare, usesHeader):
			if uses, err = add(uses, bare, out.Len()); err != nil {
				return "", nil, fmt.Errorf("script %s: line %d: %w", name, i+1, err)
			}
		case longBracket(bare):
			return "", nil, fmt.Errorf("script %s: line %d: long brackets are not supported", name, i+1)
		case bare == "" || strings.HasPrefix(bare, "--"):
		default:
			out.WriteString(line)
			out.WriteByte('\n')
		}
	}
	if out.Len() == 0 {
		return "", nil, fmt.Errorf("script %s: no code", name)
	}
	return out.String(), uses, nil
}

// add appends the parts that a uses line names.
func add(uses []part, line string, at int) ([]part, error) {
	names := strings.Fields(strings.TrimPrefix(line, usesHeader))
	if len(names) == 0 {
		return nil, fmt.Errorf("%q names nothing", usesHeader)
	}
	for _, name := range names {
		// Naming a part twice would define its locals twice, against Lua's limit of 200. It is a mistake.
		if slices.ContainsFunc(uses, func(p part) bool { return p.name == name }) {
			return nil, fmt.Errorf("%q names %s twice", usesHeader, name)
		}
		uses = append(uses, part{name, at})
	}
	return uses, nil
}

// longBracket reports whether the line opens a long comment, or has a long string outside a line comment.
func longBracket(bare string) bool {
	if strings.HasPrefix(bare, "--") {
		return strings.HasPrefix(bare, "--[[") || strings.HasPrefix(bare, "--[=")
	}
	return strings.Contains(bare, "[[") || strings.Contains(bare, "[=")
}
