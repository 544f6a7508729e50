package main

import (
	"testing"

	"github.com/relock-go/relock/internal/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
