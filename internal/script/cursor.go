package script

import (
	"fmt"
	"strconv"
)

// Cursor reads the reply of a script field by field. The first field that is missing or of the wrong type stops it:
// later reads give zero values, and Err names the script and that field. So a decoder reads everything first and
// checks once.
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

// Err returns what stopped the cursor, or nil.
func (c *Cursor) Err() error {
	return c.err
}

// End returns Err, or an error if fields are left: then the script and its decoder disagree.
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
