//go:build unix

package main

import (
	"testing"

	"github.com/relock-go/relock/internal/redistest"
)

func TestDoctorNamesScriptsThatDoNotSeeSubscribers(t *testing.T) {
	r := redistest.StartReplication(t, 1)
	addr := redistest.Split(t, r.Primary.Addr(), r.Replicas[0].Addr()) // a replica passes messages on
	worldAt(t, "redis://"+addr+"?protocol=2").wantWrong("messages", "does not see subscribers (NUMSUB 0)")
}

func TestDoctorNamesMessagesThatAreNotHeard(t *testing.T) {
	addr := redistest.Split(t, redistest.Real(t).Addr(), redistest.Real(t).Addr())
	worldAt(t, "redis://"+addr+"?protocol=2").wantWrong("messages", "does not arrive (NUMSUB 0)")
}
