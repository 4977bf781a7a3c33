import os
import stat

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from logs import python

from kaiza.domain import errors
from kaiza.domain.audit.record import LogHead
from kaiza.store.audit.checkpoint import Checkpoint
from kaiza.store.disk import state_dir
from kaiza.store.disk.state_key import StateKey

ADVANCE = """
import sys
from kaiza.domain.audit.record import LogHead
from kaiza.store.audit.checkpoint import Checkpoint
from pathlib import Path
anchor = Checkpoint(Path(sys.argv[1]))
for seq in range(int(sys.argv[2]), 400, 4):
    step = anchor.prepare(LogHead(seq, "%064x" % seq, seq * 100), 0)
    if step is not None:
        anchor.write(step)
    known = anchor.read()
    assert known.head.seq >= seq, known
"""


def head(seq):
    return LogHead(seq, f"{seq:064x}", seq * 100)


@pytest.fixture
def anchor(tmp_path):
    made = Checkpoint(tmp_path / "state")
    yield made
    made.close()


def advance(anchor, seq, era=0):
    step = anchor.prepare(head(seq), era)
    if step is not None:
        anchor.write(step)


def test_without_an_anchor_nothing_is_known(anchor, tmp_path):
    assert anchor.read() is None
    assert not (tmp_path / "state").exists()


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=20))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_it_only_ever_goes_forward(tmp_path_factory, seqs):
    anchor = Checkpoint(tmp_path_factory.mktemp("state"))
    for count, seq in enumerate(seqs, 1):
        advance(anchor, seq)

        assert anchor.read().head == head(max(seqs[:count]))
    anchor.close()


def test_it_is_nobody_elses_business(anchor, tmp_path):
    advance(anchor, 1)

    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "state" / "anchor").stat().st_mode) == 0o600


@pytest.mark.parametrize("torn", ["newest", "oldest"])
def test_a_torn_slot_leaves_the_other_one(anchor, tmp_path, torn):
    advance(anchor, 1)
    advance(anchor, 2)
    place = 512 if torn == "newest" else 0
    with (tmp_path / "state" / "anchor").open("r+b") as file:
        file.seek(place + 20)
        file.write(b"\xff\xff\xff")

    assert anchor.read().head == head(1 if torn == "newest" else 2)
    advance(anchor, 3)
    assert anchor.read().head == head(3)


@given(st.integers(0, 700), st.integers(0, 255))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_changed_byte_makes_it_name_what_never_was(tmp_path_factory, place, new):
    where = tmp_path_factory.mktemp("state")
    anchor = Checkpoint(where)
    advance(anchor, 1)
    advance(anchor, 2)
    told = bytearray((where / "anchor").read_bytes())
    told[place % len(told)] = new
    (where / "anchor").write_bytes(told)

    assert anchor.read().head in (head(1), head(2))
    anchor.close()


@pytest.mark.parametrize("content", [b"", b"\0" * 1024, b"garbage"])
def test_an_anchor_that_says_nothing_is_none_and_begins_again(anchor, tmp_path, content):
    advance(anchor, 5)
    (tmp_path / "state" / "anchor").write_bytes(content)

    assert anchor.read() is None
    advance(anchor, 6)
    assert anchor.read().head == head(6)


def test_a_deleted_anchor_is_made_again(anchor, tmp_path):
    advance(anchor, 5)
    (tmp_path / "state" / "anchor").unlink()
    for seq in range(6, 30):
        advance(anchor, seq)

    assert anchor.read().head == head(29)


def test_a_new_era_may_go_back_and_the_old_one_has_no_say(anchor):
    advance(anchor, 9)
    anchor.reset(head(1))
    advance(anchor, 10, era=0)

    assert anchor.read().head == head(1)
    advance(anchor, 2, era=1)
    assert anchor.read().head == head(2)


def test_processes_together_only_go_forward(tmp_path):
    running = [python(ADVANCE, tmp_path / "state", first) for first in range(1, 5)]

    assert [process.communicate(timeout=30)[0] for process in running] == [""] * 4
    assert [process.returncode for process in running] == [0] * 4
    assert Checkpoint(tmp_path / "state").read().head == head(399)


def test_each_process_has_one_of_its_own_and_leaves_it_to_the_next(tmp_path):
    first, second, third = (Checkpoint(tmp_path / "state") for _ in range(3))
    advance(first, 1)
    advance(second, 2)
    first.close()
    advance(third, 3)

    assert {one.name for one in (tmp_path / "state").iterdir()} == {"anchor", "anchor-2", "key.json"}
    assert third.read().head == head(3)
    second.close()
    third.close()


