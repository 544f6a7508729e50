//go:build unix

package main

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// runsVariable has the runs that a command is a part of, the innermost last: RELOCK_NAME and
// RELOCK_TOKEN are of that one alone.
const runsVariable = "RELOCK_RUNS"

// oneRun is a run as it stands there. Names may have spaces and colons, which this has not.
func oneRun(name string, token int64) string {
	return strconv.FormatInt(token, 10) + ":" + url.QueryEscape(name)
}

// outerRuns are the runs that this one is a part of. A relock that is older than the list says
// by its name and token alone that it is one.
func outerRuns(env []string) []string {
	all := strings.Fields(lookup(env, runsVariable))
	token, err := strconv.ParseInt(lookup(env, "RELOCK_TOKEN"), 10, 64)
	if innermost := oneRun(lookup(env, "RELOCK_NAME"), token); err == nil && !slices.Contains(all, innermost) {
		all = append(all, innermost)
	}
	return all
}

// outerTokens are those of the outer runs of that name.
func outerTokens(env []string, name string) (tokens []int64) {
	for _, run := range outerRuns(env) {
		text, of, _ := strings.Cut(run, ":")
		if token, err := strconv.ParseInt(text, 10, 64); err == nil && of == url.QueryEscape(name) {
			tokens = append(tokens, token)
		}
	}
	return tokens
}
