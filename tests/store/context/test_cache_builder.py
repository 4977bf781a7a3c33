"""Building context caches beside readers, other builds, and what killed builds left."""

import errno
import fcntl
import os
import threading
from contextlib import closing
from pathlib import Path

import pytest
from context_caches import MINIMAL, write_cache
from scenes import bind

from kaiza.domain import errors
from kaiza.store.context.cache_builder import CacheBuilder, remove_cache
from kaiza.store.context.cache_files import ContextCaches
from kaiza.store.context.source_scan import SourceDocument
from kaiza.store.disk import atomic_rename
from kaiza.store.disk.kaiza_dir import KaizaDir

LEFT = ".new-0123456789abcdef"


@pytest.fixture
def root_fd(workspace):
    descriptor = os.open(bind(workspace), os.O_RDONLY | os.O_DIRECTORY)
    yield descriptor
    os.close(descriptor)


@pytest.fixture
def kaiza_dir(root_fd):
    with closing(KaizaDir(root_fd)) as directory:
        yield directory


def build(kaiza_dir, text="hello\n", *, replace=True):
    with closing(CacheBuilder(kaiza_dir)) as builder:
        builder.add(SourceDocument("a.md", "docs/a.md", text.encode()))
        builder.seal("2026-11-18T09:00:00.000Z")
        builder.publish("docs", replace=replace)


def names(workspace):
    return sorted(path.name for path in Path(workspace, ".kaiza/context").iterdir())


def test_a_reader_always_finds_a_cache_that_is_being_replaced(kaiza_dir, root_fd):
    build(kaiza_dir)
    caches, missing, is_over = ContextCaches(root_fd), [], threading.Event()

    def look():
        while not is_over.is_set():
            try:
                caches.open_cache("docs").close()
            except errors.SystemError as error:
                missing.append(error.error_code)

    reader = threading.Thread(target=look)
    reader.start()
    try:
        for number in range(300):
            build(kaiza_dir, f"{number}\n")
    finally:
        is_over.set()
        reader.join()

    assert missing == []


def test_a_cache_is_replaced_where_directories_cannot_be_exchanged(kaiza_dir, root_fd, workspace, monkeypatch):
    monkeypatch.setattr(atomic_rename, "exchange", atomic_rename.exchange_portably)
    build(kaiza_dir)
    build(kaiza_dir, "other\n")

    with ContextCaches(root_fd).open_cache("docs") as cache:
        assert [text for _, text in cache.read_documents(cache.read_manifest())] == ["other\n"]
    assert names(workspace) == ["docs"]


def test_a_replacement_that_fails_halfway_leaves_the_old_cache(kaiza_dir, root_fd, workspace, monkeypatch):
    def fail_to_take(old, new, **places):
        """Fail where the new cache takes its name, once."""
        renamed.append(new)
        if renamed.count("docs") == 1 and new == "docs":
            raise OSError(errno.EIO, "a fault of the disk")
        rename(old, new, **places)

    build(kaiza_dir)
    renamed, rename = [], os.rename
    monkeypatch.setattr(atomic_rename, "exchange", atomic_rename.exchange_portably)
    monkeypatch.setattr(os, "rename", fail_to_take)
    with pytest.raises(OSError, match="a fault of the disk"):
        build(kaiza_dir, "other\n")

    with ContextCaches(root_fd).open_cache("docs") as cache:
        assert [text for _, text in cache.read_documents(cache.read_manifest())] == ["hello\n"]
    assert names(workspace) == ["docs"]


@pytest.mark.parametrize(
    "end", [lambda kaiza_dir: build(kaiza_dir, "new\n"), lambda kaiza_dir: remove_cache(kaiza_dir, "docs")]
)
def test_a_reader_reads_its_cache_to_the_end_although_it_is_replaced_or_removed(kaiza_dir, root_fd, workspace, end):
    build(kaiza_dir, "old\n")
    with ContextCaches(root_fd).open_cache("docs") as cache:
        manifest = cache.read_manifest()
        end(kaiza_dir)
        texts = [text for _, text in cache.read_documents(manifest)]
    build(kaiza_dir, "newest\n")

    assert texts == ["old\n"]
    assert names(workspace) == ["docs"]


def test_the_next_build_removes_what_a_killed_one_left(kaiza_dir, workspace):
    write_cache(workspace, LEFT, MINIMAL)
    (workspace / ".kaiza/context/.new-0000000000000000").mkdir()
    build(kaiza_dir)

    assert names(workspace) == ["docs"]


def test_the_cache_of_another_build_and_other_directories_are_not_removed(kaiza_dir, workspace):
    held = os.open(write_cache(workspace, LEFT, MINIMAL), os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(held, fcntl.LOCK_EX)
    (write_cache(workspace, ".new-1111111111111111", MINIMAL) / "notes.txt").touch()
    (workspace / ".kaiza/context/.notes").mkdir()
    try:
        build(kaiza_dir)
    finally:
        os.close(held)

    assert names(workspace) == [LEFT, ".new-1111111111111111", ".notes", "docs"]


def test_two_builds_at_once_do_not_disturb_each_other(kaiza_dir, workspace):
    with closing(CacheBuilder(kaiza_dir)) as first:
        first.add(SourceDocument("a.md", "docs/a.md", b"first\n"))
        build(kaiza_dir)
        first.add(SourceDocument("b.md", "docs/b.md", b"second\n"))
        first.seal("2026-11-18T09:00:00.000Z")
        first.publish("both", replace=False)
        remove_cache(kaiza_dir, "docs")

    assert names(workspace) == ["both"]


def test_an_aborted_build_leaves_no_files(kaiza_dir, workspace):
    with closing(CacheBuilder(kaiza_dir)) as builder:
        builder.add(SourceDocument("a.md", "docs/a.md", b"first\n"))

    assert names(workspace) == []