def test_a_new_era_that_another_process_begins_has_the_last_word(tmp_path):
    server, person = Checkpoint(tmp_path / "state"), Checkpoint(tmp_path / "state")
    advance(server, 500)
    person.reset(head(1))
    advance(server, 501)

    assert person.read().head == head(1)
    advance(server, 2, era=1)
    assert person.read().head == head(2)
    server.close()
    person.close()


def test_whoever_takes_one_over_goes_on_where_it_stood(tmp_path):
    first, second = Checkpoint(tmp_path / "state"), Checkpoint(tmp_path / "state")
    for seq in (1, 2, 3):
        advance(first, seq)
    first.close()

    assert second.prepare(head(2), 0) is None
    advance(second, 4)
    assert second.read().head == head(4)
    with (tmp_path / "state" / "anchor").open("r+b") as file:
        file.seek(512 + 20)
        file.write(b"\xff\xff\xff")
    assert second.read().head == head(3), "the other slot still holds the head before"
    second.close()


def test_the_next_era_comes_after_the_newest_of_all(tmp_path):
    server, one, other = (Checkpoint(tmp_path / "state") for _ in range(3))
    advance(server, 500)
    one.reset(head(1))
    server.close()
    other.reset(head(2))

    assert (other.read().epoch, other.read().head) == (2, head(2))
    one.close()
    other.close()


def test_a_new_era_is_durable_with_its_name(tmp_path, monkeypatch):
    synced, really = [], os.fsync
    StateKey(tmp_path / "state").ensure_exists()
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(os.fstat(fd).st_ino), really(fd)))
    anchor = Checkpoint(tmp_path / "state")
    anchor.reset(head(1))
    anchor.close()

    assert synced == [(tmp_path / "state" / name).stat().st_ino for name in ("anchor", "")]


def test_a_closed_one_writes_nothing_any_more(anchor, tmp_path):
    advance(anchor, 1)
    step = anchor.prepare(head(2), 0)
    anchor.close()
    with (tmp_path / "other").open("w+b") as other:
        with pytest.raises(OSError, match="Bad file descriptor"):
            anchor.write(step)
        with pytest.raises(OSError, match="shutdown"):
            anchor.prepare(head(3), 0)

        assert other.read() == b""


def test_one_that_cannot_be_read_when_it_is_claimed_is_not_begun_anew(tmp_path, monkeypatch):
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


def test_a_lock_that_the_system_refuses_leaves_nothing_open(anchor, monkeypatch):
    def refusing(*_):
        raise OSError(37, "No locks available")

    open_before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr("portalocker.portalocker.LOCKER", refusing)
    for _ in range(5):
        with pytest.raises(errors.SystemError):
            anchor.prepare(head(1), 0)

    assert len(os.listdir("/proc/self/fd")) == open_before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can play two accounts")
def test_what_root_makes_is_the_users(tmp_path):
    (tmp_path / "state").mkdir(mode=0o700)
    os.chown(tmp_path / "state", 65534, 65534)
    anchor = Checkpoint(tmp_path / "state")
    advance(anchor, 1)
    anchor.close()

    assert (tmp_path / "state" / "anchor").stat().st_uid == 65534


def test_one_that_another_account_has_is_passed_over(tmp_path, monkeypatch):
    first, second, really = Checkpoint(tmp_path / "state"), Checkpoint(tmp_path / "state"), os.open
    advance(first, 1)
    first.close()

    def refusing(path, *how, **more):
        if str(path).endswith("/anchor"):
            raise PermissionError(13, "Permission denied")
        return really(path, *how, **more)

    with monkeypatch.context() as refused:
        refused.setattr(os, "open", refusing)
        assert second.prepare(head(2), 0) is not None
    assert (tmp_path / "state" / "anchor-2").exists()
    second.close()


def test_the_state_directory_is_named_by_the_real_path(tmp_path, monkeypatch):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    place = state_dir.path_of(str(tmp_path / "link"))

    assert place == state_dir.path_of(str(tmp_path / "real"))
    assert place.parent == tmp_path / "xdg" / "kaiza"
    assert len(place.name) == 16


@pytest.mark.parametrize("told", [None, "", "relative/path"])
def test_without_an_absolute_xdg_directory_it_is_in_the_home(tmp_path, monkeypatch, told):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME")
    if told is not None:
        monkeypatch.setenv("XDG_STATE_HOME", told)
    place = state_dir.path_of(os.fspath(tmp_path), create=True)

    assert place.parent == tmp_path / ".local" / "state" / "kaiza"
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
