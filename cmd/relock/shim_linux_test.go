package main

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// shim has the next server loaded with a clock that move puts so far ahead.
func shim(t *testing.T, dir string) (move func(time.Duration)) {
	t.Helper()
	library, offset := filepath.Join(dir, "clock.so"), filepath.Join(dir, "offset")
	out, err := exec.Command("gcc", "-shared", "-fPIC", "-O2", "-o", library, "../../test/torture/server/shim/clock.c").CombinedOutput()
	if err != nil && os.Getenv("RELOCK_TEST_REQUIRE") != "1" {
		t.Skipf("left out: no C compiler: %v", err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	move = func(by time.Duration) {
		f, err := os.OpenFile(offset, os.O_RDWR|os.O_CREATE, 0o600)
		if err == nil {
			_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(by.Microseconds())), 0)
			f.Close()
		}
		if err != nil {
			t.Error(err)
		}
	}
	move(0)
	t.Setenv("LD_PRELOAD", library)
	t.Setenv("TORTURE_CLOCK", offset)
	return move
}
