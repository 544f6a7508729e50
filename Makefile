# `make test` tells in four minutes that relock works; `make check` is everything a change must pass. On a fresh machine
# both need Go and make, and install the rest.

# A workspace file of a developer must not change what is tested, and -modfile forbids one.
export GOWORK := off

# bench/, test/torture/ and the like are modules of their own; internal/tools/ itself only names tools.
MODULES := $(sort $(patsubst %/go.mod,%,$(shell find . -name go.mod -not -path './internal/tools/go.mod')))
LINT    := go tool -modfile=$(CURDIR)/internal/tools/go.mod golangci-lint
# What is compiled does not name the folder it was compiled in, so that a fresh clone finds in the build cache what
# another clone of the same sources has left there: by far the most of what lint computes, and a part of each test's time.
TRIMMED := $(strip $(shell go env GOFLAGS) -trimpath)
# What go vet finds, lint does.
TEST    := go test -p 3 -timeout 20m -vet=off

.DEFAULT_GOAL := help
# One after the other, but for the lanes of `make check`.
LANES ?= 2
ifeq ($(LANES),1)
.NOTPARALLEL:
endif
.PHONY: help deps deps-server fmt fmtcheck vet lint race modules search alone test check quick short demo mutate unnoticed bench model fuzz vuln explore torture mutants layout long way servers matrix interop browser man dist release-check record

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 15

# What a newcomer runs first, and again after every change: it needs Go and make, and installs redis-server if it is missing.
test: ## format, vet, and the tests that tell that it works; four minutes
	@$(MAKE) --no-print-directory deps-server fmtcheck vet quick
	@echo "make test: PASSED (format, vet, tests; make check is everything)"

# Many tests wait for servers, processes and failovers more than they work: what computes goes beside them. LANES=1
# has one after the other, to see what disturbs a test.
check: ## everything: lint, all tests with the race detector, searches, torture, measurements; a quarter of an hour
	@$(MAKE) --no-print-directory deps fmtcheck lint
	@$(MAKE) --no-print-directory -j$(LANES) race modules search
	@$(MAKE) --no-print-directory alone
	@echo "make check: PASSED (format, lint with vet, tests with -race, searches; modules: $(MODULES))"

short: ## the tests alone; those that need redis-server are skipped without one
	@set -e; for m in $(MODULES); do (cd $$m && $(TEST) ./...); done

# INTEROP=4.7.0: the rules that a real Redisson shows to be needed, half an hour; `make interop` builds what they meet.
# One build serves most rules (test/mutation/switched.go). One rule alone: go test -run 'TestEveryRuleIsNeeded/its_name' ./test/mutation with RELOCK_MUTATE=1.
mutate: ## take every rule of the protocol out once, and see its tests fail
	RELOCK_MUTATE=1 RELOCK_INTEROP=$(INTEROP) go test -count=1 -timeout 240m -v -run '^TestEveryRuleIsNeeded$(if $(INTEROP),ByJava)$$' ./test/mutation

# Not part of `make check`. Other flags: go run ./test/unnoticed -help. IN="internal/transport" for another folder.
IN   ?= . internal/room
unnoticed: ## look for code that no test needs, in the folders IN, for half an hour
	go run ./test/unnoticed -for 30m $(if $(SEED),-seed $(SEED)) $(IN)

# What is measured is best left alone with the machine. -only and -quick: see bench/README.md.
ROUNDS  ?= 5
SECONDS ?= 0.4
bench: ## measure beside other locks, and write docs/benchmarks/; a quarter of an hour
	@v=$(firstword $(REDISSON)); { command -v java && command -v mvn; } >/dev/null && (cd redisson/interop && mvn -q -B process-classes -Dredisson.version=$$v) \
		|| echo "make bench: Redisson is left out, unless it was built before: it needs Java 17, Maven and a Maven repository"
	cd bench && go build -o out/bench . && ./out/bench -redisson ../redisson/interop/out/$(firstword $(REDISSON)) -rounds $(ROUNDS) -seconds $(SECONDS) $(BENCHFLAGS)

# Two minutes and 2 GB; `make check` checks the same for three clients.
model: ## check the model of the protocol for four clients, in every state
	RELOCK_TEST_REQUIRE=1 RELOCK_MODEL_CLIENTS=4 go test -count=1 -parallel 1 -timeout 20m -v ./docs/model

