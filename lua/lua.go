// Package lua holds relock's server-side scripts: the wire protocol between clients, which docs/protocol.md explains.
// It is not an internal package only because go:embed cannot read files outside of its own folder.
package lua

import "embed"

// Layout is the number of the layout of keys and messages. shared_record.lua must have the same number. Scripts store
// it with the kind of a lock, so that clients of two layouts never hold or wait for one name together.
const Layout = "1"

// FS holds one file for each script, and a file shared_*.lua for each part that several scripts share. A line "uses" in
// a script names the parts that it needs.
//
//go:embed *.lua
var FS embed.FS
