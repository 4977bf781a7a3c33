"""Both resolvers give the same results over random trees of files, directories and links, and never leave the root."""

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


def accept(real):
    """A path check that accepts every path."""


def grow(dice, root):
    """A workspace of a few directories with random files, FIFOs and links of every kind."""
    directories = [root]
    for _ in range(dice.randrange(2, 7)):
        directory = dice.choice(directories) / dice.choice(NAMES)
        if not os.path.lexists(directory):
            directory.mkdir()
            directories.append(directory)
    for _ in range(dice.randrange(4, 18)):
        path = dice.choice(directories) / dice.choice(NAMES)
        if os.path.lexists(path):
            continue
        plant(dice, root, path)
    return directories


def plant(dice, root, path):
    kind = dice.random()
    if kind < 0.25:
        path.write_bytes(bytes(str(path.relative_to(root)), "ascii"))
    elif kind < 0.3:
        os.mkfifo(path)
    else:
        path.symlink_to(random_target(dice, root))


def random_target(dice, root):
    """Target of a link: mostly inside, sometimes outside, sometimes absolute."""
    steps = [dice.choice((*NAMES, *NAMES, "..", "..", ".", "")) for _ in range(dice.randrange(1, 6))]
    kind = dice.random()
    if kind < 0.08:
        return str(root / "/".join(steps).lstrip("/"))
    if kind < 0.12:
        return f"../outside/{dice.choice(NAMES)}"
    if kind < 0.14:
        return "x" * dice.choice((255, 256))
    return "/".join(steps).lstrip("/") + dice.choice(("", "", "/", "/.", "//")) or "."


def observe(act, path):
    """Everything of a result that a caller can tell apart."""
    try:
        result = act(path, accept)
    except errors.SystemError as error:
        return error.error_code, error.cause
    if not hasattr(result, "fd"):
        return result
    with result:
        status = os.fstat(result.fd)
        data = result.read(99) if stat.S_ISREG(status.st_mode) else b""
        return str(result.real), status.st_ino, data


def differences(seed, base):
    """The paths for which the resolvers differ, or one of them reads outside the root."""
    dice = random.Random(seed)
    root = base / "ws"
    root.mkdir()
    (base / "outside").mkdir()
    for name in NAMES:
        (base / "outside" / name).write_bytes(SECRET)
    directories = grow(dice, root)
    if os.geteuid() != 0:
        for directory in reversed(directories[1:]):
            directory.chmod(dice.choice((0o700, 0o700, 0o500, 0o600, 0o400, 0o100, 0)))
    found = []
    with ConfinedRoot(str(root), resolver="openat2") as kernel, ConfinedRoot(str(root), resolver="walk") as walk:
        for _ in range(PATHS):
            path = RelPath(tuple(dice.choice(NAMES) for _ in range(dice.randrange(5))))
            for act in ("open_file", "open_directory", "stat"):
                ours, theirs = observe(getattr(kernel, act), path), observe(getattr(walk, act), path)
                if ours != theirs or (isinstance(ours, tuple) and SECRET in ours):
                    found.append((seed, act, str(path), ours, theirs))
    for directory in directories:
        directory.chmod(0o700)
    shutil.rmtree(base)
    return found


def all_differences(seeds, parent):
    found = []
    for seed in seeds:
        found += differences(seed, Path(tempfile.mkdtemp(dir=parent)))
    return found


@pytest.fixture
def shared_directory():
    """A directory that every user can enter."""
    with tempfile.TemporaryDirectory() as path:
        Path(path).chmod(0o777)
        yield path


@pytest.mark.long
def test_both_resolvers_agree_about_every_path(tmp_path):
    assert all_differences(range(TREES), tmp_path) == []


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_both_resolvers_agree_where_directories_are_not_accessible(shared_directory):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgid(65534)
            os.setuid(65534)
            os.write(writer, pickle.dumps(all_differences(range(TREES, TREES * 2), shared_directory)[:20]))
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as pipe:
        found = pickle.load(pipe)
    os.waitpid(child, 0)

    assert found == []