# Five minutes at 30s. What it finds is written to testdata/fuzz, and is a test from then on.
FUZZTIME ?= 10s
fuzz: ## look for inputs that break a decoder or a check; FUZZTIME=10s for each target
	@set -e; for dir in . internal/key internal/script internal/transport test/transport test/wire; do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z]*\)(.*/\1/p' $$dir/*_test.go); do \
			echo "fuzz: $$dir $$target"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) ./$$dir; \
		done; \
	done

# Not part of `make check`: what is known of the dependencies changes while the code does not.
vuln: ## known vulnerabilities in what the code calls; needs the Go vulnerability database
	@for m in $(MODULES); do \
		echo "govulncheck: $$m"; \
		out=$$(cd $$m && go tool -modfile=$(CURDIR)/internal/tools/go.mod govulncheck ./... 2>&1) && rc=0 || rc=$$?; \
		echo "$$out"; \
		case "$$rc:$$out" in \
		0:*) ;; \
		3:*) echo "make vuln: FOUND: the code calls what is known to be vulnerable" >&2; exit 3 ;; \
		*"fetching vulnerabilities"*) echo "make vuln: NOT CHECKED: the vulnerability database cannot be reached; GOVULNDB names another" >&2; exit 4 ;; \
		*) echo "make vuln: NOT CHECKED: govulncheck failed" >&2; exit 1 ;; \
		esac; \
	done; echo "make vuln: nothing known against what the code calls"

# RELOCK_EXPLORE_FOR=1h, or RELOCK_EXPLORE_FOR= RELOCK_EXPLORE_SCHEDULES=100000; RELOCK_EXPLORE_SEED is where to begin.
RELOCK_EXPLORE_FOR ?= 10m
explore: ## look for schedules that break a lock, for RELOCK_EXPLORE_FOR
	RELOCK_EXPLORE_FOR=$(RELOCK_EXPLORE_FOR) RELOCK_ROOMS_FOR=$(RELOCK_EXPLORE_FOR) RELOCK_CONDITIONS_FOR=$(RELOCK_EXPLORE_FOR) \
		go test -count=1 -timeout 0 -v -run '^TestExploration(OfRooms|OfConditions)?FindsNothing$$' ./test/explore

# make torture FOR=30m SEED=7 DIR=/some/where; a seed repeats the schedule of faults.
FOR ?= 5m
torture: ## processes, real servers and faults, judged from their histories
	cd test/torture && go run . -for $(FOR) $(if $(SEED),-seed $(SEED)) $(if $(DIR),-dir $(DIR))

# What is left to chance, and make check does a few times, very often. LONG=BoundedBuffer is half a minute: 10,000 items by 8 processes. LONG=SeveralLocks is another: subsets of 12 names.
LONG ?= .
long: ## processes that are killed, stopped and cancelled, for long; LONG= names a test
	RELOCK_TEST_REQUIRE=1 RELOCK_LONG=1 go test -count=1 -timeout 3h -v -run '$(LONG)' ./test/real

way: ## list the functions through which a lock and unlock go
	RELOCK_TEST_REQUIRE=1 go test -count=1 -v -run '^TestWayOfALockAndUnlock$$' ./test/house

# Six minutes. One alone: cd test/torture && go run . mutants -only 'part of its name'
mutants: ## break the locks on purpose, and see the torture rig find it
	cd test/torture && go run . mutants

# Not part of `make check`: by pip, and an hour for all. SERVERS="installed redis-8.2.3" for some, TORTURE=0 without the short torture.
servers: ## download newer Redis and Valkey servers into out/servers; SERVERS= names some
	@internal/tools/servers.sh get $(SERVERS)

matrix: ## run the tests that need a server on each of those, and on the one installed
	@internal/tools/python.sh
	@TORTURE=$(TORTURE) internal/tools/servers.sh matrix $(SERVERS)

