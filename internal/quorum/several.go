package quorum

import (
	"errors"
	"slices"
	"sync"
	"time"
)

// Trust returns until when at least need of the holds can be trusted together. untils has the end of trust of each
// hold, or the zero time if it is lost. Trust returns the zero time if fewer than need are held.
func Trust(need int, untils []time.Time) time.Time {
	untils = slices.DeleteFunc(slices.Clone(untils), time.Time.IsZero)
	if len(untils) < need {
		return time.Time{}
	}
	slices.SortFunc(untils, func(a, b time.Time) int { return b.Compare(a) })
	return untils[need-1]
}

// EndAll ends one or more holds at the same time, the last one on the caller's goroutine. It returns their errors,
// joined in their order. If an end panics, for example in a hook, EndAll panics too, once all have ended.
func EndAll[H any](holds []H, end func(H) error) error {
	errs, panics := make([]error, len(holds)), make(chan any, len(holds))
	one := func(i int) {
		defer func() {
			if p := recover(); p != nil {
				panics <- p
			}
		}()
		errs[i] = end(holds[i])
	}
	var beside sync.WaitGroup
	last := len(holds) - 1
	for i := range last {
		beside.Go(func() { one(i) })
	}
	one(last)
	beside.Wait()
	select {
	case p := <-panics:
		panic(p)
	default:
		return errors.Join(errs...)
	}
}
