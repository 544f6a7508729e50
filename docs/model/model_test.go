// Package model_test checks the model of the protocol in lock.pml with Spin: that
// it has no error in any state, and that it has one without any of its rules.
package model_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// clientsEnv is the number of clients to check with: 4 in `make model`.
const clientsEnv = "RELOCK_MODEL_CLIENTS"

// few is the number of clients without clientsEnv, enough for every rule.
const few = "3"

// What Spin says of a model without a rule.
const (
	wrong = "assertion violated" // two holders, a token that goes down, a grant to nobody, a wrong order
	stuck = "invalid end state"  // a waiter whom nobody wakes
)

// without lists the rules that a switch takes out, and how that ends.
var without = map[string]string{
	"ENDED_NONCE_NOT_KEPT":         wrong,
	"GRANT_BELIEVED_AFTER_LEAVING": wrong,
	"GRANT_BELIEVED_LATE":          wrong,
	"GRANT_WITHOUT_RECHECK":        wrong,
	"HEARTBEAT_WITHOUT_SETTLE":     stuck,
	"LAPSED_LEASE_REVIVES":         wrong,
	"LATE_COPY_COUNTS":             wrong,
	"NEWCOMER_TAKES_A_FREE_LOCK":   wrong,
	"NO_LEASE_ON_ENTRIES":          stuck,
	"RELEASE_OF_ANY_NONCE":         wrong,
	"RELEASE_ONLY_DEQUEUES":        wrong,
	"TOKEN_STORED_AT_RELEASE":      wrong,
	"TRUST_OUTLIVES_THE_LEASE":     wrong,
	"WAITER_GOES_WITHOUT_A_WORD":   wrong,
	"WAITER_NEVER_ASKS_AGAIN":      stuck,
}

var (
	safety   = []string{"-DSAFETY", "-DNOCLAIM"} // assertions and invalid end states
	liveness []string                            // the LTL claim
)

func TestModelHasNoErrorInAnyState(t *testing.T) {
	t.Parallel()
	n := clients()
	judge(t, check(t, n, safety), "Full statespace search", "invalid end states\t+", "errors: 0",
		"unreached in proctype client\n\t(0 of") // a step that never happens would check nothing
}

func TestModelServesEverybodyOnceTheFaultsAreOver(t *testing.T) {
	t.Parallel()
	judge(t, check(t, clients(), liveness), "Full statespace search", "never claim         \t+ (served)", "acceptance   cycles \t+", "errors: 0")
}

func TestModelNeedsEachOfItsRules(t *testing.T) {
	for rule, end := range without {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			judge(t, check(t, few, safety, "-D"+rule), end, "errors: 1")
			if end == stuck {
				// The claim finds it too: so it can fail.
				judge(t, check(t, few, liveness, "-D"+rule), "acceptance cycle", "errors: 1")
			}
		})
	}
}

func TestModelHasNoSwitchThatIsNotChecked(t *testing.T) {
	text, err := os.ReadFile("lock.pml")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{"N": true, "REMEMBER_HOLDS": true}
	for _, m := range regexp.MustCompile(`(?m)^#ifn?def (\w+)|defined\((\w+)\)`).FindAllStringSubmatch(string(text), -1) {
		name := m[1] + m[2]
		if without[name] == "" && !used[name] {
			t.Errorf("no check of the model under %s", name)
		}
		used[name] = true
	}
	for name := range without {
		if !used[name] {
			t.Errorf("the model has no switch %s", name)
		}
	}
}

func clients() string {
	if n := os.Getenv(clientsEnv); n != "" {
		return n
	}
	return few
}

// check makes a checker of the model for n clients, and returns what it reports.
func check(t *testing.T, n string, property []string, switches ...string) (report string) {
	t.Helper()
	for _, tool := range []string{"spin", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			if os.Getenv("RELOCK_TEST_REQUIRE") != "" {
				t.Fatalf("%v; `make deps` installs it", err)
			}
			t.Skipf("%v; `make deps` installs it", err)
		}
	}
	dir := t.TempDir()
	model, err := filepath.Abs("lock.pml")
	if err != nil {
		t.Fatal(err)
	}
	run(t, dir, "spin", slices.Concat([]string{"-DN=" + n}, switches, []string{"-a", model})...)
	// Steps deep, and slots as a power of two. For few, compiling takes longer than checking.
	speed, size := "-O0", []string{"-m100000", "-w20"}
	if n != few {
		speed, size = "-O2", []string{"-m3000000", "-w25"}
	}
	run(t, dir, "gcc", slices.Concat([]string{speed, "-w", "-o", "pan", "pan.c"}, property)...)
	if len(property) == 0 {
		size = append(size, "-a")
	}
	return run(t, dir, "./pan", size...)
}

func run(t *testing.T, dir, name string, args ...string) (out string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	b, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, b)
	}
	return string(b)
}

func judge(t *testing.T, report string, wants ...string) {
	t.Helper()
	if strings.Contains(report, "max search depth too small") {
		t.Errorf("the search was cut short")
	}
	for _, want := range wants {
		if !strings.Contains(report, want) {
			t.Errorf("the report does not say %q:\n%s", want, report)
		}
	}
	size := regexp.MustCompile(`\d+ states, stored|[\d.]+\ttotal actual memory usage|elapsed time [\d.]+ seconds`).FindAllString(report, -1)
	t.Log(strings.Join(size, ", "))
}
