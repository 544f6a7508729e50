package transport

import (
	"bufio"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A rawCmd is a command for a stream, which encodes it in RESP2. args are the whole command, or what follows verb,
// script, number of keys and keys. Keeping these out of args saves an allocation for each.
type rawCmd struct {
	verb, script string
	keys         []string
	args         []any
	usual        *Usual // how to group the call with others; nil: it cannot be grouped
}

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

// appendCommand appends the encoding of c. The arguments must be encodable.
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

// A decoder reads replies from a connection, whose buffer has readSize bytes.
type decoder struct{ in *bufio.Reader }

const (
	readSize = 32 << 10  // the size of the buffer, and the longest line
	maxReply = 512 << 20 // bytes of a string, by Redis' own limit
	maxDepth = 16        // of arrays inside arrays
)

var errReply = errors.New("not a reply of redis")

// An answerError is an error reply of Redis.
type answerError string

func (e answerError) Error() string { return string(e) }

func (answerError) RedisError() {}

// readReply reads the next reply, or the next element of an array, and waits for it. depth is how many arrays may be
// inside each other. After an error the connection cannot be read any more.
func (d *decoder) readReply(depth int) (r reply, err error) {
	line, err := d.in.ReadSlice('\n')
	if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
		return r, err
	}
	if err != nil || len(line) < 3 || line[len(line)-2] != '\r' {
		return r, fmt.Errorf("%w: %.50q", errReply, line)
	}
	kind, text := line[0], line[1:len(line)-2]
	switch kind {
	case '+':
		return reply{val: string(text)}, nil
	case '-':
		return reply{err: answerError(text)}, nil
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	switch {
	case err != nil:
	case kind == ':':
		return reply{val: n}, nil
	case kind != '$' && kind != '*' || n < -1 || n > maxReply:
	case n < 0:
		return reply{err: redis.Nil}, nil
	case kind == '$':
		return d.text(int(n))
	case depth > 0:
		return d.array(n, depth-1)
	}
	return r, fmt.Errorf("%w: %.50q", errReply, line)
}

// text reads a string of n bytes, and the end of its line.
func (d *decoder) text(n int) (_ reply, err error) {
	var b strings.Builder // grows as data arrives, because a server may announce more than it sends
	b.Grow(min(n, readSize))
	for b.Len() < n && err == nil {
		var part []byte
		part, err = d.in.Peek(min(n-b.Len(), readSize))
		b.Write(part)
		_, _ = d.in.Discard(len(part))
	}
	if err != nil {
		return reply{}, err
	}
	end, err := d.in.Peek(2)
	if err == nil && string(end) != "\r\n" { // otherwise a wrong length would go unnoticed
		err = fmt.Errorf("%w: %q at the end of a string", errReply, end)
	}
	_, _ = d.in.Discard(len(end))
	return reply{val: b.String()}, err
}

// array reads n elements. An error becomes an element, nil stays nil. depth is how many arrays may still be nested.
func (d *decoder) array(n int64, depth int) (reply, error) {
	vals := make([]any, 0, min(n, 1024))
	for range n {
		r, err := d.readReply(depth)
		if err != nil {
			return reply{}, err
		}
		val := r.val
		if r.err != nil && r.err != redis.Nil { //nolint:errorlint // made here, never wrapped
			val = r.err
		}
		vals = append(vals, val)
	}
	return reply{val: vals}, nil
}
