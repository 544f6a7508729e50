package transport_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/relock-go/relock/internal/transport"
)

// FuzzClassify: the outcome of an error that Redis sent depends on its code
// alone, not on what wraps it here or, before Redis 7, there.
func FuzzClassify(f *testing.F) {
	for _, s := range []string{
		"", "ERR", "ERR max number of clients reached", "LOADING Redis is loading", "READONLY You can't write", "MOVED 1 a:1", "TRYAGAIN", "NOSCRIPT No",
		"OOM command not allowed", "NOPERM no", "WRONGTYPE x", "ERR Error running script (call to f_1): @user_script:1: -READONLY You can't",
		"ERR Error running script", "ERR Error running script: -", ": -", "CLUSTERDOWN\n", "BUSY\x00", "loading", "MISCONF Redis", "UNBLOCKED client", "upstream failure", "no upstream host",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		err := answer(text)
		outcome := transport.Classify(err)
		if outcome == transport.Closed {
			t.Errorf("%q is %v", text, outcome)
		}
		if transport.TryAgain(err) && outcome != transport.NotExecuted {
			t.Errorf("%q is to be asked again, and %v", text, outcome)
		}
		for _, wrapped := range []error{fmt.Errorf("asking: %w", err), errors.Join(errors.New("x"), err)} {
			if got := transport.Classify(wrapped); got != outcome || transport.TryAgain(wrapped) != transport.TryAgain(err) {
				t.Errorf("%q is %v, wrapped %v", text, outcome, got)
			}
		}
		old := answer("ERR Error running script (call to f_6b1b): @user_script:1: -" + text)
		if got := transport.Classify(old); got != outcome && !strings.HasPrefix(text, "ERR") {
			t.Errorf("%q is %v, in a script of an old server %v", text, outcome, got)
		}
		if got := transport.Classify(errors.New(text)); got != transport.Unknown {
			t.Errorf("%q, which Redis did not send, is %v", text, got)
		}
		if got := transport.Classify(errors.Join(err, redis.ErrClosed)); got != transport.Closed {
			t.Errorf("%q of a closed client is %v", text, got)
		}
	})
}
