#!/usr/bin/env bash
# What a release is made of, and what its users get. Nothing is sent anywhere.
#   internal/tools/release.sh dist   builds the command for each system into out/dist, by goreleaser: make dist
#   internal/tools/release.sh check  the same, and sees what a tag of this commit gives to users: make release-check
# goreleaser is a large program, and takes long to build the first time; GORELEASER is one that is there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export GOWORK=off CGO_ENABLED=0
module=github.com/relock-go/relock
systems="linux_amd64 linux_arm64 darwin_amd64 darwin_arm64 freebsd_amd64 freebsd_arm64"
dist=$PWD/out/dist

failed() { echo "make release-check: FAILED: $*" >&2; exit 1; }

# For each system an archive and a bill of what is in it; then the sums of all. A commit without a
# tag is built as a snapshot. It is built in a clone: what is not committed is not in it, and the go
# command notes the commit, which it does not in a worktree.
dist() {
	local snapshot=--snapshot src
	src=$(mktemp -d)
	git clone --quiet . "$src/relock"
	git describe --tags --exact-match >/dev/null 2>&1 && snapshot=
	go build -C internal/tools/sbom -o "$PWD/out/bin/relock-sbom" .
	(
		export PATH=$PWD/out/bin:$PATH
		cd "$src/relock"
		${GORELEASER:-go run github.com/goreleaser/goreleaser/v2@v2.14.3} release $snapshot --clean --config internal/tools/goreleaser.yml
	)
	rm -rf "$dist" && mv "$src/relock/out/dist" "$dist" && rm -rf "$src"
}

# What has been built is whole, has its bill, and on this system says which commit it is of.
sound() {
	local system here files
	here=$(go env GOHOSTOS)_$(go env GOHOSTARCH)
	(cd "$dist" && sha256sum --quiet -c SHA256SUMS) || failed "a sum is wrong"
	for system in $systems; do
		grep -q "_$system.tar.gz$" "$dist/SHA256SUMS" || failed "nothing for $system"
		grep -q '"name": "github.com/redis/go-redis/v9"' "$dist"/relock_*_"$system".cdx.json || failed "the bill of $system does not name go-redis"
	done
	files=$(wc -l <"$dist/SHA256SUMS")
	tar -C "$tmp" -xzf "$dist"/relock_*_"$here".tar.gz
	[[ "$(go version -m "$tmp/relock")" == *"vcs.revision=$(git rev-parse HEAD)"* ]] || failed "the program does not know its commit"
	echo "make release-check: $("$tmp/relock" version), in $files files with sums"
}

# As a user's: the module from a repository with the tag, all others from the cache.
tagged() {
	git clone --quiet --bare . "$tmp/relock.git"
	git -C "$tmp/relock.git" tag "$tag" "$(git rev-parse HEAD)"
	GOPROXY=file://$(go env GOMODCACHE)/cache/download
	export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.file://$tmp/relock.git.insteadOf" GIT_CONFIG_VALUE_0=https://$module
	export GOPROXY GONOPROXY=$module GOSUMDB=off GOFLAGS=-modcacherw GOMODCACHE=$tmp/mod GOBIN=$tmp/bin
}

installs() {
	go install "$module/cmd/relock@$tag"
	[[ "$("$GOBIN/relock" version)" == "relock $tag "* ]] || failed "what was installed says $("$GOBIN/relock" version), not $tag"
	echo "make release-check: go install $module/cmd/relock@$tag: $("$GOBIN/relock" version)"
}

# user NAME IMPORT...: a program that imports no more, and the modules that its go.sum has afterwards.
# What go-redis needs for its own tests alone is not in the cache, which -e forgives.
user() {
	mkdir "$tmp/$1"
	(
		cd "$tmp/$1" && shift
		printf 'package main\n\nimport (\n%s)\n\nfunc main() {}\n' "$(printf '\t_ "%s"\n' "$@")"$'\n' >main.go
		go mod init example.com/user && go mod edit -require="$module@$tag" -require="$(needed github.com/redis/go-redis/v9)" -require="$(needed github.com/google/uuid)"
		go mod tidy -e && go build -o program .
	) >"$tmp/$1.log" 2>&1 || { cat "$tmp/$1.log" >&2; failed "a program that imports $2 is not built"; }
	cut -d' ' -f1 "$tmp/$1/go.sum" | sort -u >"$tmp/$1.modules"
}

needed() { awk -v path="$1" '$1 == path { print $1 "@" $2 }' "$top/go.mod"; }

# Who imports relock has the modules of who imports go-redis and uuid, and relock.
brings() {
	user without github.com/redis/go-redis/v9 github.com/google/uuid
	user with github.com/redis/go-redis/v9 github.com/google/uuid $module
	local more
	more=$(comm -13 "$tmp/without.modules" "$tmp/with.modules" | xargs)
	[ "$more" = $module ] || failed "beside what go-redis and uuid bring, a user's go.sum has" $more
	echo "make release-check: beside what go-redis and uuid bring, a user's go.sum has $more alone"
}

image() {
	if ! docker info --format '{{.ServerVersion}}' >"$tmp/docker.log" 2>&1; then
		echo "make release-check: image NOT BUILT: there is no container daemon"
		return
	fi
	docker build --quiet --file internal/tools/Dockerfile --tag relock:check . && docker run --rm relock:check version || failed "the image does not run"
}

check() {
	top=$PWD tag=v0.0.0-check tmp=$(mktemp -d)
	trap 'rm -rf "$tmp"' EXIT
	git diff --quiet HEAD || echo "make release-check: what is not committed is not in the tag" >&2
	dist
	sound
	image
	tagged
	installs
	brings
	echo "make release-check: PASSED ($(git -C "$top" rev-parse --short HEAD), $(go env GOVERSION))"
}

case ${1:-} in
dist | check) "$1" ;;
*) sed -n '2,5s/^# //p' "${BASH_SOURCE[0]}" >&2 && exit 64 ;;
esac
