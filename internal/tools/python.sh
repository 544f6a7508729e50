#!/usr/bin/env bash
# Puts what test/layout/requirements.txt names into out/python, where the test of relock.py looks for it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
wanted=test/layout/requirements.txt
! cmp -s "$wanted" out/python/requirements.txt || exit 0
echo "make deps: installing redis-py into out/python"
rm -rf out/python
python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --require-hashes --only-binary :all: \
	--target out/python --requirement "$wanted"
cp "$wanted" out/python/requirements.txt # last: it says that all is there
