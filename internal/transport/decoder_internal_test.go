package transport

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// pieces is a reader that returns one piece at a time.
type pieces [][]byte

func (p *pieces) Read(b []byte) (int, error) {
	for len(*p) > 0 && len((*p)[0]) == 0 {
		*p = (*p)[1:]
	}
	if len(*p) == 0 {
		return 0, io.EOF
	}
	n := copy(b, (*p)[0])
	(*p)[0] = (*p)[0][n:]
	return n, nil
}

// decoded returns the replies in these pieces, and the error at the end: nil if the connection has just ended.
func decoded(text ...[]byte) (all []reply, err error) {
	from := pieces(text)
	d := decoder{bufio.NewReaderSize(&from, readSize)}
	for {
		r, err := d.readReply(maxDepth)
		if errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return all, err
		}
		all = append(all, r)
	}
}

const replies = "+OK\r\n:1795000000000123\r\n-NOSCRIPT No matching script\r\n$-1\r\n$5\r\nhe\r\nl\r\n*0\r\n*-1\r\n" +
	"*4\r\n:1\r\n$0\r\n\r\n*2\r\n-ERR x\r\n$-1\r\n*1\r\n*1\r\n+deep\r\n:-7\r\n"

var values = []reply{
	{val: "OK"},
	{val: int64(1795000000000123)},
	{err: answerError("NOSCRIPT No matching script")},
	{err: redis.Nil},
	{val: "he\r\nl"},
	{val: []any{}},
	{err: redis.Nil},
	{val: []any{int64(1), "", []any{answerError("ERR x"), nil}, []any{[]any{"deep"}}}},
	{val: int64(-7)},
}

// Fails when the first part of a reply is lost because the rest comes later.
func TestRepliesAreTheSameInWhateverPiecesTheyCome(t *testing.T) {
	text := []byte(replies)
	for i := range len(text) {
		for j := i; j < len(text); j += 1 + i%7 {
			all, err := decoded(bytes.Clone(text[:i]), bytes.Clone(text[i:j]), bytes.Clone(text[j:]))
			if err != nil || !reflect.DeepEqual(all, values) {
				t.Fatalf("in pieces up to %d, %d: %v, %v; want %v", i, j, all, err, values)
			}
		}
	}
}

// Fails when unparsed bytes at the end of a full buffer are lost or overwritten.
func TestMoreRepliesThanAreReadAtOnceAreAllTaken(t *testing.T) {
	const times = 3 * readSize / len(replies)
	all, err := decoded([]byte(strings.Repeat(replies, times)))
	if err != nil || len(all) != times*len(values) {
		t.Fatalf("%d replies, %v, want %d", len(all), err, times*len(values))
	}
	for i := 0; i < len(all); i += len(values) {
		if !reflect.DeepEqual(all[i:i+len(values)], values) {
			t.Fatalf("from the %dth reply on: %v, want %v", i, all[i:i+len(values)], values)
		}
	}
}

func TestALongStringIsReadWhole(t *testing.T) {
	long := strings.Repeat("x", 5*readSize+1)
	text := []byte("$163841\r\n" + long + "\r\n:1\r\n")
	all, err := decoded(text[:readSize], text[readSize:len(text)-7], text[len(text)-7:], []byte("+OK\r\n"))
	want := []reply{{val: long}, {val: int64(1)}, {val: "OK"}}
	if err != nil || !reflect.DeepEqual(all, want) {
		t.Errorf("%d replies, %v, want %d", len(all), err, len(want))
	}
}

func TestWhatIsNoReplyEndsTheConnection(t *testing.T) {
	for _, text := range []string{
		"\n", "\r\n", "?1\r\n", "+OK\n", ":x\r\n", "$x\r\n", "$-2\r\n", "*-2\r\n", "$536870913\r\n", ":99999999999999999999\r\n", "$2\r\nabc\r\n",
		strings.Repeat("*1\r\n", maxDepth+1), "+" + strings.Repeat("x", readSize),
		"+" + strings.Repeat("x", readSize-3) + "\rx", // as long as the buffer
	} {
		if all, err := decoded([]byte(":1\r\n" + text)); !errors.Is(err, errReply) || len(all) != 1 {
			t.Errorf("%.20q: %v, %v, want the reply before it and an error", text, all, err)
		}
	}
}

func TestAReplyThatEndsEarlyIsNoReply(t *testing.T) {
	for _, whole := range []string{"$5\r\nhello\r\n", "*2\r\n:1\r\n:2\r\n", "+OK\r\n"} {
		for i := range whole {
			if r, err := (&decoder{bufio.NewReaderSize(strings.NewReader(whole[:i]), readSize)}).readReply(maxDepth); !errors.Is(err, io.EOF) {
				t.Errorf("%q: %v, %v, want the end", whole[:i], r, err)
			}
		}
	}
}

// FuzzDecoder checks that replies in pieces are decoded like the whole.
func FuzzDecoder(f *testing.F) {
	f.Add([]byte(replies), 3, 30)
	f.Add([]byte("*2\r\n$3\r\nabc\r\n:x\r\n"), 1, 2)
	f.Fuzz(func(t *testing.T, text []byte, i, j int) {
		i = min(max(i, 0), len(text))
		j = min(max(j, i), len(text))
		whole, why := decoded(text)
		parts, err := decoded(text[:i], text[i:j], text[j:])
		if !reflect.DeepEqual(whole, parts) || (why == nil) != (err == nil) {
			t.Errorf("%q in pieces up to %d, %d: %v, %v; whole %v, %v", text, i, j, parts, err, whole, why)
		}
	})
}
