"""Whatever an agent did, a person's undo restores every file that nobody else touched, or names it."""

import os
import random

import pytest
from undo_sequences import Play, find_fault, make_sequence, shrink

SEEDS = 10_000 if os.environ.get("KAIZA_LONG") else 300
PARTS = 20
"""Each part is one test, so that several processes can share them."""


@pytest.fixture
def judge(tmp_path, capsys):
    """Plays steps in a workspace of their own; returns what is wrong, or None."""
    count = iter(range(1 << 30))

    def run(steps, by_plan):
        play = Play(tmp_path / str(next(count)))
        try:
            return find_fault(play, steps, by_plan)
        finally:
            play.close()

    return run


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_a_persons_undo_restores_every_file_that_nobody_else_touched_or_names_it(judge, part):
    for seed in range(part, SEEDS, PARTS):
        steps, by_plan = make_sequence(random.Random(seed)), bool(seed % 3 == 2)
        fault = judge(steps, by_plan)
        if fault is not None:
            shrunk = shrink(steps, lambda fewer, by_plan=by_plan: judge(fewer, by_plan) is not None)
            pytest.fail(f"seed {seed}: {judge(shrunk, by_plan)}\nby plan: {by_plan}\n{shrunk!r}")
