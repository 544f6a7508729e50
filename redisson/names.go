package redisson

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/relock-go/relock"
)

const maxName = 512 // bytes, as in relock

// names are what Redisson calls the keys and channels of one lock.
type names struct {
	key string // the hash: the lock's name as it is
	tag string // what all other names have in them; the same slot of a cluster
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

// read returns the key of each of a reader's holds.
func (n names) read(owner string, holds int) []string {
	keys := make([]string, holds)
	for i := range keys {
		keys[i] = n.tag + ":" + owner + ":rwlock_timeout:" + strconv.Itoa(i+1)
	}
	return keys
}

// channel is where clients hear of the lock; those that wait for a fair one, each under
// its owner's name behind it.
func (n names) channel(k kind) string {
	if k.rw() {
		return "redisson_rwlock:" + n.tag
	}
	return "redisson_lock__channel:" + n.tag
}

// check refuses names that would be no lock, or one whose keys lie in several slots: on one
// server they would do, and fail when that becomes a cluster.
func checkName(name string) error {
	switch {
	case name == "" || len(name) > maxName || !utf8.ValidString(name):
		return fmt.Errorf("%w: a name has 1 to %d bytes of UTF-8, this one has %d bytes", relock.ErrInvalidName, maxName, len(name))
	case hashed(namesOf(name).queue()) != hashed(name):
		return fmt.Errorf("%w: %q has a brace and no hash tag: Redisson would spread its keys over a cluster", relock.ErrInvalidName, name)
	}
	return nil
}

// hashed is the part of a key that says which slot of a cluster it lies in.
func hashed(key string) string {
	_, after, _ := strings.Cut(key, "{")
	if tag, _, closed := strings.Cut(after, "}"); closed && tag != "" {
		return tag
	}
	return key
}
