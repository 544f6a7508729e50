package redistest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// frame is one complete RESP value with the bytes it came as.
type frame struct {
	raw  []byte
	kind byte     // the first byte: '+', '-', ':', '$', '*', '>', …
	args []string // the bulk and simple strings directly inside an array or a push
}

// readFrame reads one value of RESP2 or RESP3.
func readFrame(r *bufio.Reader) (frame, error) {
	var f frame
	line, err := f.line(r)
	if err != nil {
		return f, err
	}
	f.kind = line[0]
	err = f.rest(r, line, 0)
	return f, err
}

// line reads up to and including the next CRLF, and returns it without.
func (f *frame) line(r *bufio.Reader) (string, error) {
	b, err := r.ReadBytes('\n')
	if err != nil {
		return "", err
	}
	f.raw = append(f.raw, b...)
	line := string(bytes.TrimRight(b, "\r\n"))
	if line == "" {
		return "", fmt.Errorf("redistest: empty RESP line")
	}
	return line, nil
}

// rest reads what follows the line that begins a value.
func (f *frame) rest(r *bufio.Reader, line string, depth int) error {
	switch line[0] {
	case '+', '-', ':', '_', ',', '#', '(':
		f.keep(line[1:], depth)
		return nil
	case '$', '!', '=':
		return f.bulk(r, line, depth)
	case '*', '>', '~', '%', '|':
		return f.aggregate(r, line, depth)
	}
	return fmt.Errorf("redistest: not RESP: %q", line)
}

func (f *frame) keep(s string, depth int) {
	if depth == 1 {
		f.args = append(f.args, s)
	}
}

func (f *frame) bulk(r *bufio.Reader, line string, depth int) error {
	n, err := strconv.Atoi(line[1:])
	if err != nil {
		return fmt.Errorf("redistest: bulk length: %w", err)
	}
	if n < 0 {
		f.keep("", depth)
		return nil
	}
	b := make([]byte, n+len("\r\n"))
	if _, err := io.ReadFull(r, b); err != nil {
		return err
	}
	f.raw = append(f.raw, b...)
	f.keep(string(b[:n]), depth)
	return nil
}

func (f *frame) aggregate(r *bufio.Reader, line string, depth int) error {
	n, err := strconv.Atoi(line[1:])
	if err != nil {
		return fmt.Errorf("redistest: aggregate length: %w", err)
	}
	if line[0] == '%' || line[0] == '|' {
		n *= 2
	}
	if line[0] == '|' {
		n++ // an attribute comes ahead of the value it describes
	}
	for range n {
		line, err := f.line(r)
		if err != nil {
			return err
		}
		if err := f.rest(r, line, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// readRequest reads one command: an array of strings, or a line of words.
func readRequest(r *bufio.Reader) (raw []byte, args []string, err error) {
	first, err := r.Peek(1)
	if err != nil {
		return nil, nil, err
	}
	if first[0] == '*' {
		f, err := readFrame(r)
		return f.raw, f.args, err
	}
	line, err := r.ReadString('\n')
	return []byte(line), strings.Fields(line), err
}
