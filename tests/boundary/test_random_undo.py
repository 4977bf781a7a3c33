"""Whatever an agent did, a person's undo restores every file that nobody else touched, or names it."""

import functools
import os
import random

import pytest
from undo_sequences import Play, find_fault, make_sequence, shrink

from kaiza.domain.plans import parser

SEEDS = 10_000 if os.environ.get("KAIZA_LONG") else 300
PARTS = 20
"""Each part is one test, so that several processes can share them."""


KEPT = {
    "a private file is deleted and created again with the same content": (
        False,
        [(0, 0, "delete", (1, 0, 0, 0)), (0, 0, "write", (1, 940, 0, 0))],
    ),
    "an undo of two calls keeps a file, and another undo brings its first change back": (
        False,
        [
            (0, 0, "write", (1, 1, 0, 0)),
            (0, 0, "write", (0, 1, 0, 0)),
            (0, 0, "write", (0, 2, 0, 0)),
            (0, 0, "undo", (1, 2, 0, 0)),
            (0, 0, "undo", (1, 1, 0, 0)),
        ],
    ),
    "two plans, and the files of one are moved by the other": (
        True,
        [(0, 0, "move", (0, 5, 0, 0)), (0, 1, "swap", (1, 2, 0, 0)), (0, 0, "undo all", (0, 0, 0, 0))],
    ),
    "a file was moved away, and another session's file below its name was created and undone": (
        False,
        [
            (1, 1, "swap", (585, 473, 606, 812)),
            (None, 0, "person undo", (450, 117, 371, 994)),
            (None, 0, "outside delete", (956, 405, 965, 158)),
            (1, 1, "delete", (723, 842, 613, 96)),
            (0, 1, "move", (558, 61, 341, 162)),
            (1, 1, "write", (74, 552, 223, 105)),
            (0, 1, "undo", (74, 681, 222, 85)),
        ],
    ),
}
"""Sequences that failed once: whether the plan is undone, and the steps."""


@pytest.fixture
def judge(tmp_path, monkeypatch):
    """Plays steps in a workspace of their own; returns what is wrong, or None."""
    # The plans are the same in every workspace, and to parse them takes as long as the rest.
    monkeypatch.setattr(parser, "parse", functools.cache(parser.parse))
    # Nothing here is about power cuts.
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, lambda _fd: None)
    count = iter(range(1 << 30))

    def run(steps, by_plan):
        play = Play(tmp_path / str(next(count)))
        try:
            return find_fault(play, steps, by_plan)
        finally:
            play.close()

    return run


@pytest.mark.parametrize("name", KEPT)
def test_sequences_that_failed_once_are_undone(judge, name):
    by_plan, steps = KEPT[name]

    assert judge(steps, by_plan) is None


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_a_persons_undo_restores_every_file_that_nobody_else_touched_or_names_it(judge, part):
    for seed in range(part, SEEDS, PARTS):
        steps, by_plan = make_sequence(random.Random(seed)), bool(seed % 3 == 2)
        fault = judge(steps, by_plan)
        if fault is not None:
            shrunk = shrink(steps, lambda fewer, by_plan=by_plan: judge(fewer, by_plan) is not None)
            pytest.fail(f"seed {seed}: {judge(shrunk, by_plan)}\nby plan: {by_plan}\n{shrunk!r}")
