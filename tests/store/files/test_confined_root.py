"""ConfinedRoot with both resolvers: what is opened, what is refused with which code, and that nothing blocks."""

import errno
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from kaiza.domain import errors
from kaiza.domain.paths.rel_path import ROOT, parse
from kaiza.store.files import openat2
from kaiza.store.files.confined_root import ConfinedRoot, format_mtime

RESOLVERS = ("openat2", "walk")


def accept(real):
    """A path check that accepts every path."""


@pytest.fixture(params=RESOLVERS)
def workspace(request, tmp_path):
    (tmp_path / "ws").mkdir()
    (tmp_path / "outside").write_text("secret")
    with ConfinedRoot(str(tmp_path / "ws"), resolver=request.param) as opened:
        yield opened


@pytest.fixture
def root(tmp_path, workspace):
    return tmp_path / "ws"


def code_of(act, path, judge=accept):
    with pytest.raises(errors.SystemError) as caught:
        act(parse(path), judge)
    return caught.value.error_code


def read_whole(workspace, path, judge=accept):
    with workspace.open_file(parse(path), judge) as opened:
        return b"".join(opened.chunks(3))


def names_in(directory):
    with os.scandir(directory) as entries:
        return sorted(entry.name for entry in entries)


def test_an_open_file_has_its_size_time_mode_and_link_count(workspace, root):
    (root / "a").mkdir()
    (root / "a/f.txt").write_bytes(b"0123456789")
    (root / "a/f.txt").chmod(0o640)

    with workspace.open_file(parse("a/f.txt"), accept) as opened:
        assert (str(opened.real), opened.size, opened.mode, opened.nlink) == ("a/f.txt", 10, 0o640, 1)
        assert opened.mtime_ns == (root / "a/f.txt").stat().st_mtime_ns
        assert opened.read(4) == b"0123"
        assert opened.pread(3, 7) == b"789"
        assert list(opened.chunks(4)) == [b"4567", b"89"]


def test_a_file_that_grew_since_it_was_opened_is_read_to_its_end(workspace, root):
    (root / "f").write_bytes(b"x")

    with workspace.open_file(parse("f"), accept) as opened:
        (root / "f").write_bytes(b"x" * 100_000)
        assert sum(map(len, opened.chunks())) == 100_000


def test_a_file_time_beyond_the_calendar_is_formatted_as_its_last_second():
    assert format_mtime(10**21) == "9999-12-31T23:59:59.000Z"


def test_a_link_inside_the_root_is_followed_and_its_real_path_reported(workspace, root):
    (root / "a/b").mkdir(parents=True)
    (root / "a/b/f").write_text("here")
    (root / "a/down").symlink_to("b")
    (root / "a/b/up").symlink_to("../../a/down/f")
    (root / "whole").symlink_to("a/..")
    seen = []

    assert read_whole(workspace, "a/down/up", seen.append) == b"here"
    assert {str(real) for real in seen} == {"a/b/f"}
    with workspace.open_directory(parse("whole"), accept) as opened:
        assert opened.real == ROOT


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("../outside", "OUTSIDE_WORKSPACE"),
        ("/etc/passwd", "OUTSIDE_WORKSPACE"),
        ("/dev/zero", "OUTSIDE_WORKSPACE"),
        ("/nowhere/at/all", "OUTSIDE_WORKSPACE"),
        ("../ws/f", "OUTSIDE_WORKSPACE"),
        ("loop", "INVALID_PATH"),
        ("x" * 256, "INVALID_PATH"),
    ],
)
def test_a_link_that_leads_outside_or_in_a_loop_is_refused(workspace, root, target, code):
    (root / "f").touch()
    (root / "loop").symlink_to(target)

    for act in (workspace.open_file, workspace.open_directory, workspace.stat):
        assert code_of(act, "loop") == code
        assert code_of(act, "loop/below") == code


def test_an_absolute_link_is_refused_even_where_it_points_inside(workspace, root):
    (root / "f").write_text("mine")
    (root / "l").symlink_to(root / "f")

    assert code_of(workspace.open_file, "l") == "OUTSIDE_WORKSPACE"


