package quorum

import (
	"errors"
	"slices"
	"sync"
	"time"
)

// Trust returns until when so many of several holds can be relied on at once: the least
// of the best of them, and the zero time where there are fewer. A hold that is lost
// has the zero time.
func Trust(need int, untils []time.Time) time.Time {
	untils = slices.DeleteFunc(slices.Clone(untils), time.Time.IsZero)
	if len(untils) < need {
		return time.Time{}
	}
	slices.SortFunc(untils, func(a, b time.Time) int { return b.Compare(a) })
	return untils[need-1]
}

// EndAll ends several holds, one at least, each beside the others and the last on the caller's
// goroutine, and returns their errors, joined in their order. A panic of one, as of a
// hook, is the caller's to handle: it comes when all have ended.
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
