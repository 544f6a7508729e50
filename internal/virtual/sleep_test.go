package virtual_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/relock-go/relock/internal/virtual"
)

func TestSleepIsForBubblesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		virtual.Sleep(time.Hour)
		if took := time.Since(began); took != time.Hour {
			t.Errorf("slept for %v", took)
		}
	})
	defer func() {
		if recover() == nil {
			t.Error("it sleeps in real time")
		}
	}()
	virtual.Sleep(0)
}
