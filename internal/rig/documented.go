package rig

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Lines of docs/operations.md that set up a user: for one server, and for a Cluster.
var (
	ACLLine       = regexp.MustCompile(`(?m)^ACL SETUSER app .*$`)
	ClusterLine   = regexp.MustCompile(`(?m)^ACL SETUSER cluster .*$`)
	shardedGrants = regexp.MustCompile("`\\+ssubscribe [^`]+`")
)

// Root returns the folder of the module. A test may call it from any folder in it.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	Must(t, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
}

// Documented is the line of docs/operations.md that matches what.
func Documented(t testing.TB, what *regexp.Regexp) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(Root(t), "docs", "operations.md"))
	Must(t, err)
	line := what.FindString(string(page))
	if line == "" {
		t.Fatalf("docs/operations.md has no line %s", what)
	}
	return line
}

// ShardedWords are the permissions that docs/operations.md adds for ShardedPubSub.
func ShardedWords(t testing.TB) []string {
	t.Helper()
	words := strings.Fields(strings.Trim(Documented(t, shardedGrants), "`"))
	if !slices.Contains(words, "+ssubscribe") {
		t.Fatalf("documented for the option: %q", words)
	}
	return words
}

// DocumentedACL returns the line of docs/operations.md that sets up a user of one server, not of a Cluster.
func DocumentedACL(t testing.TB) string {
	t.Helper()
	return Documented(t, ACLLine)
}

// ACLGrant is a command that a line grants.
var ACLGrant = regexp.MustCompile(`\+(\S+)`)

// Permit runs an ACL line of the documentation.
func Permit(t testing.TB, admin redis.Cmdable, line string) {
	t.Helper()
	var args []any
	for word := range strings.FieldsSeq(line) {
		args = append(args, word)
	}
	Must(t, admin.(interface {
		Do(context.Context, ...any) *redis.Cmd
	}).Do(t.Context(), args...).Err())
}
