package room

import (
	"testing"
	"unsafe"
)

// Go's allocator has classes of 208 and 224 bytes.
func TestASessionTakesNoMoreThanItsSizeClass(t *testing.T) {
	if size := unsafe.Sizeof(Session{}); size > 208 {
		t.Errorf("a Session has %d bytes: each held lock takes 16 more than with 208", size)
	}
}
