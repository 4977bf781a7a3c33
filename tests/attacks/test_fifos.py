"""FIFOs in place of any file that Kaiza reads or writes: each call answers, none waits for another end."""

import os
import signal
import subprocess
import sys

import pytest
from agents import WIDE, plan
from repositories import run_git

from kaiza.app import App
from kaiza.domain import errors
from kaiza.store.disk import small_files, state_dir
from kaiza.store.manifest import database

CALLS = [
    ("begin_session", {"role": "WINDSURF"}),
    *((tool, {}) for tool in ("list_plans", "project_references_missing", "project_assets_summary", "session_status")),
    ("read_plan", {"plan_id": "PLAN-1"}),
    ("search_text", {"query": "x", "include_ignored": True}),
    ("find_files", {"pattern": "**"}),
    ("context_list_caches", {}),
    ("read_audit_log", {}),
    ("write_file", {"path": "new/file", "content": "x\n"}),
    ("write_report", {"title": "t", "content": "c"}),
    ("end_session", {}),
]
STATE_FILES = (
    *("workspace.json", "key.json", "sights.json", "index.json", "anchor", "anchor-2", "damage.json", "settings.json"),
    *("trust.json", "whole.json", "allowed_signers", "manifest.sqlite", "manifest.sqlite-journal"),
)
GROUPS = {
    "state": lambda path: path.startswith(".kaiza/"),
    "made": lambda path: path == ".kaiza/made/list",
    "log": lambda path: path.startswith("audit/"),
    "plans": lambda path: path.startswith("plans/"),
    "rules": lambda path: path.endswith((".gitignore", "exclude")),
    "repository": lambda path: path.startswith((".git/logs", ".git/objects", ".hg", ".git/index")),
    "sources": lambda path: path.endswith((".py", ".md", ".json")),
}


def fill(root):
    (root / "src").mkdir(exist_ok=True)
    (root / "src/a.py").write_text("x = 1\n")
    run_git(root, "init", "-q")
    run_git(root, "add", "src")
    run_git(root, "commit", "-q", "-m", "x")
    (root / "package.json").write_text('{"main": "x.js"}\n')
    (root / ".gitignore").write_text("*.log\n")
    app = App([str(root)])
    approved = plan(root, scope=WIDE)
    app.call("begin_session", {"role": "WINDSURF"})
    made = app.call("write_file", {"path": "one/two/file", "content": "x\n", "plan_hash": approved})
    assert made.envelope is None
    app.close()
    (root / ".hg/store").mkdir(parents=True)  # not before the approval, which an edit gives in no Mercurial repository
    (root / ".hg/store/data").write_text("x = 1\n")
    return approved


def put_fifos(paths):
    for path in paths:
        path.unlink(missing_ok=True)
        os.mkfifo(path)


def ends_well(act):
    """Whether a function returns, in a process that is ended where it waits."""
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(60)
            act()
            os._exit(0)
        finally:
            os._exit(2)
    return os.waitpid(child, 0)[1] == 0


def answers_all(root, approved):
    """Whether each call is answered."""

    def call_all():
        try:
            app = App([str(root)])
        except errors.SystemError:  # a server that does not start says why
            return
        for tool, arguments in CALLS:
            answer = app.call(tool, {"plan_hash": approved, **arguments} if tool == "write_file" else arguments)
            assert answer.output or answer.envelope
        app.close()

    return ends_well(call_all)


def print_status(root):
    return subprocess.run(
        [sys.executable, "-m", "kaiza", "status"], cwd=root, capture_output=True, check=False, timeout=60
    )


@pytest.mark.parametrize("is_chosen", GROUPS.values(), ids=GROUPS.keys())
def test_no_call_waits_for_the_other_end_of_a_fifo(workspace, is_chosen):
    approved = fill(workspace)
    chosen = [path for path in workspace.rglob("*") if path.is_file() and is_chosen(str(path.relative_to(workspace)))]
    put_fifos(chosen)

    assert chosen
    assert answers_all(workspace, approved)


@pytest.mark.parametrize("name", STATE_FILES)
def test_nothing_waits_for_the_other_end_of_a_fifo_in_the_state_directory(workspace, name):
    approved = fill(workspace)
    put_fifos([state_dir.path_of(str(workspace)) / name])

    assert answers_all(workspace, approved)
    assert print_status(workspace).returncode in {0, 1, 3}


@pytest.mark.parametrize("name", ["key.json", "sights.json", "index.json", "anchor", "damage.json", "settings.json"])
def test_no_call_fails_because_a_file_of_the_state_directory_is_larger_than_the_memory(workspace, name):
    approved = fill(workspace)
    state = state_dir.path_of(str(workspace))
    with (state / name).open("ab") as file:
        file.truncate(1 << 42)

    assert answers_all(workspace, approved)


def test_no_state_file_is_written_through_a_fifo_or_a_link_that_has_the_name_of_its_temporary_file(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(os, "urandom", bytes)  # the name could be guessed

    def write():
        temporary = tmp_path / f"x.json.{bytes(6).hex()}"
        for put in (os.mkfifo, lambda path: path.symlink_to(tmp_path / "other")):
            put(temporary)
            with pytest.raises(FileExistsError):
                small_files.replace(tmp_path / "x.json", b"x", durable=True)
            temporary.unlink()

    assert ends_well(write)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal"])
def test_a_manifest_with_a_fifo_beside_it_is_replaced(tmp_path, suffix):
    def reopen():
        assert database.open_database(tmp_path, "x") is None
        database.open_or_create(tmp_path, "x").close()
        assert database.open_database(tmp_path, "x") is not None

    database.open_or_create(tmp_path, "x").close()
    put_fifos([tmp_path / f"{database.NAME}{suffix}"])

    assert ends_well(reopen)
