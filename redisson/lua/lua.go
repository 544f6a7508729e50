// Package lua has the scripts by which Go holds what Redisson's layout describes. Each states the result, so that
// a repeated one changes nothing more.
package lua

import "embed"

// FS holds one file for each script, and the parts that scripts share.
//
//go:embed *.lua
var FS embed.FS
