// Command serve is Redis in memory for the examples of the root package: for each line
// that it reads it starts a server, and says the server's address. All of them end with
// the input, and so with whoever writes it.
package main

import (
	"bufio"
	"fmt"
	"os"

	"github.com/alicebob/miniredis/v2"
)

func main() {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		server := miniredis.NewMiniRedis()
		if err := server.Start(); err != nil {
			fmt.Fprintln(os.Stderr, "serve:", err)
			os.Exit(1)
		}
		_, _ = fmt.Fprintln(os.Stdout, server.Addr())
	}
}
