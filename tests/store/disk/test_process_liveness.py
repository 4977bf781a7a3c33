"""Whether a process that locked a file is alive."""

import fcntl
import os

from kaiza.store.disk.process_liveness import is_locked


def test_a_file_is_locked_as_long_as_its_holder_keeps_it_open(tmp_path):
    path = tmp_path / "journal"
    holder = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(holder, fcntl.LOCK_EX)
    held = is_locked(str(path))
    os.close(holder)

    assert held
    assert not is_locked(str(path))


def test_looking_at_a_lock_leaves_it_free(tmp_path):
    path = tmp_path / "journal"
    path.touch()
    assert not is_locked(str(path))
    writer = os.open(path, os.O_RDWR)
    fcntl.flock(writer, fcntl.LOCK_EX | fcntl.LOCK_NB)

    assert is_locked(str(path))
    os.close(writer)


def test_nothing_but_a_file_of_its_own_is_locked(tmp_path):
    target = tmp_path / "target"
    holder = os.open(target, os.O_RDWR | os.O_CREAT)
    fcntl.flock(holder, fcntl.LOCK_EX)
    (tmp_path / "link").symlink_to(target)
    os.mkfifo(tmp_path / "pipe")

    assert not is_locked(str(tmp_path / "link"))
    assert not is_locked(str(tmp_path / "pipe"))
    assert not is_locked(str(tmp_path / "missing"))
    os.close(holder)
