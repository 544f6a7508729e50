# `make test` is everything a change must pass. On a fresh machine it needs Go and make:
# `make deps` installs the rest.

# A workspace file of a developer must not change what is tested, and -modfile forbids one.
export GOWORK := off

# bench/, torture/ and the like are modules of their own; tools/ holds no code.
MODULES := $(sort $(patsubst %/go.mod,%,$(shell find . -name go.mod -not -path './tools/*')))
LINT    := go tool -modfile=$(CURDIR)/tools/go.mod golangci-lint
TEST    := go test -p 2 -timeout 12m

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help deps fmt fmtcheck vet lint race test short demo mutate torture mutants

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 10

test: deps fmtcheck vet lint race ## everything a change must pass
	@echo "make test: PASSED (format, vet, lint, tests with -race; modules: $(MODULES))"

short: ## the tests alone; those that need redis-server are skipped without one
	@set -e; for m in $(MODULES); do (cd $$m && $(TEST) ./...); done

# Ten minutes. One rule alone: go test -run 'TestEveryRuleIsNeeded/its_name' with RELOCK_MUTATE=1.
mutate: ## take every rule of the protocol out once, and see its tests fail
	RELOCK_MUTATE=1 go test -count=1 -timeout 60m -v -run '^TestEveryRuleIsNeeded$$' .

# make torture FOR=30m SEED=7 DIR=/some/where; a seed repeats the schedule of faults.
FOR ?= 5m
torture: ## processes, real servers and faults, judged from their histories
	cd torture && go run . -for $(FOR) $(if $(SEED),-seed $(SEED)) $(if $(DIR),-dir $(DIR))

# Six minutes. One alone: cd torture && go run . mutants -only 'part of its name'
mutants: ## break the locks on purpose, and see the torture rig find it
	cd torture && go run . mutants

demo: ## a lock changing hands, with an embedded server
	go run ./cmd/relock demo

# redis-server: tests start their own on free ports; a service that the package starts is not used.
# gcc: the race detector is linked with cgo.
deps: ## install redis-server and a C compiler where they are missing
	@set -e; \
	missing=; \
	command -v redis-server >/dev/null || missing=" redis-server"; \
	command -v $$(go env CC) >/dev/null || missing="$$missing gcc libc6-dev"; \
	[ -n "$$missing" ] || exit 0; \
	command -v apt-get >/dev/null || { echo "make deps: install by hand:$$missing" >&2; exit 1; }; \
	sudo=; [ "$$(id -u)" = 0 ] || ! command -v sudo >/dev/null || sudo=sudo; \
	echo "make deps: installing$$missing"; \
	$$sudo apt-get update; \
	$$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $$missing; \
	command -v redis-server >/dev/null || { echo "make deps: still no redis-server" >&2; exit 1; }

fmt: ## format the code
	@set -e; for m in $(MODULES); do (cd $$m && $(LINT) fmt); done

fmtcheck:
	@out=$$(gofmt -d .) && [ -z "$$out" ] || { echo "$$out"; echo "make fmtcheck: run make fmt" >&2; exit 1; }

vet:
	@set -e; for m in $(MODULES); do echo "go vet: $$m"; (cd $$m && go vet ./...); done

lint: ## golangci-lint, at the version in tools/go.mod
	@set -e; for m in $(MODULES); do echo "lint: $$m"; (cd $$m && $(LINT) run --config $(CURDIR)/.golangci.yml ./...); done

# RELOCK_TEST_REQUIRE: a test that finds no redis-server fails instead of skipping.
# -count=1: a result from the cache says nothing about the server that is installed now.
race:
	@set -e; for m in $(MODULES); do echo "go test -race: $$m"; (cd $$m && RELOCK_TEST_REQUIRE=1 $(TEST) -race -count=1 ./...); done
