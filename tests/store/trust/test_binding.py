"""A workspace is new, bound to this machine, or foreign; only the first two may give authority."""

import json
import os
import shutil
import threading

import pytest
from agents import confirm, hash_of, person, plan
from scenes import bind, make_ready, records

from kaiza.app import App
from kaiza.cli import dispatch
from kaiza.domain.audit import carry_over
from kaiza.domain.caps import Caps
from kaiza.store.audit.log import AuditLog
from kaiza.store.audit.verification.verify import verify_log
from kaiza.store.disk import state_dir
from kaiza.store.trust import identity, retired_state
from kaiza.store.trust.binding import Standing, read_binding
from kaiza.store.workspace import Workspace

LOG_STATE = {"anchor", "index.json", "settings.json", "whole.json", "damage.json", "workspace.json"}


def state_of(root):
    return state_dir.path_of(str(root))


def standing(root):
    return read_binding(os.path.realpath(root), state_of(root)).standing


def use(root, *calls):
    """Begin a session in an application of its own, make calls, and return all outcomes."""
    app = App([os.path.realpath(root)])
    try:
        return [app.call("begin_session", {"role": "WINDSURF"}), *(app.call(*call) for call in calls)]
    finally:
        app.close()


def write(root, plan_hash):
    """The refusal of a change; None if it was made."""
    return use(root, ("write_file", {"path": "src/a", "content": "x\n", "plan_hash": plan_hash}))[-1].envelope


def begin_again(root):
    """Remove a workspace and make another one at its path, as a second clone does."""
    shutil.rmtree(root)
    return make_ready(root)


def clean(root):
    """Remove what git ignores, as `git clean -fdx` does."""
    shutil.rmtree(root / ".kaiza")
    (root / "audit/audit-log.jsonl").unlink()
    return root


def recoveries(root):
    return [each["detail"] for each in records(root) if each["kind"] == "recovery"]


def test_a_new_workspace_is_bound_by_its_first_recorded_call(workspace):
    Workspace(os.path.realpath(workspace), Caps()).close("2026-11-18T09:00:00.000Z")
    before = standing(workspace), (workspace / ".kaiza").exists(), state_of(workspace).exists()
    use(workspace)
    known = json.loads((state_of(workspace) / "workspace.json").read_bytes())

    assert before == (Standing.NEW, False, False)
    assert standing(workspace) is Standing.BOUND
    assert (workspace / ".kaiza/id").read_text().strip() == known["id"]
    assert (state_of(workspace) / "workspace.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "command", [["status"], ["doctor"], ["plan", "list"], ["audit", "verify"], ["adopt", "--show"]]
)
def test_reading_commands_write_nothing_into_a_new_workspace(workspace, command):
    person(workspace, *command)

    assert sorted(path.name for path in workspace.rglob("*")) == ["audit", "plans"]


def test_a_persons_decision_binds_a_new_workspace(workspace):
    plan(workspace)
    assert person(workspace, "plan", "revoke", "PLAN-1") == 0

    assert standing(workspace) is Standing.BOUND


