//go:build unix

package main

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// runsVariable lists the runs that a command is part of, the innermost last. RELOCK_NAME and RELOCK_TOKEN
// only describe the innermost one.
const runsVariable = "RELOCK_RUNS"

// oneRun encodes a run for that list. Names may have spaces and colons, so they are escaped.
func oneRun(name string, token int64) string {
	return strconv.FormatInt(token, 10) + ":" + url.QueryEscape(name)
}

// outerRuns returns the runs that this one is part of. A relock from before that list only sets the name and
// the token, so they are added.
func outerRuns(env []string) []string {
	all := strings.Fields(lookup(env, runsVariable))
	token, err := strconv.ParseInt(lookup(env, "RELOCK_TOKEN"), 10, 64)
	if innermost := oneRun(lookup(env, "RELOCK_NAME"), token); err == nil && !slices.Contains(all, innermost) {
		all = append(all, innermost)
	}
	return all
}

// outerTokens returns the tokens of the outer runs of that name.
func outerTokens(env []string, name string) (tokens []int64) {
	for _, run := range outerRuns(env) {
		text, of, _ := strings.Cut(run, ":")
		if token, err := strconv.ParseInt(text, 10, 64); err == nil && of == url.QueryEscape(name) {
			tokens = append(tokens, token)
		}
	}
	return tokens
}
