"""A server is killed in the middle of a change: the next session completes or undoes it, and the log says which."""

import errno
import fcntl
import hashlib
import os
import signal
import sys

import pytest
from boundary.test_changes import HEAD, manifest
from children import run_child
from scenes import make_ready, put_plan, records

from kaiza.app import App
from kaiza.boundary import change
from kaiza.store import crash_recovery
from kaiza.store.audit.verification import background
from kaiza.store.audit.verification.verify import verify_log
from kaiza.store.changes import recovery
from kaiza.store.changes.directory_handles import DirectoryHandles
from kaiza.store.changes.transaction import TransactionManager
from kaiza.store.disk import state_dir

LONG = bool(os.environ.get("KAIZA_LONG"))
STRIDE = 1 if LONG else 41
ROUNDS = 5 if LONG else 1
MODULES = {"posix", "fcntl"}

PATCH = """\
diff --git a/src/new.py b/src/new.py
new file mode 100644
--- /dev/null
+++ b/src/new.py
@@ -0,0 +1 @@
+new
diff --git a/src/changed.py b/src/changed.py
--- a/src/changed.py
+++ b/src/changed.py
@@ -1 +1 @@
-before
+after
diff --git a/src/gone.py b/src/gone.py
deleted file mode 100644
--- a/src/gone.py
+++ /dev/null
@@ -1 +0,0 @@
-gone
"""


class Stepwise:
    """Kills this process at the given system call inside the `with`."""

    def __init__(self, at):
        self.left = at

    def __enter__(self):
        sys.setprofile(self.count)

    def __exit__(self, *_):
        sys.setprofile(None)

    def count(self, _frame, event, arg):
        if event in {"c_call", "c_return"} and getattr(arg, "__module__", None) in MODULES:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def lay_out(root):
    make_ready(root)
    (root / "src").mkdir()
    (root / "src/changed.py").write_text("before\n")
    (root / "src/gone.py").write_text("gone\n")
    text = HEAD.format(plan_id="PLAN-1", status="APPROVED", more="limits: {files: 3}\n")
    put_plan(root / "plans/PLAN-1.md", text)
    return hashlib.sha256(text.encode()).hexdigest()


def dies(root, plan_hash, at):
    """Whether a server that makes the change is killed at that system call; False where it ends before."""
    child = os.fork()
    if child == 0:
        try:
            app = App([os.path.realpath(root)])
            app.call("begin_session", {"role": "WINDSURF"})
            with Stepwise(at):
                app.call("apply_patch", {"patch": PATCH, "plan_hash": plan_hash})
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def files(root):
    return {name: entry for name, entry in manifest(root).items() if name.startswith("src/")}


@pytest.mark.long
@pytest.mark.rows("S1-84")
@pytest.mark.parametrize("number", range(ROUNDS))
def test_after_a_kill_at_any_step_the_change_is_complete_or_undone_and_the_log_says_which(tmp_path, number):
    seen = set()
    at = 1 + number
    while True:
        root = tmp_path / f"k{at}"
        plan_hash = lay_out(root)
        before = files(root)
        if not dies(root, plan_hash, at):
            break
        seen.add(recovered_state(root, before, plan_hash))
        at += STRIDE

    assert seen <= {"before", "after"}
    assert len(seen) == 2
    assert at > 100


def recovered_state(root, before, plan_hash):
    """`before` or `after`, as the next session finds the files; checks everything that is promised about it."""
    app = App([os.path.realpath(root)])
    session = app.call("begin_session", {"role": "WINDSURF"})
    current = files(root)
    state = (
        "before" if current == before else "after" if set(current) == {"src/new.py", "src/changed.py"} else "neither"
    )
    written = records(root)
    intents = {each["request_id"] for each in written if each["kind"] == "intent"}
    closed = {each["request_id"] for each in written if each["kind"] in ("call", "recovery")}
    results = {each["detail"]["result"] for each in written if each["kind"] == "recovery"}
    reported = {each["result"] for each in session.output["recovered"]}
    left = [path for path in root.rglob(".kaiza-*") if path.is_file()]
    use = app.call("session_status", {}).output["plan_use"]
    app.close()

    assert verify_log(os.path.realpath(root)).verdict == "intact"
    assert intents <= closed
    assert results <= reported
    assert results <= ({"applied"} if state == "after" else {"not_applied", "taken_back"})
    assert left == []
    assert {each["files"] for each in use} <= ({3} if state == "after" else {0})
    return state


