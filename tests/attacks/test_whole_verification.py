"""An old record that was edited while no server ran is found before the first change."""

import fcntl
import json
import os

import pytest
from agents import person, plan
from logs import error_code_of
from scenes import records

from kaiza.app import App
from kaiza.boundary import case
from kaiza.store.audit.verification import background
from kaiza.store.disk import state_dir


@pytest.fixture
def used(workspace):
    """A workspace whose log has some records, and a plan."""
    plan_hash = plan(workspace)
    serve(workspace, lambda app: [error_code_of(app, "list_directory", path=".") for _ in range(5)])
    return plan_hash


def serve(root, act):
    """What one server is told by `begin_session`, and what is done with it."""
    app = App([os.path.realpath(root)])
    try:
        begun = app.call("begin_session", {"role": "WINDSURF"}).output
        return begun["audit"], act(app)
    finally:
        app.close()


def write(plan_hash, path="src/x.py"):
    return lambda app: app.call("write_file", {"path": path, "content": "x\n", "plan_hash": plan_hash}).envelope


def edit_old_record(root):
    """One letter of an old record, the size as it was and the times put back."""
    log = root / "audit/audit-log.jsonl"
    before = log.stat()
    content = log.read_bytes()
    at = content.index(b'"tool_name":"list_directory"')
    with log.open("r+b") as file:
        file.seek(at)
        file.write(b'"tool_name":"list_darectory"')
    os.utime(log, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert log.stat().st_size == before.st_size


def lock_of(root):
    place = state_dir.path_of(os.path.realpath(root))
    descriptor = os.open(place / "verify.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


@pytest.fixture
def every_log_is_long(monkeypatch):
    monkeypatch.setattr(background, "MAX_FOREGROUND_BYTES", -1)


@pytest.mark.rows("S1-51")
def test_an_old_record_that_was_edited_is_found_as_the_session_begins(workspace, used):
    edit_old_record(workspace)
    audit, refused = serve(workspace, write(used))

    assert (audit["verdict"], audit["checked"]) == ("broken", "whole")
    assert refused["error_code"] == "SELF_AUDIT_FAILURE"
    assert not (workspace / "src").exists()


@pytest.mark.rows("S1-51")
@pytest.mark.usefixtures("every_log_is_long")
def test_in_a_long_log_an_old_record_that_was_edited_is_found_before_the_first_change(workspace, used):
    serve(workspace, write(used, "src/before.py"))
    edit_old_record(workspace)
    _, refused = serve(workspace, write(used))
    _, again = serve(workspace, write(used))

    assert (refused["error_code"], again["error_code"]) == ("SELF_AUDIT_FAILURE", "SELF_AUDIT_FAILURE")
    assert not (workspace / "src/x.py").exists()


@pytest.mark.usefixtures("every_log_is_long")
def test_a_change_that_comes_before_the_end_of_the_verification_is_refused_and_may_be_tried_again(
    workspace, used, monkeypatch
):
    monkeypatch.setattr(case, "MAX_VERIFICATION_WAIT", 0.05)
    held = lock_of(workspace)
    place = state_dir.path_of(os.path.realpath(workspace))
    (place / "whole.json").unlink()

    def act(app):
        refused = write(used)(app)
        meanwhile = error_code_of(app, "list_directory", path="."), app.call("session_status", {}).output["state"]
        os.close(held)
        monkeypatch.setattr(case, "MAX_VERIFICATION_WAIT", 10.0)
        return refused, meanwhile, write(used)(app)

    audit, (refused, meanwhile, after) = serve(workspace, act)

    assert audit["checked"] == "tail"
    assert (refused["error_code"], refused["invariant_id"]) == ("AUDIT_LOG_FAILED", "AUDIT_NOT_VERIFIED_YET")
    assert refused["cause"]["progress"].keys() == {"bytes", "of"}
    assert meanwhile == ("ok", "active")
    assert after is None
    assert (workspace / "src/x.py").exists()


@pytest.mark.usefixtures("every_log_is_long")
def test_the_refusal_of_a_change_comes_before_freeze_and_lock(workspace, used, monkeypatch):
    monkeypatch.setattr(case, "MAX_VERIFICATION_WAIT", 0.05)
    assert person(workspace, "freeze", "wait") == 0
    held = lock_of(workspace)
    (state_dir.path_of(os.path.realpath(workspace)) / "whole.json").unlink()
    _, refused = serve(workspace, write(used))
    os.close(held)

    assert refused["invariant_id"] == "AUDIT_NOT_VERIFIED_YET"


@pytest.mark.usefixtures("every_log_is_long")
def test_a_log_that_went_on_with_our_own_appends_is_not_read_again(workspace, used, monkeypatch):
    serve(workspace, write(used))

    def never(*_, **__):
        raise AssertionError

    monkeypatch.setattr(background, "compute_verdict", never)
    audit, refused = serve(workspace, write(used, "src/y.py"))

    assert audit["checked"] == "whole"
    assert refused is None


@pytest.mark.usefixtures("every_log_is_long")
@pytest.mark.parametrize("meddle", ["append", "copy"])
def test_a_log_that_anything_else_wrote_is_read_again(workspace, used, meddle):
    serve(workspace, write(used))
    log = workspace / "audit/audit-log.jsonl"
    if meddle == "append":
        with log.open("ab") as file:
            file.write(b"")
        os.utime(log)
    else:
        content = log.read_bytes()
        log.unlink()
        log.write_bytes(content)
    held = lock_of(workspace)
    audit, _ = serve(workspace, lambda _: os.close(held))

    assert audit["checked"] == "tail"


@pytest.mark.usefixtures("every_log_is_long")
def test_what_another_process_has_verified_meanwhile_will_do(workspace, used, monkeypatch):
    place = state_dir.path_of(os.path.realpath(workspace))
    (place / "whole.json").unlink()
    held = lock_of(workspace)
    monkeypatch.setattr(background, "compute_verdict", lambda *_, **__: pytest.fail("read again"))

    def act(app):
        stamp = background.LogStamp.from_stat((workspace / "audit/audit-log.jsonl").stat())
        (place / "whole.json").write_text(json.dumps(stamp))
        os.close(held)
        return write(used)(app)

    audit, refused = serve(workspace, act)

    assert audit["checked"] == "tail"
    assert refused is None


def test_a_new_log_is_whole_from_its_first_record_on(workspace):
    plan_hash = plan(workspace)
    audit, refused = serve(workspace, write(plan_hash))

    assert audit["checked"] == "whole"
    assert refused is None
    assert records(workspace)[-1]["outcome"] == "ok"


def test_an_undo_by_a_person_finds_an_old_record_that_was_edited(workspace, used):
    serve(workspace, write(used))
    edit_old_record(workspace)

    assert person(workspace, "undo", "--plan", "PLAN-1", "--yes") != 0
    assert (workspace / "src/x.py").exists()


@pytest.mark.usefixtures("every_log_is_long")
def test_a_damaged_log_is_never_noted_as_whole(workspace, used):
    serve(workspace, write(used, "src/before.py"))
    edit_old_record(workspace)
    serve(workspace, write(used))
    (state_dir.path_of(os.path.realpath(workspace)) / "damage.json").unlink()
    _, refused = serve(workspace, write(used))

    assert refused["error_code"] == "SELF_AUDIT_FAILURE"


@pytest.mark.usefixtures("every_log_is_long")
def test_a_process_that_was_stopped_in_its_verification_holds_up_no_other(workspace, used, monkeypatch):
    monkeypatch.setattr(background, "_LOCK_SECONDS", 0.05)
    (state_dir.path_of(os.path.realpath(workspace)) / "whole.json").unlink()
    held = lock_of(workspace)
    _, refused = serve(workspace, write(used))
    os.close(held)

    assert refused is None


@pytest.mark.usefixtures("every_log_is_long")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_verification_that_fails_unforeseen_is_tried_again(workspace, used, monkeypatch):
    monkeypatch.setattr(case, "MAX_VERIFICATION_WAIT", 0.05)
    (state_dir.path_of(os.path.realpath(workspace)) / "whole.json").unlink()
    judge = background.compute_verdict

    def act(app):
        refused = write(used)(app)
        monkeypatch.setattr(background, "compute_verdict", judge)
        monkeypatch.setattr(case, "MAX_VERIFICATION_WAIT", 10.0)
        return refused, write(used)(app)

    def fails(*_, **__):
        raise MemoryError

    monkeypatch.setattr(background, "compute_verdict", fails)
    _, (refused, after) = serve(workspace, act)

    assert refused["invariant_id"] == "AUDIT_NOT_VERIFIED_YET"
    assert after is None


@pytest.mark.usefixtures("every_log_is_long")
def test_an_old_record_that_was_edited_while_a_server_ran_is_found_at_the_next_start(workspace, used):
    def edited_meanwhile(app):
        edit_old_record(workspace)
        return error_code_of(app, "list_directory", path=".")

    _, answered = serve(workspace, edited_meanwhile)
    _, refused = serve(workspace, write(used))

    assert answered == "ok"
    assert refused["error_code"] == "SELF_AUDIT_FAILURE"
    assert not (workspace / "src").exists()


@pytest.mark.usefixtures("every_log_is_long")
def test_a_stamp_is_not_noted_where_the_system_knows_no_finer_times(workspace, used, monkeypatch):
    serve(workspace, write(used, "src/a.py"))
    fine = serve(workspace, lambda _: None)[0]["checked"]
    with monkeypatch.context() as coarsely:
        log = workspace / "audit/audit-log.jsonl"
        coarsely.setattr(background, "coarse_time_ns", lambda: log.stat().st_ctime_ns)
        serve(workspace, write(used, "src/b.py"))
    held = lock_of(workspace)
    coarse = serve(workspace, lambda _: os.close(held))[0]["checked"]

    assert (fine, coarse) == ("whole", "tail")
