import os
import stat

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from logs import python

from kaiza.domain.record import Head
from kaiza.store import state
from kaiza.store.anchor import Anchor

ADVANCE = """
import sys
from kaiza.domain.record import Head
from kaiza.store.anchor import Anchor
from pathlib import Path
anchor = Anchor(Path(sys.argv[1]))
for seq in range(int(sys.argv[2]), 400, 4):
    step = anchor.step(Head(seq, "%064x" % seq, seq * 100), 0)
    if step is not None:
        anchor.take(step)
    known = anchor.read()
    assert known.head.seq >= seq, known
"""


def head(seq):
    return Head(seq, f"{seq:064x}", seq * 100)


@pytest.fixture
def anchor(tmp_path):
    made = Anchor(tmp_path / "state")
    yield made
    made.close()


def advance(anchor, seq, era=0):
    step = anchor.step(head(seq), era)
    if step is not None:
        anchor.take(step)


def test_without_an_anchor_nothing_is_known(anchor, tmp_path):
    assert anchor.read() is None
    assert not (tmp_path / "state").exists()


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=20))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_it_only_ever_goes_forward(tmp_path_factory, seqs):
    anchor = Anchor(tmp_path_factory.mktemp("state"))
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
    anchor = Anchor(where)
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
    anchor.begin_anew(head(1))
    advance(anchor, 10, era=0)

    assert anchor.read().head == head(1)
    advance(anchor, 2, era=1)
    assert anchor.read().head == head(2)


def test_processes_together_only_go_forward(tmp_path):
    running = [python(ADVANCE, tmp_path / "state", first) for first in range(1, 5)]

    assert [process.communicate(timeout=30)[0] for process in running] == [""] * 4
    assert [process.returncode for process in running] == [0] * 4
    assert Anchor(tmp_path / "state").read().head == head(399)


def test_each_process_has_one_of_its_own_and_leaves_it_to_the_next(tmp_path):
    first, second, third = (Anchor(tmp_path / "state") for _ in range(3))
    advance(first, 1)
    advance(second, 2)
    first.close()
    advance(third, 3)

    assert {one.name for one in (tmp_path / "state").iterdir()} == {"anchor", "anchor-2"}
    assert third.read().head == head(3)
    second.close()
    third.close()


def test_a_new_era_that_another_process_begins_has_the_last_word(tmp_path):
    server, person = Anchor(tmp_path / "state"), Anchor(tmp_path / "state")
    advance(server, 500)
    person.begin_anew(head(1))
    advance(server, 501)

    assert person.read().head == head(1)
    advance(server, 2, era=1)
    assert person.read().head == head(2)
    server.close()
    person.close()


def test_the_state_directory_is_named_by_the_real_path(tmp_path, monkeypatch):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    place = state.directory(str(tmp_path / "link"))

    assert place == state.directory(str(tmp_path / "real"))
    assert place.parent == tmp_path / "xdg" / "kaiza"
    assert len(place.name) == 16


@pytest.mark.parametrize("told", [None, "", "relative/path"])
def test_without_an_absolute_xdg_directory_it_is_in_the_home(tmp_path, monkeypatch, told):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME")
    if told is not None:
        monkeypatch.setenv("XDG_STATE_HOME", told)
    place = state.directory(os.fspath(tmp_path), create=True)

    assert place.parent == tmp_path / ".local" / "state" / "kaiza"
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
