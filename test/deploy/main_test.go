package deploy_test

import (
	"flag"
	"testing"

	"github.com/relock-go/relock/internal/rig"
)

// TestMain has four tests run at a time: what they do is to wait for servers.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	rig.Main(m)
}
