#!/usr/bin/env bash
# Runs the tests of a module with a Go runtime that tells of each time.Sleep outside of a bubble of testing/synctest,
# and fails where a test or its rig has slept so. TestTestsSleepInVirtualTimeOnly reads the text alone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

runtime=$(go env GOROOT)/src/runtime/time.go
awk -v hook='	if gp.bubble == nil {
		pcs := make([]uintptr, 1)
		if Callers(2, pcs) == 1 {
			f, _ := CallersFrames(pcs).Next()
			println("slept in real time:", f.File, f.Line)
		}
	}' '{ print } /^func timeSleep\(ns int64\) \{$/ { inside = 1 } inside && /^\tgp := getg\(\)$/ { print hook; inside = 0 }' "$runtime" >"$out/time.go"
grep -q "slept in real time" "$out/time.go" || { echo "internal/tools/sleeps.sh: FAILED: the runtime of $(go version) has no such timeSleep" >&2; exit 1; }
printf '{"Replace": {"%s": "%s"}}\n' "$runtime" "$out/time.go" >"$out/overlay.json"

# A test that sleeps as it should not: what follows sees it.
mkdir "$out/proof"
printf 'module proof\n\ngo 1.26\n' >"$out/proof/go.mod"
printf 'package proof\n\nimport (\n\t"testing"\n\t"time"\n)\n\nfunc TestSleeps(t *testing.T) { time.Sleep(1) }\n' >"$out/proof/proof_test.go"
(cd "$out/proof" && go test -count=1 -v -overlay="$out/overlay.json" .) >"$out/proof.log" 2>&1 || { cat "$out/proof.log" >&2; exit 1; }
grep -q "slept in real time:.*proof_test.go" "$out/proof.log" || { echo "internal/tools/sleeps.sh: FAILED: a sleep was not seen" >&2; exit 1; }

failed=0
for module in ${MODULES:-.}; do
	(cd "$module" && go test -p 2 -count=1 -v -vet=off -timeout 20m -overlay="$out/overlay.json" ./...) >"$out/log" 2>&1 || {
		# A measurement may fail beside other tests: make check judges that, alone. Here only those that did not run count.
		grep -E "^(---|panic|FAIL)" "$out/log" >&2 || true
		if grep -qE "^panic|\[(build|setup) failed\]" "$out/log" || ! grep -q "^ok" "$out/log"; then failed=1; fi
	}
	told=$(grep -aoE "slept in real time: .*" "$out/log" | sort | uniq -c | sort -rn || true)
	[ -z "$told" ] || printf '%s:\n%s\n' "$module" "$told"
	! grep -qE '_test\.go |/internal/rig/' <<<"$told" || failed=1
done
[ "$failed" = 0 ] || { echo "internal/tools/sleeps.sh: FAILED: a test slept in real time, or did not run" >&2; exit 1; }
echo "internal/tools/sleeps.sh: PASSED"
