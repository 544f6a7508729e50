package check

import (
	"encoding/json"
	"strconv"

	"github.com/relock-go/relock/test/torture/history"
)

// A parser reads lines of a history. It keeps one copy of each text, as there
// are few and millions of events repeat them.
type parser struct {
	texts map[string]string
}

func newParser() *parser { return &parser{texts: map[string]string{}} }

// line reads one event. What the writer writes goes the fast way; all else that
// is JSON goes through encoding/json.
func (p *parser) line(b []byte, e *history.Event) error {
	*e = history.Event{}
	if p.fast(b, e) {
		return nil
	}
	*e = history.Event{}
	if err := json.Unmarshal(b, e); err != nil {
		return err
	}
	for _, s := range []*string{&e.Lock, &e.Kind, &e.Mode, &e.Owner, &e.Err, &e.Fault, &e.On} {
		*s = p.text([]byte(*s))
	}
	return nil
}

func (p *parser) text(b []byte) string {
	if s, ok := p.texts[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(p.texts) < 1<<20 { // owners that are made up for one call each must not fill the memory
		p.texts[s] = s
	}
	return s
}

// fast reads a flat object without spaces, escapes or unknown names.
func (p *parser) fast(b []byte, e *history.Event) bool {
	if len(b) < 2 || b[0] != '{' || b[len(b)-1] != '}' {
		return false
	}
	for i := 1; ; {
		name, n := quoted(b[i:])
		if n == 0 || i+n >= len(b) || b[i+n] != ':' {
			return false
		}
		i += n + 1
		n = p.value(name, b[i:], e)
		if n == 0 {
			return false
		}
		i += n
		switch {
		case b[i] == '}':
			return i == len(b)-1
		case b[i] != ',':
			return false
		}
		i++
	}
}

// value reads the value of a field, and returns its length, or 0. The last byte
// of b is the object's end, so a value never reaches it.
func (p *parser) value(name, b []byte, e *history.Event) int {
	if into := number(name, e); into != nil {
		v, n := integer(b)
		*into = v
		return n
	}
	if string(name) == "w" {
		v, n := integer(b)
		e.Worker = int(v)
		return n
	}
	text, n := quoted(b)
	if n == 0 || n >= len(b) {
		return 0
	}
	if string(name) == "e" {
		e.What = history.What(p.text(text))
		return n
	}
	into := wording(name, e)
	if into == nil {
		return 0
	}
	*into = p.text(text)
	return n
}

func number(name []byte, e *history.Event) *int64 {
	switch string(name) {
	case "t":
		return &e.T
	case "i":
		return &e.ID
	case "f":
		return &e.Token
	case "ttl":
		return &e.TTL
	case "u":
		return &e.Until
	case "n":
		return &e.Weight
	case "of":
		return &e.Of
	case "by":
		return &e.By
	}
	return nil
}

func wording(name []byte, e *history.Event) *string {
	switch string(name) {
	case "l":
		return &e.Lock
	case "k":
		return &e.Kind
	case "m":
		return &e.Mode
	case "o":
		return &e.Owner
	case "err":
		return &e.Err
	case "x":
		return &e.Fault
	case "on":
		return &e.On
	}
	return nil
}

// quoted reads a string of plain ASCII, and returns its length with the quotes, or 0.
func quoted(b []byte) (text []byte, n int) {
	if len(b) == 0 || b[0] != '"' {
		return nil, 0
	}
	for i := 1; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return b[1:i], i + 1
		case c == '\\', c < ' ', c >= 0x7f:
			return nil, 0
		}
	}
	return nil, 0
}

// integer reads an integer as JSON has it, and returns its length, or 0.
func integer(b []byte) (v int64, n int) {
	for n < len(b) && (b[n] == '-' || b[n] >= '0' && b[n] <= '9') {
		n++
	}
	if n == len(b) || b[0] == '0' && n > 1 || n > 1 && b[0] == '-' && b[1] == '0' {
		return 0, 0
	}
	v, err := strconv.ParseInt(string(b[:n]), 10, 64)
	if err != nil {
		return 0, 0
	}
	return v, n
}
