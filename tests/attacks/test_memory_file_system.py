"""On a file system in memory a store through a mapping leaves no times, so nothing is taken for unchanged by them."""

import mmap
import subprocess

import pytest
from outside_changes import begin, end
from scenes import make_ready


@pytest.fixture
def in_memory(small_disk):
    """A workspace on tmpfs."""
    subprocess.run(["mount", "-o", "remount,size=8m", small_disk], check=True)
    return make_ready(small_disk / "project")


class Mapped:
    """A file in memory to which a program stores as often as it likes; only the first time changes its times."""

    def __init__(self, path):
        with path.open("r+b") as file:
            self._content = mmap.mmap(file.fileno(), 0)
        self.store(b"x")

    def store(self, content):
        self._content[: len(content)] = content


def test_a_store_through_a_mapping_is_listed_and_the_answer_is_partial(make_app, in_memory):
    for name in "ab":
        (in_memory / name).write_text("one\n")
    mapped = Mapped(in_memory / "a")
    app = make_app(in_memory)
    session_id = begin(app)
    before = (in_memory / "a").stat()
    mapped.store(b"ONE")
    after = (in_memory / "a").stat()

    assert (before.st_mtime_ns, before.st_ctime_ns) == (after.st_mtime_ns, after.st_ctime_ns)
    assert end(app, session_id) == ([("a", "modified")], "partial")


def test_a_store_between_two_sessions_is_not_taken_for_one_of_the_second(make_app, in_memory):
    (in_memory / "a").write_text("one\n")
    mapped = Mapped(in_memory / "a")
    app = make_app(in_memory)
    end(app, begin(app))
    mapped.store(b"ONE")
    session_id = begin(app)

    assert end(app, session_id) == ([], "partial")


def test_a_directory_in_memory_below_a_workspace_on_disk_makes_the_answer_partial(make_app, workspace, small_disk):
    (workspace / "mounted").mkdir()
    subprocess.run(["mount", "--bind", small_disk, workspace / "mounted"], check=True)
    try:
        (workspace / "mounted/x").write_text("one\n")
        mapped = Mapped(workspace / "mounted/x")
        app = make_app(workspace)
        session_id = begin(app)
        mapped.store(b"ONE")

        assert end(app, session_id) == ([("mounted/x", "modified")], "partial")
    finally:
        subprocess.run(["umount", "-l", workspace / "mounted"], check=True)
