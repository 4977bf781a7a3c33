import os

import pytest

from kaiza.store import statx


@pytest.fixture(params=["statx", "refused", "lstat"])
def at(request, monkeypatch):
    if request.param == "lstat":
        monkeypatch.setattr(statx, "_STATX", None)
    elif request.param == "refused":
        monkeypatch.setattr(statx, "_STATX", lambda *_: -1)
    elif statx._STATX is None:
        pytest.skip("no statx here")
    return statx.Statx().at


def test_it_says_what_lstat_says(at, tmp_path):
    (tmp_path / "a file\udcff").write_bytes(b"x" * 70_000)
    (tmp_path / "readable").write_bytes(b"")
    (tmp_path / "readable").chmod(0o444)
    (tmp_path / "link").symlink_to("readable")
    os.mkfifo(tmp_path / "pipe")

    for path in (*tmp_path.iterdir(), tmp_path, "/", "/dev/null", "/proc/self"):
        there = os.lstat(path)
        said = (there.st_mode, there.st_ino, there.st_size, os.major(there.st_dev), os.minor(there.st_dev))
        assert at(os.fsencode(path)) == said


def test_where_nothing_stands_it_raises(at, tmp_path):
    (tmp_path / "file").touch()

    with pytest.raises(FileNotFoundError):
        at(os.fsencode(tmp_path / "gone"))
    with pytest.raises(NotADirectoryError):
        at(os.fsencode(tmp_path / "file" / "below"))
