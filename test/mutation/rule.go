// Package mutation takes the rules of the protocol out of the code, one at a time, and
// sees the tests fail that are there for them.
package mutation

import (
	"errors"
	"slices"
	"strings"
)

// A Rule is one of the protocol, and how it is taken out of the code.
type Rule struct {
	Name     string
	File     string
	Old, New string   // in every place of the file where Old stands
	Tests    []string // each fails without the rule
}

// All are the rules.
var All = slices.Concat(
	Safety, Liveness, rwlockRules,
	outageRules, serverRules, runRules,
	holdRules,
	wireRules,
	handleRules,
	recordRules, severalRules, usualRules, unseenRules,
	familyRules, conditionRules, onceRules, handoverRules, semaphoreRules, roomRules, redissonRules, labelRules, dashboardRules, commandRules, operatorRules, promiseRules,
)

// Without returns the text without the rule, or an error if there is nothing to take
// out.
func (r Rule) Without(text string) (string, error) {
	if !strings.Contains(text, r.Old) {
		return "", errors.New(r.File + " has no such text any more: " + r.Old)
	}
	return strings.ReplaceAll(text, r.Old, r.New), nil
}
