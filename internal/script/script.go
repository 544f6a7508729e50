// Package script loads Lua scripts from files and reads their replies. Its only I/O is with the given fs.FS,
// and it does not know what the scripts do.
package script

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strconv"
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

// MustLoad reads the script name from <name>.lua in fsys. A comment line "-- uses: a b" is replaced by shared_a.lua and
// shared_b.lua, in that order. So a script can answer its usual case before it defines what the other cases need.
// Scripts are embedded in the program, so MustLoad panics if a file is missing.
//
// MustLoad drops lines that are comments. It keeps a comment after code on the same line. It does not understand long
// brackets, and a test makes sure that no script has them, and that no shared part uses others.
func MustLoad(fsys fs.FS, name string) *Script {
	var code strings.Builder
	read(&code, fsys, name)
	sum := sha1.Sum([]byte(code.String()))
	return &Script{Name: name, Source: code.String(), SHA: hex.EncodeToString(sum[:])}
}

// read appends the code of one file to code, with the parts that it names. Each line ends with a newline.
func read(code *strings.Builder, fsys fs.FS, name string) {
	text, err := fs.ReadFile(fsys, name+".lua")
	if err != nil {
		panic("relock: bug: script " + name + ": " + err.Error())
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		// This also drops the CR of a checkout with CRLF line ends, which would change the SHA of the same script.
		line = strings.TrimRight(line, " \t\r")
		bare := strings.TrimLeft(line, " \t")
		if parts, is := strings.CutPrefix(bare, usesHeader); is {
			for part := range strings.FieldsSeq(parts) {
				read(code, fsys, sharedPrefix+part)
			}
		}
		if bare != "" && !strings.HasPrefix(bare, "--") {
			code.WriteString(line)
			code.WriteByte('\n')
		}
	}
}

// Cursor reads the reply of a script field by field. The first field that is missing or of the wrong type stops it:
// later reads give zero values, and End names the script and that field. So a decoder checks for an error only once.
type Cursor struct {
	script string
	reply  []any
	next   int
	err    error
}

// Int returns the next field, an integer or a string of decimal digits. Lua returns large numbers as strings,
// because its own numbers lose digits in print.
func (c *Cursor) Int(field string) int64 {
	switch v := c.take(field).(type) {
	case int64:
		return v
	case string:
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			return n
		}
		c.fail(field, "an integer", v)
	default:
		c.fail(field, "an integer", v)
	}
	return 0
}

// Within is Int for a field with bounds. A value outside them stops the cursor, as one of the wrong type does.
func (c *Cursor) Within(field string, least, most int64) int64 {
	n := c.Int(field)
	if c.err == nil && (n < least || n > most) {
		c.err = fmt.Errorf("script %s: field %s is %d, want %d to %d", c.script, field, n, least, most)
	}
	if c.err != nil {
		return 0
	}
	return n
}

// Check stops the cursor if ok is false: the decoder does not know the value of the field just read.
func (c *Cursor) Check(ok bool, field string) {
	if c.err == nil && !ok {
		c.err = fmt.Errorf("script %s: field %s has a value that this version does not know", c.script, field)
	}
}

// Str returns the next field, a string.
func (c *Cursor) Str(field string) string {
	v := c.take(field)
	s, ok := v.(string)
	if !ok {
		c.fail(field, "a string", v)
	}
	return s
}

// More reports whether fields are left. It is false after an error, so that a loop over it ends.
func (c *Cursor) More() bool {
	return c.err == nil && c.next < len(c.reply)
}

// End returns what stopped the cursor, or an error if fields are left: then the script and its decoder disagree.
func (c *Cursor) End() error {
	if c.More() {
		c.err = fmt.Errorf("script %s: reply has %d fields, want %d", c.script, len(c.reply), c.next)
	}
	return c.err
}

// take returns the next field as it is. It returns nil if there is none or the cursor has stopped.
func (c *Cursor) take(field string) any {
	if c.err != nil {
		return nil
	}
	if c.next >= len(c.reply) {
		c.err = fmt.Errorf("script %s: reply ends before field %s", c.script, field)
		return nil
	}
	v := c.reply[c.next]
	c.next++
	return v
}

// fail stops the cursor, unless an earlier field has.
func (c *Cursor) fail(field, want string, got any) {
	if c.err == nil {
		c.err = fmt.Errorf("script %s: field %s is %T %.100q, want %s", c.script, field, got, fmt.Sprint(got), want)
	}
}
