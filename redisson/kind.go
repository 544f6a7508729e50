package redisson

import (
	"github.com/relock-go/relock/internal/script"
	"github.com/relock-go/relock/redisson/lua"
)

// A kind is one of Redisson's locks, or one mode of a read/write lock.
type kind int

const (
	plain kind = iota
	fair
	fenced
	reading
	writing
)

// String returns the kind as Info.Kind names it.
func (k kind) String() string {
	return [...]string{"lock", "fair lock", "fenced lock", "read/write lock", "read/write lock"}[k]
}

func (k kind) rw() bool { return k == reading || k == writing }

// ofLock returns the same kind for both modes of a read/write lock.
func (k kind) ofLock() kind {
	if k.rw() {
		return writing
	}
	return k
}

// The scripts of each kind.
var (
	acquireScripts = [...]*script.Script{load("acquire"), load("fair_acquire"), load("acquire"), load("read_acquire"), load("write_acquire")}
	releaseScripts = [...]*script.Script{load("release"), load("fair_release"), load("release"), load("read_release"), load("write_release")}
	renewScript    = load("renew")
	forceScript    = load("force")
	infoScript     = load("info")
)

func load(name string) *script.Script { return script.MustLoad(lua.FS, name) }

// The acquire scripts answer with these codes.
const (
	codeHeld    = 1
	codeTaken   = 0
	codeLate    = -1 // the request came after its not-after, and was not executed
	codeKind    = -2 // the name is another kind of lock
	codeLost    = -3 // the owner had holds, and Redis no longer has them
	codeUpgrade = -4 // the owner reads, so it cannot write
)
