// Package lua holds relock's server-side scripts: the wire protocol between
// clients, explained in docs/protocol.md. It is importable only because Go's
// embedding cannot climb out of a folder.
package lua

import "embed"

// Layout is the number of the layout of keys and messages. shared_record.lua has the same. Redis keeps it with
// the kind of a lock: clients of two layouts never hold or wait for one name together.
const Layout = "1"

// FS holds one file for each operation and one for each part that operations
// share (shared_*.lua, named by the operation's "uses" line).
//
//go:embed *.lua
var FS embed.FS
