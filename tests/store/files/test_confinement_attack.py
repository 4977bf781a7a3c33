"""Races: another process swaps directories and files for links that lead outside while files are read."""

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


def accept(real):
    """A path check that accepts every path."""


@pytest.fixture
def root(tmp_path):
    """A workspace in which every name of the path has a counterpart that leads outside."""
    root, outside = tmp_path / "ws", tmp_path / "outside"
    for directory in (root / "a/b/c", outside / "b/c"):
        directory.mkdir(parents=True)
    for file in (root / "a/f", root / "a/b/f", root / "a/b/c/f", root / "f"):
        file.write_text("inside")
    for file in (outside / "f", outside / "b/f", outside / "b/c/f"):
        file.write_text("SECRET")
    (root / "evil").symlink_to("../outside")
    (root / "a/evil").symlink_to("../../outside/b")
    (root / "a/b/c/evil").symlink_to("../../../../outside/f")
    (root / "around").symlink_to("a/b/c/../../f")
    (root / "twin").symlink_to("a/b")
    (root / "twin.evil").symlink_to("../outside/b")
    return root


def count_effective(seen):
    """The reads so far; 0 until a swap has had an effect."""
    return seen.total() if len(seen) > 1 or seen.total() > 100 * TRIES else 0


@pytest.mark.parametrize("resolver", ["openat2", "walk"])
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
def test_nothing_outside_is_read_while_names_are_swapped_for_links(root, resolver, pair, path):
    seen = Counter()
    with subprocess.Popen([sys.executable, "-c", SWAPPER, *pair], cwd=root, stdout=subprocess.PIPE) as swapper:
        swapper.stdout.readline()
        with ConfinedRoot(str(root), resolver=resolver) as workspace:
            while count_effective(seen) < TRIES // 7:
                try:
                    with workspace.open_file(parse(path), accept) as opened:
                        seen[opened.read(9)] += 1
                except errors.SystemError as error:
                    seen[error.error_code] += 1
        swapper.kill()

    assert len(seen) > 1
    assert b"SECRET" not in seen
    assert set(seen) - {b"inside"} <= {"OUTSIDE_WORKSPACE", "FILE_NOT_FOUND", "FILE_READ_FAILED", "INVALID_PATH"}


@pytest.mark.parametrize("resolver", ["openat2", "walk"])
def test_the_file_that_is_read_is_always_the_one_that_was_judged(root, resolver):
    (root / ".env").write_text("hidden")
    (root / "open").write_text("inside")
    (root / "one").symlink_to("open")
    (root / "other").symlink_to(".env")
    judged, seen = [], Counter()
    with subprocess.Popen([sys.executable, "-c", SWAPPER, "one", "other"], cwd=root, stdout=subprocess.PIPE) as swapper:
        swapper.stdout.readline()
        with ConfinedRoot(str(root), resolver=resolver) as workspace:
            while count_effective(seen) < TRIES // 7:
                with workspace.open_file(parse("one"), judged.append) as opened:
                    seen[str(judged[-1]), str(opened.real), opened.read(9)] += 1
        swapper.kill()

    assert set(seen) == {(".env", ".env", b"hidden"), ("open", "open", b"inside")}