def test_two_processes_that_begin_at_once_agree_on_one_id(workspace):
    both = [Workspace(os.path.realpath(workspace), Caps()) for _ in range(2)]
    threads = [threading.Thread(target=each.begin_recording) for each in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for each in both:
        each.close("2026-11-18T09:00:00.000Z")

    assert standing(workspace) is Standing.BOUND
    assert {each.binding.standing for each in both} == {Standing.BOUND}


def test_a_lost_id_is_written_anew_where_the_log_continues_the_checkpoint(workspace):
    approved = plan(workspace)
    assert write(workspace, approved) is None
    shutil.rmtree(workspace / ".kaiza")
    refused = write(workspace, approved)

    assert refused is None or refused["error_code"] != "SELF_AUDIT_FAILURE"
    assert (workspace / ".kaiza/id").exists()
    assert [each["result"] for each in recoveries(workspace)] == ["workspace_bound"]


def test_another_log_without_an_id_is_foreign(workspace, tmp_path):
    use(workspace)
    other = make_ready(tmp_path / "other")
    use(other)
    shutil.copy(other / "audit/audit-log.jsonl", workspace / "audit/audit-log.jsonl")
    shutil.rmtree(workspace / ".kaiza")

    assert standing(workspace) is Standing.FOREIGN


@pytest.mark.parametrize("place", ["state", "path", "id", "copy"])
def test_a_workspace_is_foreign_without_its_state_or_with_another_id(workspace, tmp_path, place):
    use(workspace)
    root = workspace
    if place == "state":
        shutil.rmtree(state_of(workspace))
    elif place == "path":
        root = workspace.rename(tmp_path / "moved")
    elif place == "id":
        (workspace / ".kaiza/id").write_text("0" * 32)
    else:
        root = shutil.copytree(workspace, tmp_path / "copy")

    assert standing(root) is Standing.FOREIGN
    assert write(root, plan(root))["invariant_id"] == "WORKSPACE_NOT_ADOPTED"
    assert standing(root) is Standing.FOREIGN


@pytest.mark.parametrize("content", ["", "x" * 32, "0" * 33, "0" * 31])
def test_an_id_that_is_none_makes_the_workspace_foreign(workspace, content):
    use(workspace)
    (workspace / ".kaiza/id").write_text(content)

    assert standing(workspace) is Standing.FOREIGN


@pytest.mark.parametrize("change", [b"", b"{}", b"[]", b'{"format": 2}', {"format": 2}, {"adopted": "1"}, None])
def test_a_workspace_file_of_another_form_gives_no_authority(workspace, change):
    use(workspace)
    path = state_of(workspace) / "workspace.json"
    if isinstance(change, dict):
        change = json.dumps({**json.loads(path.read_bytes()), **change}).encode()
    path.unlink()
    if change is None:
        path.mkdir()
    else:
        path.write_bytes(change)

    assert standing(workspace) is Standing.FOREIGN


@pytest.mark.parametrize("name", ["journal/one", "objects/ab/cd", "done"])
def test_a_workspace_without_a_log_but_with_other_files_of_kaizas_is_foreign(workspace, name):
    left = workspace / ".kaiza" / name
    left.parent.mkdir(parents=True)
    left.write_text("x")

    assert standing(workspace) is Standing.FOREIGN


def test_an_adoption_replaces_an_id_that_is_none(workspace):
    use(workspace)
    (workspace / ".kaiza/id").write_text("x" * 32)
    bind(workspace)

    assert identity.read_local_id(str(workspace)) not in (None, "", "x" * 32)
    assert standing(workspace) is Standing.BOUND


def test_a_workspace_whose_id_is_lost_stays_adopted_up_to_the_same_record(workspace):
    use(workspace)
    bind(workspace, adopted=1)
    use(workspace)
    (workspace / ".kaiza/id").unlink()
    use(workspace)

    assert (workspace / ".kaiza/id").exists()
    assert read_binding(os.path.realpath(workspace), state_of(workspace)).restricted_seq == 1


@pytest.mark.parametrize("replace", [begin_again, clean])
def test_a_new_workspace_at_an_old_path_keeps_the_freeze_and_names_the_old_head(workspace, replace):
    use(workspace)
    person(workspace, "freeze", "wait")
    old = records(workspace)[-1]
    key = (state_of(workspace) / "key.json").read_bytes()
    replace(workspace)
    opened = Workspace(os.path.realpath(workspace), Caps())
    frozen = opened.audit_state.frozen
    opened.close("2026-11-18T09:00:00.000Z")
    verdict = person(workspace, "audit", "verify")
    begun, refused = use(workspace, ("write_file", {"path": "src/a", "content": "x\n", "plan_hash": plan(workspace)}))
    first = records(workspace)[0]

    assert frozen is not None
    assert verdict == 1  # the log that the checkpoint knows is missing
    assert begun.envelope is None
    assert "retired" in begun.output["summary"]
    assert first["detail"]["result"] == "state_retired"
    assert first["detail"]["old_head"] == {"seq": old["seq"], "entry_hash": old["entry_hash"]}
    assert refused.envelope["invariant_id"] == "WORKSPACE_FROZEN"
    assert verify_log(os.path.realpath(workspace)).verdict == "intact"
    assert (state_of(workspace) / "key.json").read_bytes() == key
    assert (state_of(workspace) / "retired-1/workspace.json").exists()


@pytest.mark.parametrize("replace", [begin_again, clean])
def test_a_new_workspace_at_an_old_path_keeps_locks_withdrawals_and_used_limits(workspace, replace):
    approved = plan(workspace, more="limits: {operations: 1}\n")
    outside = ("write_file", {"path": "outside", "content": "x\n", "plan_hash": approved})
    assert write(workspace, approved) is None
    assert use(workspace, outside)[-1].envelope["error_code"] == "PLAN_SCOPE_VIOLATION"
    assert person(workspace, "plan", "revoke", "PLAN-1") == 0
    replace(workspace)
    use(workspace)
    opened = Workspace(os.path.realpath(workspace), Caps())
    opened.log.catch_up()
    state = opened.audit_state
    opened.close("2026-11-18T09:00:00.000Z")

    assert list(state.locks) == ["WINDSURF"]
    assert state.withdrawn == {"PLAN-1": "revoke"}
    assert (state.usage["PLAN-1"].operations, sorted(state.usage["PLAN-1"].files)) == (1, ["src/a"])
    assert (state.approvals, state.seals) == ({}, {})


def test_a_crash_between_the_records_of_a_retired_state_loses_none(workspace, monkeypatch):
    assert write(workspace, plan(workspace)) is None
    assert person(workspace, "plan", "revoke", "PLAN-1") == 0
    begin_again(workspace)
    monkeypatch.setattr(carry_over, "MAX_PART_BYTES", 1)  # one record for each piece

    def append_and_crash(self, compose, *, durable):
        append(self, compose, durable=durable)
        raise KeyboardInterrupt

    append = AuditLog.append
    with monkeypatch.context() as crash:
        crash.setattr(AuditLog, "append", append_and_crash)
        opened = Workspace(os.path.realpath(workspace), Caps())
        with pytest.raises(KeyboardInterrupt):
            opened.begin_recording()
        opened.log.close()
    before = len(recoveries(workspace))
    use(workspace)
    use(workspace)
    parts = [each["standing"] for each in recoveries(workspace)]

    assert before == 1
    assert [name for part in parts for name in part] == ["frozen", "locks", "withdrawn", "usage", "usage"]


def test_approvals_of_a_retired_state_do_not_count(workspace):
    (workspace / "kaiza.toml").write_text('[approval]\nrequire = "command"\n')
    approved = plan(workspace)
    app = App([os.path.realpath(workspace)])
    app.call("begin_session", {"role": "WINDSURF"})
    app.services.workspaces[os.path.realpath(workspace)].audit_state.approvals["PLAN-1"] = approved
    app.close()
    begin_again(workspace)
    (workspace / "kaiza.toml").write_text('[approval]\nrequire = "command"\n')

    assert write(workspace, plan(workspace))["error_code"] == "PLAN_NOT_APPROVED"


def test_a_snapshot_from_before_an_adoption_is_not_used_after_it(workspace):
    (workspace / "kaiza.toml").write_text('[approval]\nrequire = "command"\n')
    plan(workspace, status="DRAFT")
    use(workspace)
    assert confirm(workspace, "plan", "approve", "PLAN-1") == 0
    before = write(workspace, hash_of(workspace))
    (workspace / ".kaiza/id").write_text("0" * 32)
    bind(workspace, adopted=len(records(workspace)))

    assert before is None
    assert write(workspace, hash_of(workspace))["error_code"] == "PLAN_NOT_APPROVED"


def test_an_agent_undoes_no_change_from_before_an_adoption(workspace):
    approved = plan(workspace)
    asked = {"path": "src/a", "content": "x\n", "plan_hash": approved}
    made = use(workspace, ("write_file", asked))[-1].output["request_id"]
    undo = ("undo_changes", {"request_ids": [made], "plan_hash": approved, "dry_run": True})
    before = use(workspace, undo)[-1].envelope
    bind(workspace, adopted=len(records(workspace)))
    after = use(workspace, undo)[-1].envelope

    assert before is None
    assert after is not None


@pytest.mark.parametrize("moved", [{"index.json"}, LOG_STATE])
def test_a_crash_while_a_state_is_retired_loses_no_freeze(workspace, moved):
    use(workspace)
    person(workspace, "freeze", "wait")
    clean(workspace)
    state = state_of(workspace)
    (state / "retiring").mkdir()
    for name in moved & set(os.listdir(state)):
        (state / name).rename(state / "retiring" / name)
    refused = write(workspace, plan(workspace))

    assert refused["invariant_id"] == "WORKSPACE_FROZEN"


def test_only_what_the_workspace_before_forbade_holds_for_a_third_one_at_the_path(workspace):
    use(workspace)
    person(workspace, "freeze", "wait")
    begin_again(workspace)
    use(workspace)
    thawed = confirm(workspace, "thaw")
    begin_again(workspace)

    assert thawed == 0
    assert write(workspace, plan(workspace)) is None


def test_a_crash_before_the_first_record_of_a_new_log_loses_no_freeze(workspace):
    use(workspace)
    person(workspace, "freeze", "wait")
    clean(workspace)
    retired_state.retire(state_of(workspace))
    bind(workspace)
    refused = write(workspace, plan(workspace))

    assert refused["invariant_id"] == "WORKSPACE_FROZEN"


def test_a_lock_outlives_its_log_even_if_the_server_was_killed(workspace):
    outside = {"path": "outside", "content": "x\n", "plan_hash": plan(workspace)}
    killed = App([os.path.realpath(workspace)])
    killed.call("begin_session", {"role": "WINDSURF"})
    assert killed.call("write_file", outside).envelope["error_code"] == "PLAN_SCOPE_VIOLATION"
    try:
        begin_again(workspace)
        refused = write(workspace, plan(workspace))
    finally:
        killed.close()

    assert refused["error_code"] == "SESSION_LOCKED"


def test_a_log_that_is_deleted_while_the_id_is_left_is_missing(workspace):
    use(workspace)
    (workspace / "audit/audit-log.jsonl").unlink()

    assert verify_log(os.path.realpath(workspace)).verdict == "missing"
    assert write(workspace, plan(workspace))["error_code"] == "SELF_AUDIT_FAILURE"


def test_a_second_state_directory_is_named_by_status_verify_and_doctor(workspace, monkeypatch, tmp_path, capfd):
    monkeypatch.chdir(workspace)
    use(workspace)
    one = states_named(capfd)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
    bind(workspace)
    use(workspace)

    assert one == (1, None, None)
    assert states_named(capfd) == (2, 2, "warning")


def states_named(capfd):
    """How many state directories `status` and `audit verify` name, and the verdict of `doctor` about them."""
    printed = []
    for words in (["status"], ["audit", "verify"], ["doctor"]):
        dispatch.main([*words, "--json"])
        printed.append(json.loads(capfd.readouterr().out))
    status, verified, doctor = printed
    verdicts = {check["check"]: check["verdict"] for check in doctor["checks"]}
    return status["states"], verified.get("states"), verdicts.get("states")


def test_after_two_state_directories_adopted_a_log_a_persons_word_counts_in_both(workspace, monkeypatch, tmp_path):
    (workspace / "kaiza.toml").write_text('[approval]\nrequire = "command"\n')
    plan(workspace, status="DRAFT")
    use(workspace)
    first, second = os.environ["XDG_STATE_HOME"], str(tmp_path / "another")
    monkeypatch.setenv("XDG_STATE_HOME", second)
    bind(workspace, adopted=len(records(workspace)))
    use(workspace)
    monkeypatch.setenv("XDG_STATE_HOME", first)
    assert confirm(workspace, "plan", "approve", "PLAN-1") == 0
    monkeypatch.setenv("XDG_STATE_HOME", second)

    assert write(workspace, hash_of(workspace)) is None


def test_an_id_is_never_replaced(workspace):
    use(workspace)
    before = (workspace / ".kaiza/id").read_bytes()
    identity.write_local_id(str(workspace), identity.new_id())

    assert (workspace / ".kaiza/id").read_bytes() == before
