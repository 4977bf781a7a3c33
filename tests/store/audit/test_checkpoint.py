import os
import stat

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kaiza.domain.audit.record import LogHead
from kaiza.store.audit.checkpoint import Checkpoint
from kaiza.store.disk import state_dir
from kaiza.store.disk.state_key import StateKey

FILE = "anchor"


def head(seq):
    return LogHead(seq, f"{seq:064x}", seq * 100)


@pytest.fixture
def checkpoint(tmp_path):
    checkpoint = Checkpoint(tmp_path / "state")
    yield checkpoint
    checkpoint.close()


def advance(checkpoint, seq, epoch=0):
    prepared = checkpoint.prepare(head(seq), epoch)
    if prepared is not None:
        checkpoint.write(prepared)


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=20))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_checkpoint_only_moves_forward(tmp_path_factory, seqs):
    checkpoint = Checkpoint(tmp_path_factory.mktemp("state"))
    for count, seq in enumerate(seqs, 1):
        advance(checkpoint, seq)

        assert checkpoint.read().head == head(max(seqs[:count]))
    checkpoint.close()


def test_the_state_directory_and_the_checkpoint_are_readable_by_their_owner_only(checkpoint, tmp_path):
    advance(checkpoint, 1)

    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "state" / FILE).stat().st_mode) == 0o600


@pytest.mark.parametrize("torn", ["newest", "oldest"])
def test_a_torn_slot_leaves_the_other_slot_valid(checkpoint, tmp_path, torn):
    advance(checkpoint, 1)
    advance(checkpoint, 2)
    offset = 512 if torn == "newest" else 0
    with (tmp_path / "state" / FILE).open("r+b") as file:
        file.seek(offset + 20)
        file.write(b"\xff\xff\xff")

    assert checkpoint.read().head == head(1 if torn == "newest" else 2)
    advance(checkpoint, 3)
    assert checkpoint.read().head == head(3)


@given(st.integers(0, 700), st.integers(0, 255))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_changed_byte_never_yields_a_head_that_was_not_written(tmp_path_factory, offset, new):
    directory = tmp_path_factory.mktemp("state")
    checkpoint = Checkpoint(directory)
    advance(checkpoint, 1)
    advance(checkpoint, 2)
    content = bytearray((directory / FILE).read_bytes())
    content[offset % len(content)] = new
    (directory / FILE).write_bytes(content)

    assert checkpoint.read().head in (head(1), head(2))
    checkpoint.close()


def test_a_new_epoch_may_have_a_smaller_number_and_outranks_the_old_one(checkpoint):
    advance(checkpoint, 9)
    checkpoint.reset(head(1))
    advance(checkpoint, 10, epoch=0)

    assert checkpoint.read().head == head(1)
    advance(checkpoint, 2, epoch=1)
    assert checkpoint.read().head == head(2)


def test_each_process_claims_its_own_checkpoint_file_and_the_next_one_reuses_it(tmp_path):
    first, second, third = (Checkpoint(tmp_path / "state") for _ in range(3))
    advance(first, 1)
    advance(second, 2)
    first.close()
    advance(third, 3)

    assert {path.name for path in (tmp_path / "state").iterdir()} == {FILE, "anchor-2", "key.json"}
    assert third.read().head == head(3)
    second.close()
    third.close()


def test_a_new_epoch_begun_by_another_process_outranks_later_writes_in_the_old_one(tmp_path):
    server, person = Checkpoint(tmp_path / "state"), Checkpoint(tmp_path / "state")
    advance(server, 500)
    person.reset(head(1))
    advance(server, 501)

    assert person.read().head == head(1)
    advance(server, 2, epoch=1)
    assert person.read().head == head(2)
    server.close()
    person.close()


def test_a_reused_checkpoint_file_continues_from_its_newest_slot(tmp_path):
    first, second = Checkpoint(tmp_path / "state"), Checkpoint(tmp_path / "state")
    for seq in (1, 2, 3):
        advance(first, seq)
    first.close()

    assert second.prepare(head(2), 0) is None
    advance(second, 4)
    assert second.read().head == head(4)
    with (tmp_path / "state" / FILE).open("r+b") as file:
        file.seek(512 + 20)
        file.write(b"\xff\xff\xff")
    assert second.read().head == head(3), "the other slot still holds the head before"
    second.close()


def test_a_new_epoch_is_fsynced_with_its_directory(tmp_path, monkeypatch):
    synced, fsync = [], os.fsync
    StateKey(tmp_path / "state").ensure_exists()
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(os.fstat(fd).st_ino), fsync(fd)))
    checkpoint = Checkpoint(tmp_path / "state")
    checkpoint.reset(head(1))
    checkpoint.close()

    assert synced == [(tmp_path / "state" / name).stat().st_ino for name in (FILE, "")]


def test_a_checkpoint_that_cannot_be_read_when_claimed_is_not_overwritten(tmp_path, monkeypatch):
    first, second = Checkpoint(tmp_path / "state"), Checkpoint(tmp_path / "state")
    for seq in (8, 9):
        advance(first, seq)
    first.close()
    open_before = len(os.listdir("/proc/self/fd"))

    def failing(*_):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "pread", failing)
        with pytest.raises(OSError, match="Input/output"):
            second.prepare(head(10), 0)
    assert len(os.listdir("/proc/self/fd")) == open_before
    advance(second, 11)

    assert second.read().head == head(11)
    second.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can play two accounts")
def test_files_created_by_root_belong_to_the_owner_of_the_state_directory(tmp_path):
    (tmp_path / "state").mkdir(mode=0o700)
    os.chown(tmp_path / "state", 65534, 65534)
    checkpoint = Checkpoint(tmp_path / "state")
    advance(checkpoint, 1)
    checkpoint.close()

    assert (tmp_path / "state" / FILE).stat().st_uid == 65534


def test_a_checkpoint_of_another_account_is_skipped(tmp_path, monkeypatch):
    first, second, open_file = Checkpoint(tmp_path / "state"), Checkpoint(tmp_path / "state"), os.open
    advance(first, 1)
    first.close()

    def refuse_first(path, flags, *mode, **options):
        if str(path).endswith(f"/{FILE}") and flags & os.O_RDWR:
            raise PermissionError(13, "Permission denied")
        return open_file(path, flags, *mode, **options)

    with monkeypatch.context() as refused:
        refused.setattr(os, "open", refuse_first)
        assert second.prepare(head(2), 0) is not None
    assert (tmp_path / "state" / "anchor-2").exists()
    second.close()


def test_the_state_directory_is_named_after_the_real_path(tmp_path, monkeypatch):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    path = state_dir.path_of(str(tmp_path / "link"))

    assert path == state_dir.path_of(str(tmp_path / "real"))
    assert path.parent == tmp_path / "xdg" / "kaiza"
    assert len(path.name) == 16


@pytest.mark.parametrize("configured", [None, "", "relative/path"])
def test_the_state_directory_is_in_the_home_without_an_absolute_xdg_state_home(tmp_path, monkeypatch, configured):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME")
    if configured is not None:
        monkeypatch.setenv("XDG_STATE_HOME", configured)
    path = state_dir.path_of(os.fspath(tmp_path), create=True)

    assert path.parent == tmp_path / ".local" / "state" / "kaiza"
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
