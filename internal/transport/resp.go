package transport

import "strconv"

// The second version of Redis' protocol, as far as scripts need it: what is sent. What comes
// is in decoder.go.

// encodable says that Redis has a form for each argument that go-redis would give it.
func encodable(args []any) bool {
	for _, arg := range args {
		switch arg.(type) {
		case string, []byte, int, int64, uint32:
		default:
			return false
		}
	}
	return true
}

// A bare command is what goes over the wire: the arguments, and where it has a verb, before
// them the verb, the script and its keys. That saves making an argument of each.
type bare struct {
	verb, script string
	keys         []string
	args         []any
	usual        *Usual // how it can be made with others; may be nil
}

// appendCommand writes a command with arguments that are encodable.
func appendCommand(b []byte, c bare) []byte {
	if c.verb == "" {
		b = appendHead(b, '*', len(c.args))
	} else {
		b = appendHead(b, '*', 3+len(c.keys)+len(c.args))
		b = appendText(appendText(b, c.verb), c.script)
		b = appendNumber(b, int64(len(c.keys)))
		for _, key := range c.keys {
			b = appendText(b, key)
		}
	}
	for _, arg := range c.args {
		b = appendArg(b, arg)
	}
	return b
}

func appendArg(b []byte, arg any) []byte {
	switch v := arg.(type) {
	case string:
		b = appendText(b, v)
	case []byte:
		b = append(append(appendHead(b, '$', len(v)), v...), "\r\n"...)
	case int:
		b = appendNumber(b, int64(v))
	case int64:
		b = appendNumber(b, v)
	case uint32:
		b = appendNumber(b, int64(v))
	}
	return b
}

func appendText(b []byte, text string) []byte {
	return append(append(appendHead(b, '$', len(text)), text...), "\r\n"...)
}

func appendHead(b []byte, kind byte, n int) []byte {
	return append(strconv.AppendInt(append(b, kind), int64(n), 10), "\r\n"...)
}

func appendNumber(b []byte, n int64) []byte {
	var digits [20]byte
	text := strconv.AppendInt(digits[:0], n, 10)
	return append(append(appendHead(b, '$', len(text)), text...), "\r\n"...)
}
