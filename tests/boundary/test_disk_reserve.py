"""A full disk: agents are refused while there is still room for a person's undo."""

import contextlib
import json
import os
import subprocess
import sys

import pytest
from agents import WIDE, plan, sha
from boundary.test_full_disk import fill
from scenes import make_ready

from kaiza.app import App
from kaiza.store.disk import disk_reserve

MIB = 1 << 20


@pytest.fixture
def disk(small_disk):
    subprocess.run(["mount", "-o", "remount,size=4m", small_disk], check=True)
    return small_disk


@pytest.fixture
def project(disk):
    root = make_ready(disk / "project")
    (root / "src").mkdir()
    (root / "src/a").write_text("a\n")
    return root


@pytest.fixture
def agent(project):
    """Writes a file under an approved plan; the error code, or "ok"."""
    app, approved = App([os.path.realpath(project)]), plan(project, scope=WIDE)
    app.call("begin_session", {"role": "WINDSURF"})

    def write(path, content):
        file = project / path
        known = {"expected_hash": sha(file.read_bytes())} if file.exists() else {}
        outcome = app.call("write_file", {"path": path, "content": content, "plan_hash": approved, **known})
        write.envelope = outcome.envelope
        return outcome.envelope["error_code"] if outcome.envelope else "ok"

    yield write
    app.close()


def fill_up(disk):
    """Take every free byte, also while something else writes."""
    ballast = os.open(disk / "ballast", os.O_WRONLY | os.O_CREAT)
    with contextlib.suppress(OSError):
        while os.write(ballast, bytes(4096)):
            pass
    os.close(ballast)


def undo(root, *words):
    command = [sys.executable, "-m", "kaiza", "undo", "--plan", "PLAN-1", "--yes", "--json", *words]
    return subprocess.run(command, cwd=root, capture_output=True, check=False, timeout=60)


def incompressible(size):
    return os.urandom(size // 2).hex()


@pytest.mark.parametrize("state", ["elsewhere", "same disk"])
def test_a_person_can_undo_on_a_full_disk(disk, project, request, monkeypatch, state):
    if state == "same disk":
        monkeypatch.setenv("XDG_STATE_HOME", str(disk / "state"))
    agent = request.getfixturevalue("agent")
    codes = [agent("src/a", "EVIL\n"), agent("src/big", incompressible(MIB // 2)), agent("src/b", "EVIL\n")]
    fill_up(disk)
    refused = agent("src/a", "more\n")
    done = undo(project)

    assert codes == ["ok"] * 3
    assert refused in {"AUDIT_LOG_FAILED", "FILE_WRITE_FAILED"}
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["kept"] == []
    assert sorted(path.name for path in (project / "src").iterdir()) == ["a"]
    assert (project / "src/a").read_text() == "a\n"
    assert list(project.rglob(".kaiza-*")) == []


def test_an_agent_that_fills_the_disk_is_refused_and_all_of_it_is_undone(disk, project, agent):
    codes = [agent(f"src/{number}", incompressible(300 << 10)) for number in range(30)]
    envelope = agent.envelope
    done = undo(project)
    is_put_back = (project / ".kaiza" / disk_reserve.NAME).exists()

    assert codes[0] == "ok"
    assert codes[-1] in {"AUDIT_LOG_FAILED", "FILE_WRITE_FAILED"}
    assert "ree some" in envelope["human_message"]  # space on the disk
    assert (done.returncode, done.stderr) == (0, b"")
    assert [path.name for path in (project / "src").iterdir()] == ["a"]
    assert is_put_back
    assert agent("src/a", "again\n") == "ok"
    assert (project / ".kaiza" / disk_reserve.NAME).stat().st_size >= disk_reserve.MIN_BYTES


def test_an_undo_that_needs_more_than_the_reserve_is_made_in_parts(disk, project, agent):
    before = {f"src/{number}": incompressible(80 << 10) for number in range(6)}
    for path, content in before.items():
        (project / path).write_text(content)
    codes = [agent(path, incompressible(80 << 10)) for path in before]
    fill_up(disk)
    done = undo(project)

    assert codes == ["ok"] * 6
    assert (done.returncode, done.stderr) == (0, b"")
    assert {path: (project / path).read_text() for path in before} == before


def test_no_agent_changes_a_file_before_the_reserve_is_there(disk, project, agent):
    fill(disk, 96 << 10)
    first = agent("src/a", "EVIL\n")
    envelope, reserved = agent.envelope, (project / ".kaiza" / disk_reserve.NAME).exists()
    (disk / "ballast").unlink()

    assert (first, envelope["cause"]["errno"], reserved) == ("FILE_WRITE_FAILED", "ENOSPC", False)
    assert agent("src/a", "x\n") == "ok"


def test_the_reserve_stays_where_there_is_room_and_a_planted_link_is_not_followed(project, agent, tmp_path):
    agent("src/a", "x\n")
    reserve = project / ".kaiza" / disk_reserve.NAME
    inode = reserve.stat().st_ino
    undone = undo(project).returncode
    kept = reserve.stat().st_ino
    reserve.unlink()
    (tmp_path / "outside").write_text("mine\n")
    reserve.symlink_to(tmp_path / "outside")

    assert (undone, kept) == (0, inode)
    assert agent("src/a", "x\n") == "FILE_WRITE_FAILED"
    assert (tmp_path / "outside").read_text() == "mine\n"
