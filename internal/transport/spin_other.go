//go:build !unix

package transport

import "syscall"

func look(syscall.RawConn, []byte) int { return 0 }
