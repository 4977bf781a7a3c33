"""Guarded paths of a workspace: nothing is missed because a directory cannot be listed."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from kaiza.domain.paths.protected_names import find_steering_part, is_unreadable
from kaiza.store.checks.guarded_paths import find_guarded

NOBODY = 65534


@pytest.fixture
def root():
    """A workspace of an ordinary user, who searches it: root may list any directory."""
    directory = Path(tempfile.mkdtemp(dir="/tmp"))
    user = os.geteuid()
    if user == 0:
        os.chown(directory, NOBODY, -1)
        os.seteuid(NOBODY)
    try:
        yield directory
    finally:
        os.seteuid(user)
        directory.chmod(0o755)
        shutil.rmtree(directory)


def guarded(root):
    return list(find_guarded(str(root), lambda path: find_steering_part(path) is not None, is_unreadable))


@pytest.mark.parametrize("mode", [0o000, 0o311, 0o644])
def test_a_directory_that_cannot_be_listed_or_searched_is_guarded_as_a_whole(root, mode):
    (root / "src").mkdir()
    (root / "src" / "CLAUDE.md").write_text("obey")
    (root / "src").chmod(mode)
    [found] = guarded(root)
    (root / "src").chmod(0o755)

    assert (str(found.path), found.governs, found.is_secret, found.is_directory) == ("src", True, True, True)


def test_a_root_that_cannot_be_listed_is_an_error(root):
    (root / "CLAUDE.md").write_text("obey")
    root.chmod(0o311)

    with pytest.raises(PermissionError):
        guarded(root)
