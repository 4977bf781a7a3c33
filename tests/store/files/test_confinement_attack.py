"""Somebody swaps directories and files for links that lead out, as fast as they can: nothing outside is ever read."""

import os
import subprocess
import sys
from collections import Counter

import pytest

from kaiza.domain import errors
from kaiza.domain.paths.rel_path import parse
from kaiza.store.files.confined_root import ConfinedRoot

TRIES = 1_000_000 if os.environ.get("KAIZA_LONG") else 10_000
SWAPPER = """
import ctypes, os, sys
swap, here = ctypes.CDLL(None).renameat2, -100
pairs = [(one.encode(), other.encode()) for one, other in zip(sys.argv[1::2], sys.argv[2::2])]
print("ready", flush=True)
while True:
    for one, other in pairs:
        swap(here, one, here, other, 2)
"""

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the attacker exchanges names"),
]


def agree(real):
    """A judge that has nothing against any place."""


@pytest.fixture
def ground(tmp_path):
    """A workspace in which every name on the path has an evil twin."""
    root, outside = tmp_path / "ws", tmp_path / "outside"
    for made in (root / "a/b/c", outside / "b/c"):
        made.mkdir(parents=True)
    for made in (root / "a/f", root / "a/b/f", root / "a/b/c/f", root / "f"):
        made.write_text("inside")
    for made in (outside / "f", outside / "b/f", outside / "b/c/f"):
        made.write_text("SECRET")
    (root / "evil").symlink_to("../outside")
    (root / "a/evil").symlink_to("../../outside/b")
    (root / "a/b/c/evil").symlink_to("../../../../outside/f")
    (root / "around").symlink_to("a/b/c/../../f")
    (root / "twin").symlink_to("a/b")
    (root / "twin.evil").symlink_to("../outside/b")
    return root


def effective(seen):
    """How many tries count: none as long as the swapper has not been seen at work."""
    return seen.total() if len(seen) > 1 or seen.total() > 100 * TRIES else 0


@pytest.mark.parametrize("way", ["openat2", "walk"])
@pytest.mark.parametrize(
    ("pair", "path"),
    [
        (("a", "evil"), "a/f"),
        (("a/b", "a/evil"), "a/b/c/f"),
        (("a/b/c/f", "a/b/c/evil"), "a/b/c/f"),
        (("a/b", "a/evil"), "around"),
        (("a/b/c", "f"), "around"),
        (("twin", "twin.evil"), "twin/c/f"),
        (("a", "../outside/b"), "around"),
    ],
)
def test_nothing_outside_is_read_while_names_are_swapped_for_links(ground, way, pair, path):
    seen = Counter()
    with subprocess.Popen([sys.executable, "-c", SWAPPER, *pair], cwd=ground, stdout=subprocess.PIPE) as swapper:
        swapper.stdout.readline()
        with ConfinedRoot(str(ground), resolver=way) as workspace:
            while effective(seen) < TRIES // 7:
                try:
                    with workspace.open_file(parse(path), agree) as opened:
                        seen[opened.read(9)] += 1
                except errors.SystemError as error:
                    seen[error.error_code] += 1
        swapper.kill()

    assert len(seen) > 1
    assert b"SECRET" not in seen
    assert set(seen) - {b"inside"} <= {"OUTSIDE_WORKSPACE", "FILE_NOT_FOUND", "FILE_READ_FAILED", "INVALID_PATH"}


@pytest.mark.parametrize("way", ["openat2", "walk"])
def test_the_file_that_is_read_is_always_the_one_that_was_judged(ground, way):
    (ground / ".env").write_text("hidden")
    (ground / "open").write_text("inside")
    (ground / "one").symlink_to("open")
    (ground / "other").symlink_to(".env")
    told, seen = [], Counter()
    with subprocess.Popen(
        [sys.executable, "-c", SWAPPER, "one", "other"], cwd=ground, stdout=subprocess.PIPE
    ) as swapper:
        swapper.stdout.readline()
        with ConfinedRoot(str(ground), resolver=way) as workspace:
            while effective(seen) < TRIES // 7:
                with workspace.open_file(parse("one"), told.append) as opened:
                    seen[str(told[-1]), str(opened.real), opened.read(9)] += 1
        swapper.kill()

    assert set(seen) == {(".env", ".env", b"hidden"), ("open", "open", b"inside")}
