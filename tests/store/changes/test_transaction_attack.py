"""Races: while changes are made, another process swaps directories and files for links that lead outside."""

import os
import subprocess
import sys
from collections import Counter
from contextlib import closing
from hashlib import sha256

import pytest
from transactions import open_transactions

from kaiza.domain import errors
from kaiza.domain.change import Change
from kaiza.domain.paths.rel_path import parse
from kaiza.store.files.confined_root import ConfinedRoot

TRIES = 100_000 if os.environ.get("KAIZA_LONG") else 400
SWAPPER = """
import ctypes, sys, time
swap, here = ctypes.CDLL(None).renameat2, -100
print("ready", flush=True)
while True:
    swap(here, sys.argv[1].encode(), here, sys.argv[2].encode(), 2)
    for _ in range(int(sys.argv[3])):
        pass
"""
DIRECTORY_SWAPPER = """
import ctypes, os
swap = ctypes.CDLL(None).renameat2
print("ready", flush=True)
number = 0
while True:
    if swap(-100, b"made", -100, b"evil", 2) == 0:
        number += 1
        os.rename("evil", f"aside/{number}")
        os.rename("made", "evil")
"""

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the attacker exchanges names"),
]


def digest(content):
    return sha256(content).hexdigest()


def manifest(directory):
    return {path: (path.lstat().st_mtime_ns, path.is_file() and path.read_bytes()) for path in directory.rglob("*")}


def proposals(number, content):
    """One change of each kind, for the file as it is now."""
    if content is None:
        yield Change(parse("a/f"), "create", None, digest(b"again"), content=b"again")
        return
    yield Change(parse("a/f"), "modify", digest(content), digest(b"%d" % number), content=b"%d" % number)
    yield Change(parse(f"a/n{number}"), "create", None, digest(b"n"), content=b"n")
    yield Change(parse(f"a/deep/n{number}"), "create", None, digest(b"n"), content=b"n")
    yield Change(parse(f"a/m{number}"), "move", digest(content), digest(content), source=parse("a/f"))
    yield Change(parse(f"b/m{number}"), "move", digest(content), digest(content), source=parse("a/f"))
    yield Change(parse("a/f"), "delete", digest(content))


def current_content(path):
    try:
        return path.read_bytes()
    except OSError:
        return None


@pytest.mark.parametrize("resolver", ["openat2", "walk"])
@pytest.mark.parametrize(("pair", "pause"), [(("a", "evil"), 20_000), (("a/f", "a/evil"), 20_000), (("a", "evil"), 0)])
def test_nothing_outside_is_touched_while_names_are_swapped_for_links(tmp_path, resolver, pair, pause):
    root, outside = tmp_path / "ws", tmp_path / "outside"
    for directory in (root / "a/deep", root / "b", outside / "deep"):
        directory.mkdir(parents=True)
    (root / "a/f").write_bytes(b"inside")
    (outside / "f").write_bytes(b"inside")
    (root / "evil").symlink_to("../outside")
    (root / "a/evil").symlink_to("../../outside/f")
    (outside / "b").mkdir()
    before, counts, number = manifest(outside), Counter(), 0
    with subprocess.Popen(
        [sys.executable, "-c", SWAPPER, *pair, str(pause)], cwd=root, stdout=subprocess.PIPE
    ) as swapper:
        swapper.stdout.readline()
        with ConfinedRoot(str(root), resolver=resolver) as workspace:
            manager = open_transactions(workspace)
            while counts.total() < TRIES // 3 or (not counts["ok"] and counts.total() < 50 * TRIES):
                number += 1
                for kind, change in enumerate(proposals(number, current_content(root / "a/f"))):
                    txn = f"t{number}-{kind}"
                    try:
                        manager.apply(manager.prepare(txn, [change]))
                        manager.finalize(txn)
                        counts["ok"] += 1
                    except errors.SystemError as error:
                        counts[error.error_code] += 1
            manager.close()
        swapper.kill()

    assert manifest(outside) == before
    assert counts["ok"] > 0
    assert len(counts) > 1


@pytest.mark.parametrize("resolver", ["openat2", "walk"])
def test_nothing_outside_is_touched_while_new_directories_are_swapped_for_links(tmp_path, resolver):
    root, outside, counts = tmp_path / "ws", tmp_path / "outside", Counter()
    for directory in (root / "aside", outside):
        directory.mkdir(parents=True)
    (root / "evil").symlink_to("../outside")
    change = Change(parse("made/n"), "create", None, digest(b"n"), content=b"n")
    with (
        subprocess.Popen([sys.executable, "-c", DIRECTORY_SWAPPER], cwd=root, stdout=subprocess.PIPE) as attacker,
        ConfinedRoot(str(root), resolver=resolver) as workspace,
        closing(open_transactions(workspace)) as manager,
    ):
        attacker.stdout.readline()
        try:
            while counts.total() < TRIES // 4 or (not any((root / "aside").iterdir()) and counts.total() < 50 * TRIES):
                txn = f"t{counts.total()}"
                try:
                    manager.apply(manager.prepare(txn, [change]))
                    manager.finalize(txn)
                    counts["ok"] += 1
                except errors.SystemError as error:
                    counts[error.error_code] += 1
        finally:
            attacker.kill()

    assert list(outside.iterdir()) == []
    assert any((root / "aside").iterdir())
