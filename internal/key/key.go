// Package key maps the names of locks to keys in Redis, one to one.
//
// In each key, the part that says what the key is for comes before the lock's name. The name is the hash tag, so all
// keys of a lock are in one slot of a Cluster:
//
//	<prefix>:h:{<escaped name>}     the hash of an ordinary name
//	<prefix>:q:{<escaped name>}     its queue
//	<prefix>:ht:<name>              the hash of a name with a hash tag of its own
//	<prefix>:qt:<name>              its queue
//	<prefix>:label:<client>         a client's label, for people
//
// A name that has a hash tag keeps it, and with it the slot of the user's other keys with that tag. The
// different parts "h" and "ht" keep the name "{a}" apart from the name "a", which has the same tag.
//
// Keys of one prefix never collide with each other. They may collide with keys of a longer prefix that begins with the
// first one and a colon. So give tenants prefixes of which none begins with another one and a colon.
package key

import "strings"

// Keys are the keys of one lock, all in one slot.
type Keys struct {
	Hash  string // the lock's state
	Queue string // its waiters, a sorted set
}

// For returns the keys of the lock name. The caller must have called [CheckPrefix] and [CheckName].
func For(prefix, name string) Keys { return Of(prefix, Hash(prefix, name)) }

// Hash returns the hash key of [For]. The other key and the name can be derived from it.
func Hash(prefix, name string) string {
	if tagged(name) {
		return prefix + ":ht:" + name
	}
	return prefix + ":h:{" + escaper.Replace(name) + "}"
}

// Of returns the keys of the lock with this hash.
func Of(prefix, hash string) Keys {
	part := len(prefix) + len(":")
	return Keys{Hash: hash, Queue: hash[:part] + "q" + hash[part+len("h"):]}
}

// Name returns the name of the lock with this hash.
func Name(prefix, hash string) string {
	rest := hash[len(prefix):]
	if name, ok := strings.CutPrefix(rest, ":ht:"); ok {
		return name
	}
	name := rest[len(":h:{") : len(rest)-len("}")]
	if strings.IndexByte(name, '%') < 0 { // nothing is escaped; the replacer would copy the name anyway
		return name
	}
	return unescaper.Replace(name)
}

// Lock returns the name of the lock whose hash has this key. ok is false if the key is not the hash of a lock.
func Lock(prefix, hash string) (name string, ok bool) {
	rest, ok := strings.CutPrefix(hash, prefix)
	tagged := strings.HasPrefix(rest, ":ht:")
	escaped := strings.HasPrefix(rest, ":h:{") && strings.HasSuffix(rest, "}")
	if !ok || !tagged && !escaped {
		return "", false
	}
	name = Name(prefix, hash)
	return name, CheckName(name) == nil && Hash(prefix, name) == hash
}

// Label returns the key of a client's label.
func Label(prefix, client string) string { return prefix + ":label:" + client }

// Inbox returns the name of the channel on which a client receives messages.
func Inbox(prefix, client string) string { return prefix + ":inbox:" + client }

// Sharded returns the ID of a client with sharded channels. Senders know it by the dot: no other ID has one.
func Sharded(client string) string { return "s." + client }

// ShardInbox returns the name of the sharded channel on which a client receives messages about a lock. It has
// the lock's hash tag, and so its slot. The scripts build the same name from the hash key. Locks with one tag
// share the channel.
func ShardInbox(prefix, hash, client string) string {
	_, rest, _ := strings.Cut(hash, "{")
	tag, _, _ := strings.Cut(rest, "}")
	return Inbox(prefix, "{"+tag+"}"+client)
}

// escaper escapes braces, so that the tag of a key ends where the name does. It escapes the percent sign too. Otherwise
// the names "{" and "%7B" would have the same key.
var escaper = strings.NewReplacer("%", "%25", "{", "%7B", "}", "%7D")

var unescaper = strings.NewReplacer("%25", "%", "%7B", "{", "%7D", "}")

// tagged reports whether Redis finds a hash tag in name: at least one byte
// between the first opening brace and the first closing one after it.
func tagged(name string) bool {
	_, rest, ok := strings.Cut(name, "{")
	return ok && strings.IndexByte(rest, '}') > 0
}
