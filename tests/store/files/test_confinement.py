"""Both ways of resolving a path give the same answers, over random trees of files, directories and links."""

import os
import pickle
import random
import shutil
import stat
import tempfile
from pathlib import Path

import pytest

from kaiza.domain import errors
from kaiza.domain.paths.rel_path import RelPath
from kaiza.store.files.confined_root import ConfinedRoot

LONG = bool(os.environ.get("KAIZA_LONG"))
TREES = 1500 if LONG else 120
PATHS = 200 if LONG else 60
NAMES = ("a", "b", "c", "d", "e")
SECRET = b"outside"


def agree(real):
    """A judge that has nothing against any place."""


def grow(dice, root):
    """A workspace of a few directories, with files, pipes and links of every kind strewn over it."""
    directories = [root]
    for _ in range(dice.randrange(2, 7)):
        made = dice.choice(directories) / dice.choice(NAMES)
        if not os.path.lexists(made):
            made.mkdir()
            directories.append(made)
    for _ in range(dice.randrange(4, 18)):
        place = dice.choice(directories) / dice.choice(NAMES)
        if os.path.lexists(place):
            continue
        plant(dice, root, place)
    return directories


def plant(dice, root, place):
    kind = dice.random()
    if kind < 0.25:
        place.write_bytes(bytes(str(place.relative_to(root)), "ascii"))
    elif kind < 0.3:
        os.mkfifo(place)
    else:
        place.symlink_to(target(dice, root))


def target(dice, root):
    """Where a link points: mostly about inside, at times up and out, at times absolute."""
    steps = [dice.choice((*NAMES, *NAMES, "..", "..", ".", "")) for _ in range(dice.randrange(1, 6))]
    kind = dice.random()
    if kind < 0.08:
        return str(root / "/".join(steps).lstrip("/"))
    if kind < 0.12:
        return f"../outside/{dice.choice(NAMES)}"
    if kind < 0.14:
        return "x" * dice.choice((255, 256))
    return "/".join(steps).lstrip("/") + dice.choice(("", "", "/", "/.", "//")) or "."


def answer(act, path):
    """Everything that a caller could tell apart."""
    try:
        told = act(path, agree)
    except errors.SystemError as error:
        return error.error_code, error.cause
    if not hasattr(told, "fd"):
        return told
    with told:
        found = os.fstat(told.fd)
        data = told.read(99) if stat.S_ISREG(found.st_mode) else b""
        return str(told.real), found.st_ino, data


def differences(seed, base):
    """Where the two ways, or the two and the truth, part."""
    dice = random.Random(seed)
    root = base / "ws"
    root.mkdir()
    (base / "outside").mkdir()
    for name in NAMES:
        (base / "outside" / name).write_bytes(SECRET)
    directories = grow(dice, root)
    if os.geteuid() != 0:
        for made in reversed(directories[1:]):
            made.chmod(dice.choice((0o700, 0o700, 0o500, 0o600, 0o400, 0o100, 0)))
    found = []
    with ConfinedRoot(str(root), resolver="openat2") as kernel, ConfinedRoot(str(root), resolver="walk") as walk:
        for _ in range(PATHS):
            path = RelPath(tuple(dice.choice(NAMES) for _ in range(dice.randrange(5))))
            for act in ("open_file", "open_directory", "stat"):
                one, other = answer(getattr(kernel, act), path), answer(getattr(walk, act), path)
                if one != other or (isinstance(one, tuple) and SECRET in one):
                    found.append((seed, act, str(path), one, other))
    for made in directories:
        made.chmod(0o700)
    shutil.rmtree(base)
    return found


def all_differences(seeds, parent):
    found = []
    for seed in seeds:
        found += differences(seed, Path(tempfile.mkdtemp(dir=parent)))
    return found


@pytest.fixture
def common_ground():
    """A directory that every user can enter."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o777)
        yield made


@pytest.mark.long
def test_both_resolvers_agree_about_every_path(tmp_path):
    assert all_differences(range(TREES), tmp_path) == []


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_both_resolvers_agree_where_directories_are_not_accessible(common_ground):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgid(65534)
            os.setuid(65534)
            os.write(writer, pickle.dumps(all_differences(range(TREES, TREES * 2), common_ground)[:20]))
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as told:
        found = pickle.load(told)
    os.waitpid(child, 0)

    assert found == []