def run_with_patch(root, plan_hash, monkeypatch, target, name, act):
    """Make the change in a server process in which `act`, which ends the process, replaces a function."""

    def make_change():
        app = App([os.path.realpath(root)])
        app.call("begin_session", {"role": "WINDSURF"})
        monkeypatch.setattr(target, name, act)
        app.call("apply_patch", {"patch": PATCH, "plan_hash": plan_hash})

    run_child(make_change)


def lose_commit_line(root):
    """What a power cut may do: the journal's last line is never synced."""
    (journal,) = (root / ".kaiza/journal").iterdir()
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(line for line in lines if "committed" not in line))
    return len(lines)


def test_a_recorded_change_is_kept_where_a_power_cut_lost_the_commit_line(tmp_path, monkeypatch):
    root = tmp_path / "project"
    plan_hash = lay_out(root)
    run_with_patch(root, plan_hash, monkeypatch, TransactionManager, "finalize", lambda *_: os._exit(0))
    line_count = lose_commit_line(root)

    assert line_count == 3
    assert recovered_state(root, None, plan_hash) == "after"


def test_an_unrecorded_change_is_rolled_back_where_a_power_cut_lost_the_commit_line(tmp_path, monkeypatch):
    root = tmp_path / "project"
    plan_hash = lay_out(root)
    before = files(root)
    run_with_patch(root, plan_hash, monkeypatch, change, "record_outcome", lambda *_, **__: os._exit(0))
    line_count = lose_commit_line(root)

    assert line_count == 3
    assert recovered_state(root, before, plan_hash) == "before"


def test_a_change_recorded_as_failed_is_rolled_back_by_the_next_session(tmp_path, monkeypatch):
    def fails(*_):
        monkeypatch.setattr(recovery, "roll_back", lambda *_: ([], False))
        raise OSError(errno.EIO, "no")

    root = tmp_path / "project"
    plan_hash = lay_out(root)
    before = files(root)
    run_with_patch(root, plan_hash, monkeypatch, DirectoryHandles, "sync", fails)

    assert (root / "src/new.py").exists()
    assert [each["outcome"] for each in records(root) if each["tool_name"] == "apply_patch"] == [None, "error"]
    assert recovered_state(root, before, plan_hash) == "before"


def recovered_reports(root):
    app = App([os.path.realpath(root)])
    reports = app.call("begin_session", {"role": "WINDSURF"}).output["recovered"]
    app.close()
    return reports


@pytest.fixture
def crashed(tmp_path, monkeypatch):
    """A workspace whose server died before the outcome of a change, and whose log counts as long."""
    root = tmp_path / "project"
    plan_hash = lay_out(root)
    before = files(root)
    run_with_patch(root, plan_hash, monkeypatch, change, "record_outcome", lambda *_, **__: os._exit(0))
    lose_commit_line(root)
    monkeypatch.setattr(background, "MAX_FOREGROUND_BYTES", -1)
    return root, before, plan_hash


def test_recovery_waits_for_the_verification_of_a_long_log(crashed, monkeypatch):
    root, before, plan_hash = crashed
    left = files(root)
    lock_fd = os.open(state_dir.path_of(os.path.realpath(root)) / "verify.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock_fd, fcntl.LOCK_EX)
    with monkeypatch.context() as patched:
        patched.setattr(crash_recovery, "MAX_VERIFICATION_WAIT", 0.05)
        reports = recovered_reports(root)
    os.close(lock_fd)

    assert [each["left"] for each in reports] == [[{"path": "audit", "reason": "not_verified_yet"}]]
    assert files(root) == left != before
    assert recovered_state(root, before, plan_hash) == "before"


def test_recovery_does_not_act_on_a_long_log_with_an_edited_old_record(crashed):
    root, before, _ = crashed
    left = files(root)
    log = root / "audit/audit-log.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"begin_session"', b'"begin_sessiom"', 1))
    recovered_reports(root)

    assert files(root) == left != before
    assert "recovery" not in [each["kind"] for each in records(root)]
    assert list((root / ".kaiza/journal").iterdir())
