#!/usr/bin/env bash
# The README's two commands, a fresh clone of HEAD in an empty directory, an empty HOME, no
# caches, and of the environment only PATH. The first command runs whole. Of the second everything is set up and the
# recipe is shown; in place of all checks, which would run this script again, it runs one file of quick tests.
set -euo pipefail
here="$(cd "$(dirname "$0")/.." && pwd)"
place="$(mktemp -d)"
stage=""
trap 'rm -rf "$place" ${stage:+"$stage"}' EXIT
mkdir "$place/home"
git -c safe.directory='*' clone --quiet "file://$here" "$place/clone"
cd "$place/clone"

mapfile -t commands < <(grep -E '^python3 -m pip install .* (kaiza demo|just check)$' README.md)
[ "${#commands[@]}" = 2 ] || { echo "the README does not have its two commands" >&2; exit 1; }
path="$(tr : '\n' <<<"$PATH" | grep -vF "$here/" | paste -sd :)" # what this checkout installed is not the newcomer's
newcomer() { env -i PATH="$path" HOME="$place/home" bash -c "$1"; }

echo "\$ ${commands[0]}"
newcomer "${commands[0]} --fast" | tee "$place/output" | tail -n 4
stage="$(sed -n 's#^ *cd \(/.*\)/project$#\1#p' "$place/output")"
[ -d "$stage/project/audit" ]

echo "\$ ${commands[1]}   (here: its recipe, and one file of tests in place of all)"
newcomer "${commands[1]/%just check/just --show check}"
newcomer "${commands[1]/%just check/just test --no-cov tests/domain/test_error_codes.py}"
[ -z "$(git status --porcelain)" ] || { echo "the clone is not as it was:"; git status --short; exit 1; }
echo "both commands work from a fresh clone"
