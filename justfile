# One definition of good: `just check` is what CI, pre-commit and people run.

uv := env("UV", "uv")
run := uv + " run --locked"

# everything that must be true before a change lands
check: tools lint test

# how the code reads, and that its layers hold
lint:
    {{run}} ruff format --check .
    {{run}} ruff check .
    {{run}} mypy
    {{run}} lint-imports

# the tests, with branch coverage; the long ones in their bounded version
test *args:
    {{run}} pytest -n auto --cov --cov-report=term:skip-covered {{args}}

# the long tests whole: every crash point, every race, fuzzing at length
long *args:
    KAIZA_LONG=1 {{run}} pytest -m long {{args}}

# mend what a machine can mend
fix:
    {{run}} ruff format .
    {{run}} ruff check --fix .

# on a CI machine of Debian's kind: the programs that some tests hold Kaiza against; elsewhere those tests say why they skip
tools:
    #!/usr/bin/env bash
    set -euo pipefail
    missing=()
    for tool in strace rg:ripgrep jq git; do command -v "${tool%%:*}" >/dev/null || missing+=("${tool##*:}"); done
    if [ "${#missing[@]}" -gt 0 ] && [ "${CI:-}" = true ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq && apt-get install -y -qq "${missing[@]}"
    fi
