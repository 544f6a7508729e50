// Package lua has the scripts by which Go holds what Redisson's layout describes. Each
// states what is to be, so that one that is sent twice changes nothing more.
package lua

import "embed"

// FS holds one file for each script, and the parts that scripts share.
//
//go:embed *.lua
var FS embed.FS
