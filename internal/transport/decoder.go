package transport

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// A decoder parses replies as their bytes arrive. It keeps its state between two parts of a reply: the caller that reads
// may have to stop there, and the next reader goes on at the same byte.
type decoder struct {
	from io.Reader
	buf  []byte // the bytes received
	at   int    // how many bytes of buf have been parsed
	open []list // arrays that are not complete, the outermost first
}

// A list is an array that is not complete.
type list struct {
	vals []any
	left int64 // elements still missing
}

const (
	readSize = 32 << 10  // the usual size of the buffer
	maxReply = 512 << 20 // bytes of a string, by Redis' own limit
	maxLine  = 64 << 10
	maxDepth = 16
)

var errReply = errors.New("not a reply of redis")

// An answerError is an error reply of Redis.
type answerError string

func (e answerError) Error() string { return string(e) }

func (answerError) RedisError() {}

func newDecoder(from io.Reader) *decoder {
	return &decoder{from: from, buf: make([]byte, 0, readSize)}
}

// fill reads more bytes into the buffer, and waits for them. After a timeout no byte is lost: it can be called again.
func (d *decoder) fill() error {
	switch {
	case d.at == len(d.buf) && cap(d.buf) > readSize: // free a buffer that has grown for a long string
		d.buf, d.at = make([]byte, 0, readSize), 0
	case d.at > 0 && (d.at == len(d.buf) || len(d.buf) == cap(d.buf)):
		d.buf, d.at = d.buf[:copy(d.buf, d.buf[d.at:])], 0
	}
	if len(d.buf) == cap(d.buf) {
		d.buf = append(make([]byte, 0, 2*cap(d.buf)), d.buf...)
	}
	n, err := d.from.Read(d.buf[len(d.buf):cap(d.buf)])
	d.buf = d.buf[:len(d.buf)+n]
	if n > 0 {
		return nil // the next Read returns err again
	}
	return err
}

// next returns the next reply if it is complete. After an error the connection cannot be read any more.
func (d *decoder) next() (r reply, whole bool, err error) {
	for {
		e, size, err := readElement(d.buf[d.at:])
		if err != nil || size == 0 {
			return reply{}, false, err
		}
		d.at += size
		if e.kind == '*' && e.n > 0 {
			if len(d.open) == maxDepth {
				return reply{}, false, fmt.Errorf("%w: arrays in arrays, %d deep", errReply, maxDepth)
			}
			d.open = append(d.open, list{make([]any, 0, min(e.n, 1024)), e.n})
			continue
		}
		if r, whole := d.close(e.reply()); whole {
			return r, true, nil
		}
	}
}

// close adds an element to the innermost open array. If that completes the array, it adds the array to the next outer
// one, and so on. whole is true if r itself is now a complete reply.
func (d *decoder) close(r reply) (_ reply, whole bool) {
	for len(d.open) > 0 {
		in := &d.open[len(d.open)-1]
		val := r.val
		if r.err != nil && r.err != redis.Nil { //nolint:errorlint // made here, never wrapped
			val = r.err
		}
		in.vals = append(in.vals, val)
		if in.left--; in.left > 0 {
			return reply{}, false
		}
		r = reply{val: in.vals}
		*in = list{}
		d.open = d.open[:len(d.open)-1]
	}
	return r, true
}

// An element is a reply, or the beginning of an array.
type element struct {
	kind byte
	text []byte // a slice of the buffer
	n    int64  // a number, or a length; -1: nil
}

// reply returns an element that does not begin an array. A nil becomes the error redis.Nil.
func (e element) reply() reply {
	switch {
	case e.kind == '-':
		return reply{err: answerError(e.text)}
	case e.kind == ':':
		return reply{val: e.n}
	case e.n < 0:
		return reply{err: redis.Nil}
	case e.kind == '*':
		return reply{val: []any{}}
	}
	return reply{val: string(e.text)}
}

// readElement parses the first element of b and returns its size in bytes. The size is 0 if b does not hold all of it.
func readElement(b []byte) (e element, size int, err error) {
	end := bytes.IndexByte(b, '\n')
	if end < 0 && len(b) < maxLine {
		return e, 0, nil
	}
	if end < 2 || b[end-1] != '\r' {
		return e, 0, fmt.Errorf("%w: %.50q", errReply, b)
	}
	e.kind, e.text, size = b[0], b[1:end-1], end+1
	if e.kind == '+' || e.kind == '-' {
		return e, size, nil
	}
	e.n, err = strconv.ParseInt(string(e.text), 10, 64)
	switch {
	case err != nil:
	case e.kind == ':':
		return e, size, nil
	case e.kind != '$' && e.kind != '*' || e.n < -1 || e.n > maxReply:
	case e.kind == '*' || e.n < 0:
		return e, size, nil
	default:
		whole := size + int(e.n) + len("\r\n")
		if len(b) < whole {
			return e, 0, nil
		}
		e.text = b[size : whole-len("\r\n")]
		return e, whole, nil
	}
	return e, 0, fmt.Errorf("%w: %.50q", errReply, b[:end+1])
}
