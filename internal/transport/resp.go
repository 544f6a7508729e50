package transport

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// The second version of Redis' protocol, as far as scripts need it.

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

// An answerError is an error that Redis answered with.
type answerError string

func (e answerError) Error() string { return string(e) }

// RedisError makes it a [redis.Error].
func (answerError) RedisError() {}

// isAnswer says that err is what Redis answered.
func isAnswer(err error) bool {
	var answer redis.Error
	return errors.As(err, &answer)
}

const (
	maxReply = 512 << 20 // bytes of a string, by Redis' own limit
	maxDepth = 16
)

var errReply = errors.New("not a reply of redis")

// readReply reads a reply. Its error is an answer, or the connection cannot be read any more.
func readReply(in *bufio.Reader) (any, error) { return readNested(in, maxDepth) }

func readNested(in *bufio.Reader, depth int) (any, error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	if len(line) < 3 || line[len(line)-2] != '\r' || depth == 0 {
		return nil, fmt.Errorf("%w: %.50q", errReply, line)
	}
	kind, text := line[0], line[1:len(line)-2]
	switch kind {
	case '+':
		return string(text), nil
	case '-':
		return nil, answerError(text)
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %.50q", errReply, line)
	case kind == ':':
		return n, nil
	case n == -1 && (kind == '$' || kind == '*'):
		return nil, redis.Nil
	case kind == '$' && n >= 0 && n <= maxReply:
		return readString(in, int(n))
	case kind == '*' && n >= 0 && n <= maxReply:
		return readList(in, int(n), depth)
	}
	return nil, fmt.Errorf("%w: %.50q", errReply, line)
}

func readString(in *bufio.Reader, n int) (any, error) {
	if n+2 <= in.Size() {
		b, err := in.Peek(n + 2)
		if err != nil {
			return nil, err
		}
		text := string(b[:n])
		_, err = in.Discard(n + 2)
		return text, err
	}
	b := make([]byte, n+2)
	if _, err := io.ReadFull(in, b); err != nil {
		return nil, err
	}
	return string(b[:n]), nil
}

// readList has errors as elements, and nil for what is nil.
func readList(in *bufio.Reader, n, depth int) (any, error) {
	list := make([]any, 0, min(n, 1024))
	for range n {
		val, err := readNested(in, depth-1)
		switch {
		case err == redis.Nil: //nolint:errorlint // ours, not wrapped
			val = nil
		case err != nil && isAnswer(err):
			val = err
		case err != nil:
			return nil, err
		}
		list = append(list, val)
	}
	return list, nil
}