# Not part of `make check`: it needs Java 17, Maven and a Maven repository, and six minutes for each version.
REDISSON ?= 4.7.0 3.52.0
interop: ## share locks with a real Redisson, in each of the versions REDISSON
	@for tool in java mvn redis-server; do command -v $$tool >/dev/null || { \
		echo "make interop: FAILED: there is no $$tool; it needs Java 17, Maven and redis-server" >&2; exit 1; }; done
	@set -e; for v in $(REDISSON); do \
		(cd redisson/interop && mvn -q -B process-classes -Dredisson.version=$$v); \
		RELOCK_INTEROP=$$v RELOCK_TEST_REQUIRE=1 go test -count=1 -timeout 40m -parallel 4 -v $(if $(RUN),-run '$(RUN)') ./redisson/interop; \
		(cd bench && RELOCK_INTEROP=$$v go test -count=1 -timeout 5m -run '^TestRedissonIsMeasuredWhereAJVMIs$$' ./internal/load); \
	done; echo "make interop: PASSED (Redisson $(REDISSON))"

# Not part of `make check`: it needs a Chromium. RUN='part of a name' for one alone, which leaves the picture as it is.
browser: ## look at the dashboard with a headless Chromium, and make docs/dashboard.png
	cd relockweb/browser && RELOCK_BROWSER=1 RELOCK_SCREENSHOT=$(if $(RUN),,$(CURDIR)/docs/dashboard.png) go test -count=1 -timeout 5m -v $(if $(RUN),-run '$(RUN)') .

# After a merge of changed scripts too: it writes what the merged sources make. RELEASED=v1.0.0 closes the layout.
layout: ## write the sums of the scripts and the vectors, when a script has changed on purpose
	RELOCK_TEST_REQUIRE=1 RELOCK_LAYOUT=write RELOCK_RELEASED=$(RELEASED) go test -count=1 -run '^TestAChangedScriptNeedsANewLayout$$' ./test/layout

man: ## write docs/relock.1, the man page of the command
	go run ./cmd/relock man > docs/relock.1.new && mv docs/relock.1.new docs/relock.1

# Not part of `make check`: goreleaser is built first, which takes long, unless GORELEASER is one. Nothing is published.
dist: ## build the command for each system into out/dist, with sums and bills of material
	@internal/tools/release.sh dist

release-check: ## see what a release would have, and what users get of a tag
	@internal/tools/release.sh check

demo: ## a lock changing hands, with an embedded server
	go run ./cmd/relock demo

record: ## make docs/demo.txt of what the demo prints
	RELOCK_RECORD=1 go test -count=1 -run '^TestDemoShowsWhatItClaims$$' ./cmd/relock

