"""A hostile tree, and a manifest that came from elsewhere: nothing is opened, waited for or believed."""

import ctypes
import json
import os
import shutil
import socket

import pytest
from outside_changes import begin, end

from kaiza.app import App
from kaiza.store.audit.verification.accept import accept_damage
from kaiza.store.disk import state_dir
from kaiza.store.files.confined_root import ConfinedRoot
from kaiza.store.manifest import database, hashing
from kaiza.store.manifest.tree import walk_tree


def make_hostile(root):
    """FIFOs, a socket, links that lead out and in circles, a deep tree, and names that break lines and terminals."""
    os.mkfifo(root / "pipe")
    os.mkfifo(root / ".gitignore")
    (root / "loop").symlink_to("loop")
    (root / "up").symlink_to("..")
    (root / "etc").symlink_to("/etc")
    (root / "zero").symlink_to("/dev/zero")
    for name in ("a\nb", "a\x1b[2Jb", "\u202eexe.txt", "-rf", " ", "'; DROP TABLE entries; --"):
        (root / name).write_text("1\n")
    os.close(os.open(os.fsencode(root) + b"/\xff\xfe", os.O_CREAT | os.O_WRONLY))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"/proc/self/fd/{os.open(root, os.O_RDONLY)}/sock")
    deep = os.open(root, os.O_RDONLY)
    for _ in range(60):
        os.mkdir("d" * 100, dir_fd=deep)
        inner = os.open("d" * 100, os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep = inner
    os.close(os.open("bottom", os.O_CREAT | os.O_WRONLY, dir_fd=deep))
    os.close(deep)


def test_a_hostile_tree_is_walked_without_opening_anything_but_files(make_app, workspace, monkeypatch):
    make_hostile(workspace)
    opened, real_open = [], os.open

    def note(path, flags, *more, **options):
        if not flags & getattr(os, "O_PATH", 0):
            descriptor = real_open(path, flags, *more, **options)
            opened.append(os.fstat(descriptor).st_mode & 0o170000)
            return descriptor
        return real_open(path, flags, *more, **options)

    app = make_app(workspace)
    monkeypatch.setattr(os, "open", note)
    session_id = begin(app)
    (workspace / "new\r\n").write_text("1\n")
    os.rename(os.fsencode(workspace) + b"/\xff\xfe", os.fsencode(workspace) + b"/\xfd")
    listed, _ = end(app, session_id)

    assert set(opened) <= {0o100000, 0o040000}
    assert ("new\r\n", "created") in listed
    assert ("\\xfd", "renamed") in listed or {("\\xfd", "created"), ("\\xff\\xfe", "deleted")} <= set(listed)


NEARLY_THE_LOG = ["audit-log-evil.sh", "audit-log.jsonl.py", "audit-log.torn-1.sh", "audit-log", "audit-log.torn-40-2",
                  "audit-log.damaged-1.jsonl", "audit-log.torn-0"]  # fmt: skip


@pytest.mark.parametrize("name", NEARLY_THE_LOG)
def test_a_file_named_almost_like_the_log_or_like_what_is_set_aside_is_listed(make_app, workspace, name):
    app = make_app(workspace)
    session_id = begin(app)
    (workspace / "audit" / name).write_text("1\n")

    assert end(app, session_id)[0] == [(f"audit/{name}", "created")]


def tear_and_repair(app, workspace):
    """Leave half a record at the end of the log, which the next call sets aside; the file that then holds it."""
    with (workspace / "audit/audit-log.jsonl").open("ab") as log:
        log.write(b'{"half":')
    app.call("list_directory", {"path": "."})
    (torn,) = (workspace / "audit").glob("*.torn-*")
    return torn


@pytest.mark.parametrize("edited", [False, True])
def test_what_kaiza_set_aside_is_listed_only_after_it_was_changed(make_app, workspace, edited):
    app = make_app(workspace)
    session_id = begin(app)
    torn = tear_and_repair(app, workspace)
    if edited:
        torn.write_bytes(b"#!/bin/sh\n")

    assert end(app, session_id)[0] == ([(f"audit/{torn.name}", "modified")] if edited else [])


def test_a_log_that_a_person_archived_is_not_listed_and_its_removal_is(make_app, workspace):
    app = make_app(workspace)
    begin(app)
    app.close()
    log = workspace / "audit/audit-log.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"begin_session"', b'"begin_sessiom"'))
    accept_damage(os.path.realpath(workspace), reason="edited", person="Ada")
    app = make_app(workspace)
    accepted = end(app, begin(app))[0]
    session_id = begin(app)
    (workspace / "audit/audit-log.damaged-1.jsonl").unlink()

    assert accepted == []
    assert end(app, session_id)[0] == [("audit/audit-log.damaged-1.jsonl", "deleted")]


def test_what_lies_too_deep_is_said_to_be_uncovered(make_app, workspace):
    make_hostile(workspace)
    app = make_app(workspace)

    assert end(app, begin(app)) == ([], "partial")


def test_a_file_swapped_for_a_fifo_or_a_device_while_it_is_read_is_not_opened(make_app, workspace, monkeypatch):
    for name in "abc":
        (workspace / name).write_text("1\n")
    read, swapped = hashing.ContentReader.read, []

    def swap_and_read(self, directory, name):
        path = workspace / os.fsdecode(name)
        if name in (b"a", b"b") and path.is_file():
            path.unlink()
            os.mkfifo(path) if name == b"a" else path.symlink_to("/dev/zero")
            swapped.append(name)
        return read(self, directory, name)

    monkeypatch.setattr(hashing.ContentReader, "read", swap_and_read)
    app = make_app(workspace)
    listed = end(app, begin(app))

    assert set(swapped) == {b"a", b"b"}
    assert listed == ([("a", "kind"), ("b", "kind")], "whole")


def test_a_directory_swapped_for_a_link_during_the_walk_is_not_listed_under_its_old_path(workspace):
    for name in ("a", "b"):
        (workspace / name).mkdir()
        (workspace / name / name).write_text("1\n")
    with ConfinedRoot(str(workspace)) as root:
        chunks = walk_tree(root)
        next(chunks)
        shutil.rmtree(workspace / "a")
        (workspace / "a").symlink_to("b")
        listed = {chunk.directory: (chunk.is_listed, set(chunk.entries)) for chunk in chunks if chunk}

    assert listed[b"a"] == (False, set())
    assert listed[b"b"] == (True, {b"b"})


def test_the_hash_of_a_secret_is_kept_where_only_its_owner_reads_and_told_to_nobody(make_app, workspace):
    for name in (".env", "id_rsa", "plain"):
        (workspace / name).write_text("1\n")
    app = make_app(workspace)
    session_id = begin(app)
    for name in (".env", "plain"):
        (workspace / name).write_text("22\n")
    listed = end(app, session_id)
    state_path = state_dir.path_of(str(workspace))
    (saved,) = [json.loads(path.read_bytes()) for path in state_path.glob("outside/*")]

    assert listed == ([(".env", "modified"), ("plain", "modified")], "whole")
    assert ["hash" in each["after"] for each in saved["ungoverned"]] == [False, True]
    assert (state_path / database.NAME).stat().st_mode & 0o77 == 0


def drop_privileges():
    """Let permissions count in this process even for root: without the capabilities to override them."""
    libc = ctypes.CDLL(None, use_errno=True)
    header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, sets) == 0
    sets[0] &= ~0b110  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH
    assert libc.capset(header, sets) == 0


def compare_unreadable(root):
    """End one session while a directory cannot be read, and another that began meanwhile after it can be again."""
    drop_privileges()
    app = App([os.path.realpath(root)])
    first = begin(app)
    (root / "closed").chmod(0)
    (root / "unreadable").chmod(0)
    (root / "other").write_text("2")
    second = begin(app)
    closed = end(app, first)
    (root / "closed").chmod(0o755)
    (root / "unreadable").chmod(0o644)
    found = {"closed": closed, "opened": end(app, second)}
    app.close()
    return found


def test_a_directory_that_cannot_be_read_is_said_and_its_entries_are_not_called_deleted(workspace, tmp_path):
    (workspace / "closed").mkdir()
    for name in ("closed/a", "unreadable", "other"):
        (workspace / name).write_text("1\n")
    child = os.fork()
    if child == 0:
        try:
            (tmp_path / "found.json").write_text(json.dumps(compare_unreadable(workspace)))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    found = json.loads((tmp_path / "found.json").read_text())

    assert found["closed"] == [[["closed", "mode"], ["other", "modified"], ["unreadable", "mode"]], "partial"]
    assert found["opened"] == [[["closed", "mode"], ["unreadable", "mode"]], "partial"]
