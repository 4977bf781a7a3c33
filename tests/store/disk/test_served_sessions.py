"""Sessions that living processes serve, as people are shown them."""

import os
from contextlib import closing

import pytest

from kaiza.store.disk.kaiza_dir import KaizaDir
from kaiza.store.disk.process_liveness import PREFIX, ServedSessions, find_served, is_idle


@pytest.fixture
def kaiza_dir(tmp_path):
    root = os.open(tmp_path, os.O_RDONLY)
    with closing(KaizaDir(root)) as opened:
        yield opened
    os.close(root)


def test_a_session_is_served_until_its_process_closes(tmp_path, kaiza_dir):
    served = ServedSessions(kaiza_dir, lambda: True)
    ids = {served.note("one"), served.note("two"), served.note("one")}
    listed = find_served(str(tmp_path))
    served.close()

    assert len(ids) == 1
    assert {"one", "two"} <= listed
    assert find_served(str(tmp_path)) == frozenset()


def test_files_without_a_living_process_say_nothing(tmp_path, kaiza_dir):
    live = tmp_path / ".kaiza/live"
    live.mkdir(parents=True)
    (live / f"{PREFIX}1-00").write_text("forged\n")
    os.mkfifo(live / f"{PREFIX}2-00")
    (live / f"{PREFIX}3-00").symlink_to(live / f"{PREFIX}1-00")

    assert find_served(str(tmp_path)) == frozenset()


def test_a_link_in_place_of_the_directory_is_not_followed(tmp_path):
    (tmp_path / "elsewhere/live").mkdir(parents=True)
    (tmp_path / ".kaiza").symlink_to(tmp_path / "elsewhere")

    assert find_served(str(tmp_path)) is None


def test_only_what_is_known_is_called_idle():
    assert is_idle("s", "serves-1", frozenset())
    assert not is_idle("s", "serves-1", frozenset({"s"}))
    assert not is_idle("s", None, frozenset())
    assert not is_idle("s", "serves-1", None)
