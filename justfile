# One definition of good: `just check` is what CI, pre-commit and people run.

uv := env("UV", "uv")
run := uv + " run --locked"

# everything that must be true before a change lands
check: lint test

# how the code reads, and that its layers hold
lint:
    {{run}} ruff format --check .
    {{run}} ruff check .
    {{run}} mypy
    {{run}} lint-imports

# the tests, with branch coverage; the long ones in their bounded version
test *args:
    {{run}} pytest {{args}}

# the long tests whole: every crash point, every race, fuzzing at length
long *args:
    KAIZA_LONG=1 {{run}} pytest -m long {{args}}

# mend what a machine can mend
fix:
    {{run}} ruff format .
    {{run}} ruff check --fix .
