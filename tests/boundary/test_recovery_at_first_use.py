"""What a killed server left is settled at the first use of the workspace, whichever call that is."""

import fcntl
import json
import os
from contextlib import closing
from hashlib import sha256

import pytest
from boundary.test_changes import HEAD
from boundary.test_recovery import PATCH, files, lay_out
from children import run_child
from scenes import put_plan, records

from kaiza.app import App
from kaiza.cli import dispatch
from kaiza.store import crash_recovery
from kaiza.store.audit.verification import background
from kaiza.store.changes.operation import ActiveOperation
from kaiza.store.changes.transaction import TransactionManager
from kaiza.store.disk import state_dir

pytestmark = pytest.mark.rows("S1-84")


def lay_out_roomy(root):
    """The workspace of `lay_out`, with a plan that allows as many files as one likes; the plan's hash."""
    lay_out(root)
    text = HEAD.format(plan_id="PLAN-2", status="APPROVED", more="")
    put_plan(root / "plans/PLAN-2.md", text)
    return sha256(text.encode()).hexdigest()


def open_app(root):
    return closing(App([os.path.realpath(root)]))


def crash(root, plan_hash, after=1):
    """Begin a session in a server that is killed after so many operations of a patch; the session's id."""
    reader, writer = os.pipe()

    def make_change():
        app = App([os.path.realpath(root)])
        os.write(writer, app.call("begin_session", {"role": "WINDSURF"}).output["session_id"].encode())
        perform, done = ActiveOperation.perform, []

        def perform_some(operation):
            if len(done) == after:
                os._exit(9)
            done.append(operation)
            perform(operation)

        ActiveOperation.perform = perform_some
        app.call("apply_patch", {"patch": PATCH, "plan_hash": plan_hash})

    run_child(make_change)
    session_id = os.read(reader, 100).decode()
    os.close(reader), os.close(writer)
    return session_id


@pytest.fixture
def crashed(tmp_path):
    """A workspace in which one of three files stayed changed; what was there, the session and the plan."""
    root = tmp_path / "project"
    plan_hash = lay_out(root)
    before = files(root)
    session_id = crash(root, plan_hash)

    assert files(root) != before
    return root, before, session_id, plan_hash


def kinds(root):
    return [(each["kind"], each["tool_name"]) for each in records(root)][-2:]


