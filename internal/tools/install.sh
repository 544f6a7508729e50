#!/usr/bin/env bash
# Installs the packages of Debian or Ubuntu that its arguments name; without arguments it does nothing.
set -euo pipefail
[ $# -gt 0 ] || exit 0
command -v apt-get >/dev/null || { echo "make deps: install by hand: $*" >&2; exit 1; }
sudo=
[ "$(id -u)" = 0 ] || ! command -v sudo >/dev/null || sudo=sudo
echo "make deps: installing $*"
$sudo apt-get update
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
[[ " $* " != *" redis-server "* ]] || command -v redis-server >/dev/null || { echo "make deps: still no redis-server" >&2; exit 1; }