# redis-server: tests start their own on free ports; a service that the package starts is not used.
# gcc: the race detector is linked with cgo, and Spin writes its checker in C.
# python3, pip: test/layout has a client in it, which needs redis-py.
# postgres, mariadbd: test/fence starts its own; mariadb-server-core starts no service.
deps: ## install redis-server, spin, python3, redis-py, the databases and a C compiler where they are missing
	@missing=; \
	command -v redis-server >/dev/null || missing=" redis-server"; \
	command -v spin >/dev/null || missing="$$missing spin"; \
	python3 -m pip --version >/dev/null 2>&1 || missing="$$missing python3 python3-pip"; \
	{ command -v postgres || ls /usr/lib/postgresql/*/bin/postgres; } >/dev/null 2>&1 || missing="$$missing postgresql"; \
	{ command -v mariadbd || ls /usr/sbin/mariadbd; } >/dev/null 2>&1 || missing="$$missing mariadb-server-core"; \
	{ command -v gcc && command -v $$(go env CC); } >/dev/null || missing="$$missing gcc libc6-dev"; \
	internal/tools/install.sh $$missing
	@internal/tools/python.sh

deps-server:
	@command -v redis-server >/dev/null || internal/tools/install.sh redis-server

lint race modules search alone short quick: export GOFLAGS := $(TRIMMED)

fmt: ## format the code
	@set -e; for m in $(MODULES); do (cd $$m && $(LINT) fmt --config $(CURDIR)/internal/tools/golangci.yml); done

fmtcheck:
	@out=$$(gofmt -d .) && [ -z "$$out" ] || { echo "$$out"; echo "make fmtcheck: run make fmt" >&2; exit 1; }

vet:
	@go vet ./...

# It computes for a while and ends: memory for a quarter of its time.
lint: export GOGC ?= 400
# All modules at once, in a workspace that is made for it: one after the other took three times as long, since each looks
# at the root module as well. -modfile forbids a workspace, so go tool only says where golangci-lint is.
lint: ## golangci-lint, at the version in internal/tools/go.mod
	@$(LINT) version >/dev/null && tool=$$($(subst go tool,go tool -n,$(LINT))) && work=$$(mktemp -d) && trap 'rm -rf "$$work"' EXIT && \
	(cd "$$work" && GOWORK= go work init $(patsubst %,$(CURDIR)/%,$(patsubst ./%,%,$(filter-out .,$(MODULES)))) $(CURDIR)) && \
	echo "lint: $(MODULES)" && GOWORK=$$work/go.work "$$tool" run --config internal/tools/golangci.yml $(addsuffix /...,$(MODULES))

# Tests of hundreds and thousands of sessions on the virtual server, whose Lua is as slow under the race detector.
CROWDS := TryLockDoesNotOvertakeALiveWaiterBehindManyDead|TheLogOfAnOutageHasFewLinesAndTheNumberOfCalls|ACrowdThatDiedDuringALongHoldIsForgottenStepByStep|WaitersThatDiedDuringALongHoldLeaveNothing|BroadcastOfManyIsInSteps|PermitsOfManyDeadHoldersAreToBeHadAtOnce|AWriterThatIsResumedBesideDeadReadersIsRenewed|ManyReadersAreReadInPages|ForceEndsAGrantOfManySessionsAtOnce|DeadGrantOfManySessionsIsJoinedByNobody|DeadWriterOfManySessionsIsInNobodysWay|DeadGrantIsJoinedByNobodyThoughALongLeaseOfItWasUnlocked|ExclusiveGrantOfManySessionsEndsWithItsLongestLease|DeadGrantOfManySessionsIsJoinedByNobodyWhileOthersRead|AnOwnersManyClientsAreToldInSteps|ReadersBeyondOneCallAreLetInAtOnce|ThousandReadersFollowOneWriter|ThousandReadersFollowADowngrade|ReadersOfADeadWriterAreAllLetIn|TCK_W65_ManyReaders|AWriterIsNotStarvedByReaders

# Tests that walk through thousands of cases in virtual time. The race detector makes them eight times as slow,
# and the tests of the same code on real servers are its place: these run without it, and the exploration also
# with it over a few schedules. A test that is renamed runs in both ways until it is renamed here.
SEARCHES := CallsMadeTogetherAreAnsweredAsTheirOwnScriptsDo|Exploration(OfRooms|OfConditions)?FindsNothing|Explorer(OfConditions)?FindsWhatIsBroken|ScheduleRunsTheSameAgain|ScriptsDoWhatTheModelSays|ModelMissesEveryRuleThatIsGone|CancelAtEveryInstantLeavesNothing|CancelUponEveryCommandLeavesNothing|WhatArrivesLateOrTwiceChangesNothing|EveryStatement(Leaves|LeftOver|Works|Is|That)\w*|TheUsualCaseAnswersAsTheGeneralCaseDoes|AHoldOfManyDoesToEachWhatAHoldOfOneDoes|CountsAreExactWhateverReplyIsLost|QuorumSettlesSplitVotesInFiveRoundTrips|ANameRestsForLongerThanItsHashWould|LabelIsStoredOnceAndKept|AStoppedServerIsNoContention|EndedNoncesAreForgottenWhileTheLockIsUsed|PartitionedHolderKnowsBeforeAnybodyElseHolds|$(CROWDS)

# Tests that measure for how long a server works. The race detector slows down those who ask alone, and what runs
# beside makes the figures any: these run without it and alone, one package after the other.
MEASURES := AHeldLockKeepsLittle|ALockAndUnlockAllocateLittle|HooksOfALockAndUnlockAreToldWithLittle|ThousandsOfClientsUnderOneNameCostWhatTheyCostUnderTheirOwn|DeadEntriesDelayNobodyForLong|DeadEntriesStopTheServerForNoLongerThanAStep|ACrowdUnderOneNameDoesNotStopTheServer|AbandonedRequestsDoNotCostTheirSquare|ScriptsCostTheSameAmongTenThousandWaiters|ReadUnlockCostsTheSameAmongFiveThousandReaders|ASemaphoreCostsTheSameAmongFiveThousandHolders|AConditionCostsTheSameAmongTwoThousandWaiters|ASemaphoresPairCostsWhatALocksDoes|DashboardAndTopCostTheServerLittleAmongTenThousandWaiters

# Tests that do a part of their work under the race detector, and all of it without.
TWICE := ProcessesExcludeEachOther

# Packages whose tests read texts or start programs: the race detector finds nothing to look at in them.
PLAIN := ./docs/model ./test/house ./test/mutation

# Packages whose tests wait most: they come first, and beside the others.
LONGEST := ./test/real ./test/deploy ./cmd/relock ./test/contract

# RELOCK_TEST_REQUIRE: a test that finds no redis-server fails instead of skipping.
# -count=1: a result from the cache says nothing about the server that is installed now.
# GORACE: a program with the race detector waits for a second when it ends, for reports of others that still run.
race modules search alone quick: export RELOCK_TEST_REQUIRE := 1
race modules alone: export GORACE ?= atexit_sleep_ms=50

# What make test leaves to make check: packages that take minutes, and the modules beside the library.
SLOW := ./docs/model ./test/cost ./test/deploy ./test/explore ./test/layout ./test/mutation ./test/real ./test/schedules ./test/transport ./cmd/relock ./redisson/interop
# Of the tests with processes and real servers make test runs these: exclusion, order, loss, tokens, wake-up, help.
TELLING := EachCommandHasHelpAndUsage|ProcessesExcludeEachOther|FairGrantsInOrderOfArrivalOverProcesses|HolderBehindAPartitionKnowsBeforeAnybodyElseHolds|WaiterHoldsSoonAfterTheLeaseOfAKilledHolder|ReadersAndWritersOfProcessesNeverMeet|UnlockHandsTheLockToTheLongestWaiter|FirstQuestionAfterAPauseSaysLost
quick: ## the tests of `make test`, without the race detector
	@echo "go test: the library and its contracts"; all=$$(go list ./...) && $(TEST) -count=1 -skip '^Test($(SEARCHES)|$(MEASURES))$$' \
		$$(echo "$$all" | grep -vxF $(patsubst ./%,-e github.com/relock-go/relock/%,$(SLOW)))
	@echo "go test: processes and real servers"; $(TEST) -count=1 -run '^Test($(TELLING))$$' ./test/real ./test/deploy ./cmd/relock

RACE := $(TEST) -race -count=1 -skip '^Test($(SEARCHES)|$(MEASURES))$$'
race: ## the root module's tests with the race detector
	@echo "go test -race: ."; all=$$(go list ./...) && $(RACE) -p 4 $(LONGEST) \
		$$(echo "$$all" | grep -vxF $(patsubst ./%,-e github.com/relock-go/relock/%,$(PLAIN) $(LONGEST) ./test/cost))
	@echo "go test -race: exploration"; RELOCK_EXPLORE_SCHEDULES=40 $(TEST) -race -count=1 -run '^TestExplorationFindsNothing$$' ./test/explore

# Torture judges how soon waiters wake up, and what the bench and test/cost measure is judged as well: they are left alone.
modules:
	@set -e; for m in $(filter-out .,$(MODULES)); do echo "go test -race: $$m"; (cd $$m && all=$$(go list ./...) && $(RACE) -p 2 $$(echo "$$all" | grep -vxF -e github.com/relock-go/relock/test/torture -e github.com/relock-go/relock/bench/internal/load)); done

search:
	@echo "go test: texts and programs"; $(TEST) -count=1 $(PLAIN)
	@echo "go test: searches"; $(TEST) -count=1 -run '^Test($(SEARCHES)|$(TWICE))$$' ./test/explore ./test/conformance ./test/contract ./test/lua ./test/real ./test/wire

alone:
	@echo "go test -race: torture"; cd test/torture && $(RACE) .
	@echo "go test -race: bench"; cd bench && $(RACE) ./internal/load
	@echo "go test -race: costs"; $(RACE) ./test/cost
	@echo "go test: measurements"; $(TEST) -p 1 -count=1 -run '^Test($(MEASURES))$$' ./test/contract ./test/cost ./test/schedules
