#!/bin/sh
# kvfleet.radiance: managed; runs every bats file below this folder: the gates of all services, and what else is there
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
if ! command -v bats >/dev/null 2>&1; then
  echo "tests/run.sh: nothing was tried, bats is not installed: apt install bats, dnf install bats, or brew install bats-core" >&2
  exit 127
fi
exec bats --recursive "$@" "$here"
