package rival

import "github.com/relock-go/relock"

// LocalReentry returns the option by which a named owner re-enters a trusted hold
// without asking Redis, or nil while the library has none: then the report says
// that it was not measured.
func LocalReentry() relock.LockOption { return nil }