@pytest.mark.usefixtures("alarm")
def test_anything_but_a_regular_file_is_refused_without_blocking(workspace, root):
    os.mkfifo(root / "fifo")
    (root / "dir").mkdir()
    (root / "link").symlink_to("fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(root / "socket"))
        codes = {name: code_of(workspace.open_file, name) for name in ("fifo", "dir", "link", "socket", ".")}

    assert set(codes.values()) == {"FILE_READ_FAILED"}


def test_refusing_a_fifo_does_not_wake_its_writer(workspace, root):
    os.mkfifo(root / "fifo")
    script = "import os, sys; print('ready', flush=True); os.open(sys.argv[1], os.O_WRONLY)"
    with subprocess.Popen([sys.executable, "-c", script, root / "fifo"], stdout=subprocess.PIPE) as writer:
        writer.stdout.readline()
        for _ in range(100):
            assert code_of(workspace.open_file, "fifo") == "FILE_READ_FAILED"
        still_waiting = writer.poll() is None
        writer.kill()

    assert still_waiting


def test_the_real_path_is_judged_before_anything_is_returned(workspace, root):
    (root / ".env").write_text("secret")
    (root / "harmless").symlink_to(".env")
    (root / "d").symlink_to(".")

    def judge(real):
        if real == parse(".env"):
            raise errors.SystemError.tool_failure("POLICY_VIOLATION")

    for act in (workspace.open_file, workspace.open_directory, workspace.stat):
        assert code_of(act, "harmless", judge) == "POLICY_VIOLATION"
        assert code_of(act, "d/harmless", judge) == "POLICY_VIOLATION"


def test_a_file_deleted_during_resolution_is_not_taken_for_one_whose_name_ends_in_deleted(tmp_path, monkeypatch):
    (tmp_path / "x").write_text("was asked for")
    (tmp_path / "x (deleted)").write_text("another")
    (tmp_path / "link").symlink_to("x")
    real_openat2, judged = openat2.openat2, []

    def open_and_delete(*arguments):
        try:
            return real_openat2(*arguments)
        finally:
            if arguments[-1] == openat2.INSIDE:
                (tmp_path / "x").unlink(missing_ok=True)

    with ConfinedRoot(str(tmp_path), resolver="openat2") as workspace:
        monkeypatch.setattr(openat2, "openat2", open_and_delete)
        code = code_of(workspace.open_file, "link", judged.append)

    assert code == "FILE_NOT_FOUND"
    assert judged == []


def test_a_file_replaced_between_check_and_open_is_judged_again(workspace, root):
    (root / "a").write_text("first")
    (root / "other").write_text("second")
    judged = []

    def judge_and_replace(_real):
        judged.append((root / "a").stat().st_ino)
        if (root / "other").exists():
            (root / "other").rename(root / "a")

    with workspace.open_file(parse("a"), judge_and_replace) as opened:
        assert os.fstat(opened.fd).st_ino == judged[-1]


def test_the_root_is_the_opened_directory_whatever_its_path_leads_to_later(workspace, root, tmp_path):
    (root / "f").write_text("mine")
    (root / "l").symlink_to("f")
    root.rename(tmp_path / "moved")
    root.mkdir()
    (root / "f").write_text("not mine")

    assert read_whole(workspace, "f") == b"mine"
    assert read_whole(workspace, "l") == b"mine"


@pytest.mark.parametrize("name", ["missing", "file"])
def test_a_root_that_is_not_a_directory_is_refused(tmp_path, name):
    (tmp_path / "file").touch()

    with pytest.raises(errors.SystemError) as caught:
        ConfinedRoot(str(tmp_path / name))
    assert caught.value.error_code == "PATH_NOT_FOUND"


def test_a_path_of_hundreds_of_directories_is_resolved(workspace, root):
    fd = os.open(root, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("d", dir_fd=fd)
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    os.close(fd)

    assert read_whole(workspace, "d/" * 300 + "f") == b""


def test_no_resolution_leaks_descriptors(workspace, root):
    (root / "f").touch()
    (root / "l").symlink_to("f")
    (root / "out").symlink_to("/etc")
    os.mkfifo(root / "fifo")
    before = len(names_in("/proc/self/fd"))
    for name in ("f", "l", "out", "fifo", "none", "f/x", "out/x"):
        for act in (workspace.open_file, workspace.open_directory):
            try:
                act(parse(name), accept).close()
            except errors.SystemError:
                continue

    assert len(names_in("/proc/self/fd")) == before


@pytest.fixture
def shared_directory():
    """A directory that every user can enter."""
    with tempfile.TemporaryDirectory() as path:
        Path(path).chmod(0o755)
        yield Path(path)


def test_a_file_without_read_permission_is_not_reported_as_missing(shared_directory):
    script = """
import os, sys
from kaiza.domain import errors
from kaiza.domain.paths.rel_path import parse
from kaiza.store.files.confined_root import ConfinedRoot
os.chdir("/")
os.setgid(65534); os.setuid(65534)
with ConfinedRoot(sys.argv[1], resolver=sys.argv[2]) as workspace:
    for name in ("closed", "shut/f", "shut/none", "into", "back"):
        try:
            workspace.open_file(parse(name), lambda real: None).close()
            print("open")
        except errors.SystemError as error:
            print(error.error_code, (error.cause or {}).get("errno"))
"""
    if os.geteuid() != 0:
        pytest.skip("needs another user to be refused")
    for name in ("f", "closed", "shut/f"):
        (shared_directory / name).parent.mkdir(exist_ok=True)
        (shared_directory / name).write_text("x")
    (shared_directory / "into").symlink_to("shut/f")
    (shared_directory / "back").symlink_to("shut/../f")
    (shared_directory / "closed").chmod(0)
    (shared_directory / "shut").chmod(0)
    output = {
        resolver: subprocess.run(
            [sys.executable, "-c", script, shared_directory, resolver], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        for resolver in RESOLVERS
    }

    assert output["openat2"] == ["FILE_READ_FAILED EACCES"] * 5
    assert output["walk"] == output["openat2"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="seccomp is Linux's")
@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EPERM])
def test_the_walk_is_used_where_openat2_is_not_available(tmp_path, number):
    script = """
import ctypes, struct, sys
from kaiza.domain.paths.rel_path import parse
from kaiza.store.files.confined_root import ConfinedRoot
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, 437), (0x06, 0, 0, 0x00050000 | int(sys.argv[2])), (0x06, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(code)))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, program, 0, 0) == 0
with ConfinedRoot(sys.argv[1]) as workspace:
    print(workspace.resolver_name, workspace.open_file(parse("l"), lambda real: None).read(9))
"""
    (tmp_path / "f").write_text("here")
    (tmp_path / "l").symlink_to("f")
    completed = subprocess.run(
        [sys.executable, "-c", script, tmp_path, str(number)], capture_output=True, text=True, check=True
    )

    assert completed.stdout.split() == ["walk", "b'here'"]


def test_the_walk_takes_over_where_openat2_keeps_failing_with_eagain(tmp_path, monkeypatch):
    def give_up(*_):
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    (tmp_path / "f").write_bytes(b"here")
    (tmp_path / "a").mkdir()
    (tmp_path / "a/l").symlink_to("../f")
    (tmp_path / "a/out").symlink_to("../../f")
    with ConfinedRoot(str(tmp_path), resolver="openat2") as workspace:
        monkeypatch.setattr(openat2, "openat2", give_up)

        assert read_whole(workspace, "a/l") == b"here"
        assert code_of(workspace.open_file, "a/out") == "OUTSIDE_WORKSPACE"


def test_the_kernels_path_of_a_handle_is_taken_for_one_below_the_root_only_if_it_is(tmp_path):
    for name in ("ws", "ws-beside"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("1")
    (tmp_path / "ws/link").symlink_to("file")
    with ConfinedRoot(str(tmp_path / "ws"), resolver="openat2") as workspace:
        resolver = openat2.KernelResolver(workspace.fd)
        with resolver.resolve(parse("link")) as place:
            assert place.real == parse("file")
        for moved in ("file", "link"):  # a handle keeps its file, also when that is moved out of the root
            handle = os.open(tmp_path / "ws" / moved, os.O_PATH)
            os.rename(tmp_path / "ws/file", tmp_path / "ws-beside/file")
            with pytest.raises(BlockingIOError):
                resolver._real_path(handle)
            os.rename(tmp_path / "ws-beside/file", tmp_path / "ws/file")
            os.close(handle)
