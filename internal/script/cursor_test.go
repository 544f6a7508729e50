package script_test

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/relock-go/relock/internal/script"
)

var acquire = &script.Script{Name: "acquire"}

func TestCursorReadsFieldsInOrder(t *testing.T) {
	c := acquire.Read([]any{int64(7), "owner", "1750000000000001", ""})
	n, owner, token, empty := c.Int("state"), c.Str("owner"), c.Int("token"), c.Str("empty")
	if n != 7 || owner != "owner" || token != 1750000000000001 || empty != "" {
		t.Errorf("read %d %q %d %q", n, owner, token, empty)
	}
	if err := c.End(); err != nil {
		t.Error(err)
	}
}

func TestCursorNamesScriptAndField(t *testing.T) {
	for name, row := range map[string]struct {
		reply []any
		read  func(*script.Cursor)
		want  string
	}{
		"missing int":      {nil, func(c *script.Cursor) { c.Int("ttl") }, "script acquire: reply ends before field ttl"},
		"missing string":   {nil, func(c *script.Cursor) { c.Str("ttl") }, "script acquire: reply ends before field ttl"},
		"int for string":   {[]any{int64(1)}, func(c *script.Cursor) { c.Str("owner") }, `script acquire: field owner is int64 "1", want a string`},
		"word for int":     {[]any{"x"}, func(c *script.Cursor) { c.Int("ttl") }, `script acquire: field ttl is string "x", want an integer`},
		"exponent for int": {[]any{"1e+15"}, func(c *script.Cursor) { c.Int("ttl") }, `script acquire: field ttl is string "1e+15", want an integer`},
		"too large":        {[]any{"9223372036854775808"}, func(c *script.Cursor) { c.Int("ttl") }, "want an integer"},
		"nil for int":      {[]any{nil}, func(c *script.Cursor) { c.Int("ttl") }, `script acquire: field ttl is <nil> "<nil>", want an integer`},
		"error for string": {[]any{errors.New("OOM no")}, func(c *script.Cursor) { c.Str("owner") }, `"OOM no", want a string`},
		"array for int":    {[]any{[]any{int64(1)}}, func(c *script.Cursor) { c.Int("ttl") }, "want an integer"},
	} {
		t.Run(name, func(t *testing.T) {
			c := acquire.Read(row.reply)
			row.read(c)
			if err := c.End(); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("error %v, want %s", err, row.want)
			}
		})
	}
}

func TestCursorStopsAtTheFirstBadField(t *testing.T) {
	c := acquire.Read([]any{"x", int64(5), "s"})
	c.Int("first")
	if n, s := c.Int("second"), c.Str("third"); n != 0 || s != "" {
		t.Errorf("read %d %q after an error, want zero values", n, s)
	}
	if c.More() {
		t.Error("more fields after an error")
	}
	if err := c.End(); err == nil || !strings.Contains(err.Error(), "field first") {
		t.Errorf("error %v, want the one of field first", err)
	}
}

func TestEndRefusesFieldsLeftOver(t *testing.T) {
	c := acquire.Read([]any{int64(1), int64(2)})
	c.Int("only")
	if err := c.End(); err == nil || !strings.Contains(err.Error(), "2 fields, want 1") {
		t.Errorf("error %v, want 2 fields, want 1", err)
	}
}

// FuzzCursor reads a reply made from kinds by the wishes in reads. Whatever
// they are, nothing panics, the loop ends, and only what is there is returned.
func FuzzCursor(f *testing.F) {
	f.Add([]byte{0, 1, 2}, []byte{0, 1, 0}, "12")
	f.Add([]byte{3, 4, 5, 6}, []byte{0, 0, 1, 1}, "")
	f.Add([]byte{}, []byte{0}, "x")
	f.Fuzz(func(t *testing.T, kinds, reads []byte, text string) {
		reply := make([]any, len(kinds))
		for i, kind := range kinds {
			reply[i] = field(kind, text)
		}
		c := acquire.Read(reply)
		good := 0
		for _, read := range reads {
			if read%2 == 0 {
				c.Int("n")
			} else if s := c.Str("s"); s != "" && s != text {
				t.Errorf("read %q, which no field is", s)
			}
			good++ // if it is not, End has an error
		}
		for c.More() {
			c.Int("rest")
			good++
		}
		if err := c.End(); err == nil && good != len(reply) {
			t.Errorf("no error after %d of %d fields", good, len(reply))
		} else if err != nil && !strings.HasPrefix(err.Error(), "script acquire: ") {
			t.Errorf("error %q does not name the script", err)
		}
	})
}

func field(kind byte, text string) any {
	switch kind % 7 {
	case 0:
		return int64(binary.BigEndian.Uint16([]byte{kind, kind}))
	case 1:
		return text
	case 2:
		return nil
	case 3:
		return []any{text, int64(1)}
	case 4:
		return errors.New(text)
	case 5:
		return math.Inf(1)
	}
	return map[any]any{text: true}
}

func TestValuesOutOfBoundsStopTheCursor(t *testing.T) {
	s := acquire
	for _, n := range []int64{1, 5} {
		if cur := s.Read([]any{n}); cur.Within("n", 1, 5) != n || cur.End() != nil {
			t.Errorf("%d is not within 1 to 5: %v", n, cur.End())
		}
	}
	for _, n := range []int64{0, 6} {
		cur := s.Read([]any{n, int64(7)})
		if got := cur.Within("n", 1, 5); got != 0 || cur.More() || cur.End() == nil || !strings.Contains(cur.End().Error(), "want 1 to 5") {
			t.Errorf("%d is read as %d, %v", n, got, cur.End())
		}
	}
	cur := s.Read([]any{"x", int64(7)})
	cur.Check(cur.Str("mode") == "x", "mode")
	cur.Check(false, "mode")
	if cur.Int("next") != 0 || cur.End() == nil || !strings.Contains(cur.End().Error(), "mode") {
		t.Errorf("an unknown value is read over: %v", cur.End())
	}
}
