# `just check` is what CI, pre-commit and people run.

uv := env("UV", "uv")
run := uv + " run --locked"

# all checks; every change must pass them
check: tools lint test

# format, lint, types and import layers
lint:
    {{run}} ruff format --check .
    {{run}} ruff check .
    {{run}} mypy
    {{run}} lint-imports

# the tests with branch coverage; long tests run a bounded version
test *args:
    {{run}} pytest -n auto --cov --cov-report=term:skip-covered {{args}}

# the long tests in full: every crash point, every race, fuzzing
long *args:
    KAIZA_LONG=1 {{run}} pytest -m long {{args}}

# test the tests: each deliberate fault, made in a copy of the tree, must make its tests fail
mutants *words:
    nice {{run}} python tests/mutants.py {{words}}

# format the code and apply automatic lint fixes
fix:
    {{run}} ruff format .
    {{run}} ruff check --fix .

# install the programs that some tests compare Kaiza with, on Debian CI machines; elsewhere those tests are skipped with a reason
tools:
    #!/usr/bin/env bash
    set -euo pipefail
    missing=()
    for tool in strace rg:ripgrep jq git ssh-keygen:openssh-client bwrap:bubblewrap chromium; do command -v "${tool%%:*}" >/dev/null || missing+=("${tool##*:}"); done
    if [ "${#missing[@]}" -gt 0 ] && [ "${CI:-}" = true ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq && apt-get install -y -qq "${missing[@]}"
    fi
