"""Which entries of the tree are known by their status only."""

import stat

import pytest

from kaiza.store.files.confined_root import ConfinedRoot
from kaiza.store.manifest.database import IGNORED
from kaiza.store.manifest.ignored_paths import IgnoredPaths
from kaiza.store.manifest.tree import Stat


@pytest.fixture
def ignored(tmp_path):
    """Rules at the root and in one directory, with more directories than are kept in mind."""
    (tmp_path / ".gitignore").write_text("build/\n*.log\n")
    (tmp_path / "src").mkdir()
    (tmp_path / "src/.gitignore").write_text("!kept.log\n/tmp\n")
    with ConfinedRoot(str(tmp_path)) as files:
        yield IgnoredPaths(files, lambda _path: False)


def is_ignored(ignored, directory, name, *, is_directory):
    status = Stat((stat.S_IFDIR if is_directory else stat.S_IFREG) | 0o644, 0, 0, 0, 1)
    return bool(ignored.flags(directory, name, status) & IGNORED)


@pytest.mark.parametrize(
    ("directory", "name", "is_directory", "expected"),
    [
        (b"", b"build", True, True),
        (b"", b"build", False, False),
        (b"build", b"x", False, True),
        (b"build/deep/er", b"x", False, True),
        (b"src/build/deep", b"kept.log", False, True),
        (b"", b"a.log", False, True),
        (b"src", b"a.log", False, True),
        (b"src", b"kept.log", False, False),
        (b"src", b"tmp", False, True),
        (b"src/deep", b"tmp", False, False),
        (b"src/tmp/deep", b"x", False, True),
        (b"", b"src", True, False),
        (b"src", b"main.py", False, False),
    ],
)
def test_an_entry_is_ignored_if_a_rule_excludes_it_or_a_directory_above_it(
    ignored, directory, name, is_directory, expected
):
    assert [is_ignored(ignored, directory, name, is_directory=is_directory) for _ in range(2)] == [expected] * 2


def test_rules_reach_the_end_of_a_tree_with_more_levels_than_are_kept_in_mind(ignored):
    deep = b"/".join([b"src", *[b"d"] * 1_500])

    assert is_ignored(ignored, deep, b"a.log", is_directory=False)
    assert not is_ignored(ignored, deep, b"kept.log", is_directory=False)
    assert is_ignored(ignored, deep + b"/build/d", b"main.py", is_directory=False)
