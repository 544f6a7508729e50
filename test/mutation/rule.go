// Package mutation takes the rules of the protocol out of the code, one at a time, and
// sees the tests fail that are there for them.
//
// A row says where the code of a rule is, which code it is, and what stands there without the rule:
//
//	{"a session is renewed", "internal/room Entry.Hold", "s.schedule(at)", "", []string{"TestX"}},
//
// The second field names a folder (. is the root) and a declaration in it: a function, Receiver.Method, or a const,
// var or type. Commas separate several of one package. "import" means the imports. The file does not matter.
//
// The third field matches Go tokens inside the declaration, so layout and comments do not matter either. A semicolon
// stands for the end of a line. $x matches one expression, and $$x any balanced run of tokens, even an empty one.
// The fourth field replaces each match, and may repeat $x and $$x.
//
// A script has no declarations: for Lua, and any other file, the second field is the file and the third its text.
package mutation

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// A Rule is one of the protocol, and how it is taken out of the code.
type Rule struct {
	Name     string
	In       string   // folder and declarations, or a file that is not Go
	Old, New string   // in each of the declarations, and wherever it matches
	Tests    []string // each fails without the rule
}

// All are the rules.
var All = slices.Concat(
	Safety, Liveness, rwlockRules,
	outageRules, serverRules, runRules,
	holdRules, branchRules, wantedRules, stickyRules,
	wireRules,
	handleRules,
	recordRules, severalRules, usualRules, unseenRules,
	familyRules, conditionRules, onceRules, handoverRules, semaphoreRules, roomRules, redissonRules, labelRules, dashboardRules, commandRules, operatorRules, promiseRules,
	adapterRules, placeRules,
)

// Without returns the files that change when the rule is taken out, by name, or an error
// if the code has no such declaration or no such text.
func (r Rule) Without(code *Code) (changed map[string]string, err error) {
	folder, names, is := strings.Cut(r.In, " ")
	if is {
		return code.without(folder, strings.Split(names, ","), r.Old, r.New)
	}
	text, err := fs.ReadFile(code.files, r.In)
	switch {
	case err != nil:
		return nil, err
	case strings.HasSuffix(r.In, ".go"):
		return nil, fmt.Errorf("%s is a Go file: name a folder and a declaration", r.In)
	case r.Old == "" || !strings.Contains(string(text), r.Old):
		return nil, errors.New(r.In + " has no such text any more: " + r.Old)
	}
	return map[string]string{r.In: strings.ReplaceAll(string(text), r.Old, r.New)}, nil
}
