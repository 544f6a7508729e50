package transport

import "strconv"

// encodable reports whether appendArg can encode each argument, with the same bytes as go-redis.
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

// A rawCmd is a command to be encoded in RESP2. If it has a verb, then verb, script, number of keys and keys come before
// args. Keeping them apart saves an allocation for each.
type rawCmd struct {
	verb, script string
	keys         []string
	args         []any
	usual        *Usual // how to group the call with others; nil: it cannot be grouped
}

// appendCommand appends the encoding of c, whose arguments must be encodable.
func appendCommand(b []byte, c rawCmd) []byte {
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
