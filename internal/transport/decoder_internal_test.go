package transport

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// chunks is a reader that returns one piece at a time, and then errNoMore.
type chunks [][]byte

var errNoMore = errors.New("no more for now")

func (c *chunks) Read(b []byte) (int, error) {
	if len(*c) == 0 {
		return 0, errNoMore
	}
	n := copy(b, (*c)[0])
	if (*c)[0] = (*c)[0][n:]; len((*c)[0]) == 0 {
		*c = (*c)[1:]
	}
	return n, nil
}

// decoded returns the replies in these pieces, and the error at the end. Between two pieces the reader changes.
func decoded(pieces ...[]byte) (all []reply, err error) {
	from := &chunks{}
	d := newDecoder(from)
	for _, piece := range pieces {
		*from = append(*from, piece)
		for {
			r, whole, err := d.next()
			if err != nil {
				return all, err
			}
			if whole {
				all = append(all, r)
			} else if err := d.fill(); errors.Is(err, errNoMore) {
				break
			} else if err != nil {
				return all, err
			}
		}
	}
	return all, nil
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
		"\n", "\r\n", "?1\r\n", "+OK\n", ":x\r\n", "$x\r\n", "$-2\r\n", "*-2\r\n", "$536870913\r\n", ":99999999999999999999\r\n",
		strings.Repeat("*1\r\n", maxDepth+1), "+" + strings.Repeat("x", maxLine),
	} {
		if all, err := decoded([]byte(":1\r\n" + text)); !errors.Is(err, errReply) || len(all) != 1 {
			t.Errorf("%.20q: %v, %v, want the reply before it and an error", text, all, err)
		}
	}
}

func TestTheEndOfAConnectionIsTold(t *testing.T) {
	d := newDecoder(strings.NewReader("$5\r\nhe"))
	if err := d.fill(); err != nil {
		t.Fatal(err)
	}
	if _, whole, err := d.next(); whole || err != nil {
		t.Fatalf("half a reply is whole: %t, %v", whole, err)
	}
	if err := d.fill(); !errors.Is(err, io.EOF) {
		t.Errorf("fill: %v, want the end", err)
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
