package rig

import "github.com/relock-go/relock"

// Crowds are the kinds of lock that a crowd under one name can want.
var Crowds = map[string]func(c *relock.Client, name string, opts ...relock.LockOption) *relock.Lock{
	"plain": (*relock.Client).NewLock,
	"fair": func(c *relock.Client, name string, opts ...relock.LockOption) *relock.Lock {
		return c.NewLock(name, append(opts, relock.Fair())...)
	},
	"rw read": func(c *relock.Client, name string, opts ...relock.LockOption) *relock.Lock {
		return c.NewRWLock(name, opts...).RLocker()
	},
	"rw write": func(c *relock.Client, name string, opts ...relock.LockOption) *relock.Lock {
		return c.NewRWLock(name, opts...).WLocker()
	},
	"fair rw read": func(c *relock.Client, name string, opts ...relock.LockOption) *relock.Lock {
		return c.NewRWLock(name, append(opts, relock.Fair())...).RLocker()
	},
}

// CrowdHolder returns a lock behind which a crowd of the kind waits.
func CrowdHolder(c *relock.Client, kind, name string) *relock.Lock {
	switch kind {
	case "plain", "fair":
		return Crowds[kind](c, name)
	case "fair rw read":
		return c.NewRWLock(name, relock.Fair()).WLocker()
	}
	return c.NewRWLock(name).WLocker()
}
