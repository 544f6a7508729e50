// Package lua holds relock's server-side scripts: the wire protocol between
// clients, explained in docs/protocol.md. It is importable only because Go's
// embedding cannot climb out of a folder; its one export is the text itself.
package lua

import "embed"

// FS holds one file for each operation and one for each part that operations
// share (shared_*.lua, named by the operation's "uses" line).
//
//go:embed *.lua
var FS embed.FS
