package redisson

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/relock-go/relock"
)

const maxName = 512 // bytes, as in relock

// names are Redisson's names for the keys and channels of one lock.
type names struct {
	key string // the hash; it has the lock's name unchanged
	tag string // part of all other names, so that they are in the same slot of a cluster
}

func namesOf(name string) names {
	if strings.Contains(name, "{") {
		return names{name, name}
	}
	return names{name, "{" + name + "}"}
}

func (n names) queue() string     { return "redisson_lock_queue:" + n.tag }
func (n names) deadlines() string { return "redisson_lock_timeout:" + n.tag }
func (n names) token() string     { return "redisson_lock_token:" + n.tag }

// read returns a key for each of a reader's holds.
func (n names) read(owner string, holds int) []string {
	keys := make([]string, holds)
	for i := range keys {
		keys[i] = n.tag + ":" + owner + ":rwlock_timeout:" + strconv.Itoa(i+1)
	}
	return keys
}

// channel returns the channel on which unlocks are announced. A waiter of a fair lock uses this name with its
// owner appended.
func (n names) channel(k kind) string {
	if k.rw() {
		return "redisson_rwlock:" + n.tag
	}
	return "redisson_lock__channel:" + n.tag
}

// checkName refuses a name that is empty, too long or not UTF-8, or whose keys would be in several slots. The latter
// works on one server, but would fail after a move to a Cluster.
func checkName(name string) error {
	switch {
	case name == "" || len(name) > maxName || !utf8.ValidString(name):
		return fmt.Errorf("%w: a name has 1 to %d bytes of UTF-8, this one has %d bytes", relock.ErrInvalidName, maxName, len(name))
	case hashed(namesOf(name).queue()) != hashed(name):
		return fmt.Errorf("%w: %q has a brace and no hash tag: Redisson would spread its keys over a cluster", relock.ErrInvalidName, name)
	}
	return nil
}

// hashed returns the part of a key that decides its slot in a cluster.
func hashed(key string) string {
	_, after, _ := strings.Cut(key, "{")
	if tag, _, closed := strings.Cut(after, "}"); closed && tag != "" {
		return tag
	}
	return key
}
