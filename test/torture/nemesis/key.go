package nemesis

import "github.com/relock-go/relock/internal/key"

// HashKey is the key of a lock's hash.
func HashKey(name string) string { return key.For("relock", name).Hash }
