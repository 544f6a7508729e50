package interop_test

import (
	"os"
	"testing"

	"github.com/relock-go/relock/internal/rig"
)

func TestMain(m *testing.M) {
	if order := os.Getenv(orders); order != "" {
		obey(order)
	}
	rig.Main(m)
}
