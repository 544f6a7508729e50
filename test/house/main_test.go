package house_test

import (
	"os"
	"testing"

	"github.com/relock-go/relock/internal/rig"
)

// TestMain has the tests read the repository from its root.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	rig.Main(m)
}
