//go:build !unix

package transport

import (
	"net"
	"syscall"
)

func quiet(net.Conn) bool { return true }

func spinRead(syscall.RawConn, []byte) int { return 0 }
