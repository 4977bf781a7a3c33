"""Verification of the whole log: an edited old record is found before the first change."""

import fcntl
import json
import os

import pytest
from agents import person, plan
from logs import error_code_of

from kaiza.app import App
from kaiza.boundary import case
from kaiza.store.audit.verification import background
from kaiza.store.disk import lock_timeouts, state_dir


@pytest.fixture
def plan_hash(workspace):
    """Give the log of the workspace some records; the hash of a plan."""
    plan_hash = plan(workspace)
    serve(workspace, lambda app: [error_code_of(app, "list_directory", path=".") for _ in range(5)])
    return plan_hash


def serve(root, act):
    """`audit` in the output of `begin_session`, and the result of `act` on the same server."""
    app = App([os.path.realpath(root)])
    try:
        begun = app.call("begin_session", {"role": "WINDSURF"}).output
        return begun["audit"], act(app)
    finally:
        app.close()


def write_file(plan_hash, path="src/x.py"):
    return lambda app: app.call("write_file", {"path": path, "content": "x\n", "plan_hash": plan_hash}).envelope


def edit_old_record(root):
    """Change one letter of an old record, and restore the size and the times that can be set."""
    log = root / "audit/audit-log.jsonl"
    before = log.stat()
    content = log.read_bytes()
    at = content.index(b'"tool_name":"list_directory"')
    with log.open("r+b") as file:
        file.seek(at)
        file.write(b'"tool_name":"list_darectory"')
    os.utime(log, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert log.stat().st_size == before.st_size


def hold_verification_lock(root):
    directory = state_dir.path_of(os.path.realpath(root))
    descriptor = os.open(directory / "verify.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


@pytest.fixture
def every_log_is_long(monkeypatch):
    monkeypatch.setattr(background, "MAX_FOREGROUND_BYTES", -1)


@pytest.mark.rows("S1-51")
def test_an_edited_old_record_is_found_when_the_session_begins(workspace, plan_hash):
    edit_old_record(workspace)
    audit, refused = serve(workspace, write_file(plan_hash))

    assert (audit["verdict"], audit["checked"]) == ("broken", "whole")
    assert refused["error_code"] == "SELF_AUDIT_FAILURE"
    assert not (workspace / "src").exists()


@pytest.mark.rows("S1-51")
@pytest.mark.usefixtures("every_log_is_long")
def test_an_edited_old_record_in_a_long_log_is_found_before_the_first_change(workspace, plan_hash):
    serve(workspace, write_file(plan_hash, "src/before.py"))
    edit_old_record(workspace)
    _, refused = serve(workspace, write_file(plan_hash))
    _, again = serve(workspace, write_file(plan_hash))

    assert (refused["error_code"], again["error_code"]) == ("SELF_AUDIT_FAILURE", "SELF_AUDIT_FAILURE")
    assert not (workspace / "src/x.py").exists()


@pytest.mark.usefixtures("every_log_is_long")
def test_a_change_before_the_end_of_the_verification_is_refused_and_can_be_retried(workspace, plan_hash, monkeypatch):
    monkeypatch.setattr(case, "MAX_VERIFICATION_WAIT", 0.05)
    lock_fd = hold_verification_lock(workspace)
    directory = state_dir.path_of(os.path.realpath(workspace))
    (directory / "whole.json").unlink()

    def act(app):
        refused = write_file(plan_hash)(app)
        meanwhile = error_code_of(app, "list_directory", path="."), app.call("session_status", {}).output["state"]
        os.close(lock_fd)
        monkeypatch.setattr(case, "MAX_VERIFICATION_WAIT", 10.0)
        return refused, meanwhile, write_file(plan_hash)(app)

    audit, (refused, meanwhile, after) = serve(workspace, act)

    assert audit["checked"] == "tail"
    assert (refused["error_code"], refused["invariant_id"]) == ("AUDIT_LOG_FAILED", "AUDIT_NOT_VERIFIED_YET")
    assert refused["cause"]["progress"].keys() == {"bytes", "of"}
    assert "still being verified" in refused["human_message"]
    assert meanwhile == ("ok", "active")
    assert after is None
    assert (workspace / "src/x.py").exists()


@pytest.mark.usefixtures("every_log_is_long")
def test_an_unfinished_verification_refuses_a_change_before_freeze_and_lock_do(workspace, plan_hash, monkeypatch):
    monkeypatch.setattr(case, "MAX_VERIFICATION_WAIT", 0.05)
    assert person(workspace, "freeze", "wait") == 0
    lock_fd = hold_verification_lock(workspace)
    (state_dir.path_of(os.path.realpath(workspace)) / "whole.json").unlink()
    _, refused = serve(workspace, write_file(plan_hash))
    os.close(lock_fd)

    assert refused["invariant_id"] == "AUDIT_NOT_VERIFIED_YET"


@pytest.mark.usefixtures("every_log_is_long")
def test_a_verified_log_with_only_our_own_appends_is_not_verified_again(workspace, plan_hash, monkeypatch):
    serve(workspace, write_file(plan_hash))

    def fail(*_, **__):
        raise AssertionError

    monkeypatch.setattr(background, "compute_verdict", fail)
    audit, refused = serve(workspace, write_file(plan_hash, "src/y.py"))

    assert audit["checked"] == "whole"
    assert refused is None


@pytest.mark.usefixtures("every_log_is_long")
@pytest.mark.parametrize("action", ["append", "copy"])
def test_a_log_that_another_program_wrote_is_verified_again(workspace, plan_hash, action):
    serve(workspace, write_file(plan_hash))
    log = workspace / "audit/audit-log.jsonl"
    if action == "append":
        with log.open("ab") as file:
            file.write(b"")
        os.utime(log)
    else:
        content = log.read_bytes()
        log.unlink()
        log.write_bytes(content)
    lock_fd = hold_verification_lock(workspace)
    audit, _ = serve(workspace, lambda _: os.close(lock_fd))

    assert audit["checked"] == "tail"


@pytest.mark.usefixtures("every_log_is_long")
def test_a_verification_by_another_process_is_reused(workspace, plan_hash, monkeypatch):
    directory = state_dir.path_of(os.path.realpath(workspace))
    (directory / "whole.json").unlink()
    lock_fd = hold_verification_lock(workspace)
    monkeypatch.setattr(background, "compute_verdict", lambda *_, **__: pytest.fail("verified again"))

    def act(app):
        stamp = background.LogStamp.from_stat((workspace / "audit/audit-log.jsonl").stat())
        (directory / "whole.json").write_text(json.dumps({"format": 1, **stamp._asdict()}))
        os.close(lock_fd)
        return write_file(plan_hash)(app)

    audit, refused = serve(workspace, act)

    assert audit["checked"] == "tail"
    assert refused is None


def test_an_undo_by_a_person_finds_an_edited_old_record(workspace, plan_hash):
    serve(workspace, write_file(plan_hash))
    edit_old_record(workspace)

    assert person(workspace, "undo", "--plan", "PLAN-1", "--yes") != 0
    assert (workspace / "src/x.py").exists()


@pytest.mark.usefixtures("every_log_is_long")
def test_no_stamp_is_saved_for_a_damaged_log(workspace, plan_hash):
    serve(workspace, write_file(plan_hash, "src/before.py"))
    edit_old_record(workspace)
    serve(workspace, write_file(plan_hash))
    (state_dir.path_of(os.path.realpath(workspace)) / "damage.json").unlink()
    _, refused = serve(workspace, write_file(plan_hash))

    assert refused["error_code"] == "SELF_AUDIT_FAILURE"


@pytest.mark.usefixtures("every_log_is_long")
def test_a_process_stopped_in_its_verification_delays_no_other(workspace, plan_hash, monkeypatch):
    monkeypatch.setattr(lock_timeouts, "VERIFICATION", 0.05)
    (state_dir.path_of(os.path.realpath(workspace)) / "whole.json").unlink()
    lock_fd = hold_verification_lock(workspace)
    _, refused = serve(workspace, write_file(plan_hash))
    os.close(lock_fd)

    assert refused is None


@pytest.mark.usefixtures("every_log_is_long")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_verification_that_fails_unexpectedly_is_tried_again(workspace, plan_hash, monkeypatch):
    monkeypatch.setattr(case, "MAX_VERIFICATION_WAIT", 0.05)
    (state_dir.path_of(os.path.realpath(workspace)) / "whole.json").unlink()
    compute_verdict = background.compute_verdict

    def act(app):
        refused = write_file(plan_hash)(app)
        monkeypatch.setattr(background, "compute_verdict", compute_verdict)
        monkeypatch.setattr(case, "MAX_VERIFICATION_WAIT", 10.0)
        return refused, write_file(plan_hash)(app)

    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr(background, "compute_verdict", fail)
    _, (refused, after) = serve(workspace, act)

    assert refused["invariant_id"] == "AUDIT_NOT_VERIFIED_YET"
    assert after is None


@pytest.mark.usefixtures("every_log_is_long")
def test_no_stamp_is_saved_without_fine_grained_timestamps(workspace, plan_hash, monkeypatch):
    serve(workspace, write_file(plan_hash, "src/a.py"))
    fine = serve(workspace, lambda _: None)[0]["checked"]
    with monkeypatch.context() as coarse_clock:
        log = workspace / "audit/audit-log.jsonl"
        coarse_clock.setattr(background, "coarse_time_ns", lambda: log.stat().st_ctime_ns)
        serve(workspace, write_file(plan_hash, "src/b.py"))
    lock_fd = hold_verification_lock(workspace)
    coarse = serve(workspace, lambda _: os.close(lock_fd))[0]["checked"]

    assert (fine, coarse) == ("whole", "tail")