CALLS = {
    "a read": ("read_file", {"path": "src/changed.py"}),
    "a change": ("write_file", {"path": "src/more.py", "content": "more\n"}),
    "a refused change": ("write_file", {"path": "/etc/passwd", "content": "more\n"}),
    "invalid arguments": ("read_file", {"path": 7}),
    "an unknown tool": ("no_such_tool", {}),
    "the end of the session": ("end_session", {}),
    "its status": ("session_status", {}),
    "the log": ("read_audit_log", {}),
    "a context tool": ("context_list_caches", {}),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_client_that_goes_on_after_a_kill_finds_the_change_taken_back(crashed, name):
    root, before, session_id, plan_hash = crashed
    tool, arguments = CALLS[name]
    extra = {"plan_hash": plan_hash} if tool == "write_file" else {}
    with open_app(root) as app:
        named = {} if tool.startswith("context") else {"session_id": session_id}
        app.call(tool, {**arguments, **extra, **named})
    left = {path: entry for path, entry in files(root).items() if path != "src/more.py"}

    assert left == before
    assert kinds(root)[-1] == ("call", tool)
    assert [each["detail"]["result"] for each in records(root) if each["kind"] == "recovery"] == ["taken_back"]


def test_a_server_that_was_running_recovers_what_another_left_before_its_next_change(tmp_path):
    root = tmp_path / "project"
    plan_hash = lay_out(root)
    before = files(root)
    with open_app(root) as app:
        app.call("begin_session", {"role": "WINDSURF"})
        app.call("read_file", {"path": "src/changed.py"})
        crash(root, plan_hash)
        between = files(root)
        outcome = app.call("write_file", {"path": "src/more.py", "content": "more\n", "plan_hash": plan_hash})
    left = files(root)
    left.pop("src/more.py")

    assert between != before
    assert outcome.envelope is None
    assert left == before
    assert [each["kind"] for each in records(root)][-3:] == ["recovery", "intent", "call"]


@pytest.mark.parametrize("tool", ["read_file", "begin_session"])
def test_the_open_change_of_a_living_server_is_left_to_it(tmp_path, tool):
    root = tmp_path / "project"
    plan_hash = lay_out(root)
    before = files(root)
    with open_app(root) as writer, open_app(root) as other:
        writer.call("begin_session", {"role": "WINDSURF"})
        apply = TransactionManager.apply

        def apply_and_let_the_other_look(manager, prepared):
            apply(manager, prepared)
            session = other.call("begin_session", {"role": "ANTIGRAVITY"})
            assert session.output["recovered"] == []
            other.call(tool, {"path": "src/changed.py"} if tool == "read_file" else {"role": "ANTIGRAVITY"})

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(TransactionManager, "apply", apply_and_let_the_other_look)
            outcome = writer.call("apply_patch", {"patch": PATCH, "plan_hash": plan_hash})

    assert outcome.envelope is None
    assert files(root) != before
    assert "recovery" not in [each["kind"] for each in records(root)]


def test_several_processes_that_find_the_same_change_record_one_recovery(crashed):
    root, before, session_id, _ = crashed
    gate, opened = os.pipe()

    def look():
        app = App([os.path.realpath(root)])
        os.read(gate, 1)
        app.call("read_file", {"path": "src/changed.py", "session_id": session_id})
        app.close()
        os._exit(0)

    children = []
    for _ in range(4):
        children.append(os.fork())
        if children[-1] == 0:
            try:
                look()
            finally:
                os._exit(1)
    os.write(opened, b"....")
    statuses = [os.waitpid(child, 0)[1] for child in children]
    os.close(gate), os.close(opened)

    assert statuses == [0] * 4
    assert files(root) == before
    assert [each["kind"] for each in records(root)].count("recovery") == 1


def test_a_read_of_a_long_log_does_not_wait_and_a_change_does(crashed, monkeypatch):
    root, before, session_id, plan_hash = crashed
    left = files(root)
    monkeypatch.setattr(background, "MAX_FOREGROUND_BYTES", -1)
    lock_fd = os.open(state_dir.path_of(os.path.realpath(root)) / "verify.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock_fd, fcntl.LOCK_EX)
    with open_app(root) as app:
        read = app.call("read_file", {"path": "src/changed.py", "session_id": session_id})
        between = files(root)
        os.close(lock_fd)
        made = app.call(
            "write_file", {"path": "src/m.py", "content": "", "plan_hash": plan_hash, "session_id": session_id}
        )
    after = files(root)
    after.pop("src/m.py")

    assert read.envelope is None
    assert between == left
    assert made.envelope is None
    assert after == before


def test_a_change_that_cannot_be_recovered_is_tried_once_and_does_not_stop_other_calls(crashed, monkeypatch):
    root, _, session_id, _ = crashed
    runs = []
    monkeypatch.setattr(crash_recovery._CrashRecovery, "_recover_all", lambda _self: runs.append(1) or [])
    with open_app(root) as app:
        outcomes = [app.call("read_file", {"path": "src/changed.py", "session_id": session_id}) for _ in range(3)]

    assert [each.envelope for each in outcomes] == [None] * 3
    assert runs == [1]


def run(capsys, root, *words):
    status = dispatch.main([*words, "--workspace", str(root)])
    return status, capsys.readouterr()


def test_review_and_attest_name_a_change_that_no_process_has_recovered(tmp_path, capsys):
    root = tmp_path / "project"
    plan_hash = lay_out_roomy(root)
    with open_app(root) as app:
        session_id = app.call("begin_session", {"role": "WINDSURF"}).output["session_id"]
        mine = {"path": "src/changed.py", "content": "mine\n", "expected_hash": sha256(b"before\n").hexdigest()}
        made = app.call("write_file", {**mine, "plan_hash": plan_hash})
        undone = app.call("undo_changes", {"all_of_session": True, "plan_hash": plan_hash})
        app.call("write_file", {"path": "src/kept.py", "content": "kept\n", "plan_hash": plan_hash})
    crashed_session = crash(root, plan_hash)
    log = (root / "audit/audit-log.jsonl").read_bytes()
    both = (session_id, crashed_session)
    reviews = {each: run(capsys, root, "review", "--session", each, "--json") for each in both}
    attested = {each: run(capsys, root, "attest", "--session", each) for each in both}

    assert (made.envelope, undone.envelope) == (None, None)
    for _, result in reviews.values():
        first = json.loads(result.out)["findings"][0]
        assert first["kind"] == "interrupted_change"
        assert "complete" not in str(json.loads(result.out)["verdict"]["why"])
    assert {each: status for each, (status, _) in attested.items()} == {session_id: 1, crashed_session: 1}
    assert "interrupted apply_patch" in attested[crashed_session][1].err
    assert (root / "audit/audit-log.jsonl").read_bytes() == log


def test_a_change_under_way_is_no_finding_and_another_sessions_files_are_attested(tmp_path, capsys):
    root = tmp_path / "project"
    plan_hash = lay_out_roomy(root)
    with open_app(root) as app:
        session_id = app.call("begin_session", {"role": "WINDSURF"}).output["session_id"]
        app.call("write_file", {"path": "src/kept.py", "content": "kept\n", "plan_hash": plan_hash})
        apply, seen = TransactionManager.apply, []

        def apply_and_review(manager, prepared):
            apply(manager, prepared)
            seen.append(run(capsys, root, "review", "--session", session_id, "--json"))
            seen.append(run(capsys, root, "attest", "--session", session_id))

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(TransactionManager, "apply", apply_and_review)
            app.call("write_file", {"path": "src/more.py", "content": "more\n", "plan_hash": plan_hash})
    crash(root, plan_hash)
    attested = run(capsys, root, "attest", "--session", session_id)

    assert "interrupted_change" not in seen[0][1].out
    assert seen[1][0] == attested[0] == 0


def test_a_persons_undo_settles_the_change_first_and_says_so(crashed, capsys):
    root, before, session_id, _ = crashed
    status, said = run(capsys, root, "undo", "--session", session_id, "--yes")

    assert (status, files(root)) == (0, before)
    assert "taken back" in said.err
