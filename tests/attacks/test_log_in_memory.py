"""On tmpfs a store through a mapping leaves the times of a file as they are: each process reads the whole log."""

import json
import mmap
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from agents import plan
from attacks.test_whole_verification import serve, write_file
from logs import error_code_of
from scenes import make_ready

from kaiza.cli import dispatch
from kaiza.store.audit.verification import background
from kaiza.store.disk import state_dir
from kaiza.store.disk.byte_io import keeps_times

MEMORY = "/dev/shm"


def is_in_memory(path):
    found = subprocess.run(["stat", "-f", "-c", "%T", path], capture_output=True, text=True, check=False)
    return found.stdout.strip() == "tmpfs"


pytestmark = pytest.mark.skipif(not is_in_memory(MEMORY), reason=f"{MEMORY} is not a tmpfs")


@pytest.fixture
def root():
    """A workspace on tmpfs with some records."""
    directory = Path(tempfile.mkdtemp(dir=MEMORY))
    yield make_ready(directory / "project")
    shutil.rmtree(directory)


def edit_through_a_mapping(log):
    """Change one letter of an old record; the file's status stays the same."""
    before = log.stat()
    with log.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        at = mapped.find(b"list_directory")
        mapped[at : at + 14] = b"list_darectory"
    after = log.stat()
    assert (after.st_mtime_ns, after.st_ctime_ns, after.st_size) == (
        before.st_mtime_ns, before.st_ctime_ns, before.st_size,
    )  # fmt: skip


@pytest.mark.parametrize("foreground_bytes", [1 << 20, -1])
def test_a_record_edited_through_a_mapping_is_found_before_the_first_change(root, monkeypatch, foreground_bytes):
    plan_hash = plan(root)
    for _ in range(2):  # the second process finds a log that the first one verified
        serve(root, lambda app: error_code_of(app, "list_directory", path="."))
    monkeypatch.setattr(background, "MAX_FOREGROUND_BYTES", foreground_bytes)
    edit_through_a_mapping(root / "audit/audit-log.jsonl")
    _, refused = serve(root, write_file(plan_hash))

    assert refused["error_code"] == "SELF_AUDIT_FAILURE"
    assert dispatch.main(["audit", "verify", "--workspace", str(root)]) == 1


def test_a_saved_stamp_of_a_log_in_memory_is_not_trusted(root):
    plan_hash = plan(root)
    for _ in range(2):
        serve(root, lambda app: error_code_of(app, "list_directory", path="."))
    log = root / "audit/audit-log.jsonl"
    edit_through_a_mapping(log)
    stamp = background.LogStamp.from_stat(log.stat())
    (state_dir.path_of(os.path.realpath(root)) / "whole.json").write_text(json.dumps({"format": 1, **stamp._asdict()}))
    _, refused = serve(root, write_file(plan_hash))

    assert refused["error_code"] == "SELF_AUDIT_FAILURE"


def test_other_file_systems_keep_their_times(tmp_path):
    with (tmp_path / "file").open("w") as here, tempfile.TemporaryFile(dir=MEMORY) as there:
        assert keeps_times(here.fileno()) != is_in_memory(tmp_path)
        assert not keeps_times(there.fileno())
