"""`kaiza doctor`: each thing that can be wrong is found, and named with what to do."""

import json
import os
import subprocess

import pytest

from kaiza.app import App
from kaiza.cli.doctor import clients, machine, workspace
from kaiza.domain.audit import record
from kaiza.store.audit import log as audit_log
from kaiza.store.clients.client import ServerCommand
from kaiza.store.files import probe


@pytest.fixture
def root(workspace, kaiza, monkeypatch):
    """A workspace that init made, with a client, looked at by a plain user."""
    monkeypatch.setattr("kaiza.cli.doctor.machine.check_user", lambda: iter(()))
    kaiza("init", "--client", "claude-code", "--yes")
    return workspace


@pytest.fixture
def doctor(kaiza):
    def run(*words):
        told = kaiza("doctor", *words, "--json")
        return told.status, {one["check"]: one for one in json.loads(told.out)["checks"]}

    return run


def verdicts(checks):
    return {name: check["verdict"] for name, check in checks.items()}


@pytest.fixture
def recorded(root):
    """Three records, written as a server writes them."""
    log = audit_log.AuditLog(str(root), follow=lambda _: None)
    for number in range(3):
        body = record.new_body("call", timestamp="2025-03-18T09:00:00.000Z", request_id=f"r{number}", detail={})
        log.append(lambda body=body: body, durable=True)
    log.close()
    return root / "audit/audit-log.jsonl"


def test_where_init_has_been_all_is_well(root, doctor, kaiza, recorded):
    status, checks = doctor()
    told = kaiza("doctor")

    assert (status, told.status) == (0, 0)
    assert {name for name, check in checks.items() if check["verdict"] != "ok"} <= {"exchange", "paths"}
    assert {"python", "system", "paths", "workspace", "permissions", "sync", "lock", "exchange", "settings", "plans",
            "record", "anchor", "open-changes", "clock", "state", "client:claude-code"} <= checks.keys()  # fmt: skip
    assert told.out.startswith(f"{root}\nok       python")


def test_looking_changes_nothing(root, doctor, recorded, tmp_path):
    doctor()
    before = {path: path.read_bytes() if path.is_file() else None for path in tmp_path.rglob("*")}
    doctor()

    assert {path: path.read_bytes() if path.is_file() else None for path in tmp_path.rglob("*")} == before


def test_no_workspace_is_a_problem_that_names_init(doctor, tmp_path, monkeypatch):
    (tmp_path / "plain").mkdir()
    status, checks = doctor(str(tmp_path / "plain"))

    assert status == 1
    assert "kaiza init" in checks["workspace"]["todo"]


def test_a_directory_that_is_not_there_is_no(kaiza, tmp_path):
    assert kaiza("doctor", str(tmp_path / "none")).status == 1


def test_an_edited_record_is_a_problem(root, doctor, recorded):
    recorded.write_bytes(recorded.read_bytes().replace(b'"r1"', b'"rX"'))
    status, checks = doctor()

    assert status == 1
    assert checks["record"]["verdict"] == "problem"
    assert "kaiza audit accept" in checks["record"]["todo"]


def test_damage_found_earlier_is_a_problem_until_somebody_looks(root, doctor, kaiza, recorded):
    good = recorded.read_bytes()
    recorded.write_bytes(good.replace(b'"r1"', b'"rX"'))
    kaiza("audit", "verify")
    recorded.write_bytes(good)
    held = doctor()
    kaiza("audit", "verify")

    assert held[1]["record"]["verdict"] == "problem"
    assert "kaiza audit verify" in held[1]["record"]["todo"]
    assert doctor()[0] == 0


def test_a_torn_tail_is_a_warning(root, doctor, recorded):
    with recorded.open("ab") as log:
        log.write(b'{"half":')
    status, checks = doctor()

    assert (status, checks["record"]["verdict"]) == (0, "warning")


def test_a_record_without_an_anchor_is_a_warning(root, doctor, recorded, tmp_path):
    for anchor in (tmp_path / "state").rglob("anchor"):
        anchor.unlink()
    status, checks = doctor()

    assert (status, checks["anchor"]["verdict"]) == (0, "warning")


def test_a_change_that_was_left_open_is_named(root, doctor):
    log = audit_log.AuditLog(str(root), follow=lambda _: None)
    body = record.new_body("intent", timestamp="2025-03-18T09:00:00.000Z", request_id="r", tool_name="write_file",
                          changes=[], detail={})  # fmt: skip
    log.append(lambda: body, durable=True)
    log.close()
    _, checks = doctor()

    assert checks["open-changes"]["verdict"] == "warning"
    assert checks["open-changes"]["message"].startswith("1 ")


def test_a_faulty_plan_is_named(root, doctor):
    (root / "plans/PLAN-9.md").write_text("---\nnothing: 1\n---\n")
    status, checks = doctor()

    assert (status, checks["plans"]["verdict"]) == (0, "warning")
    assert "PLAN-9" in checks["plans"]["message"]


def test_settings_that_stop_the_start_are_a_problem(root, doctor):
    (root / "kaiza.toml").write_text("\nunknown = 1\n")
    status, checks = doctor()

    assert status == 1
    assert "line 2" in checks["settings"]["message"]


def test_a_record_from_the_future_is_a_warning(root, doctor):
    log = audit_log.AuditLog(str(root), follow=lambda _: None)
    log.append(
        lambda: record.new_body("call", timestamp="2999-01-01T00:00:00.000Z", request_id="r", detail={}), durable=True
    )
    log.close()

    assert doctor()[1]["clock"]["verdict"] == "warning"


def test_a_record_that_git_would_rewrite_is_a_warning(root, doctor):
    subprocess.run(["git", "init", "-q"], check=True)
    ignored = doctor()[1]["git"]
    (root / "audit/.gitignore").unlink()

    assert ignored["verdict"] == "ok"
    assert doctor()[1]["git"]["verdict"] == "warning"


def test_a_state_directory_inside_the_workspace_is_a_problem(root, doctor, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(root / "state"))
    status, checks = doctor()

    assert (status, checks["state"]["verdict"]) == (1, "problem")


def test_a_state_directory_that_others_may_write_is_a_warning(root, doctor, tmp_path):
    (place,) = (tmp_path / "state/kaiza").iterdir()
    place.chmod(0o777)

    assert doctor()[1]["state"]["verdict"] == "warning"


def test_a_read_only_record_is_a_problem(root, doctor, recorded):
    recorded.chmod(0o444)

    assert doctor()[1]["permissions"]["verdict"] == "problem"


def test_root_is_warned(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)

    assert [check.verdict for check in machine.check_user()] == ["warning"]


@pytest.mark.parametrize("lacking", ["sync", "lock", "link"])
def test_a_file_system_that_cannot_keep_the_promise_is_a_problem(workspace, monkeypatch, lacking):
    def fails(place):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(probe, "_TRIALS", {**probe._TRIALS, lacking: fails})
    told = {check.name: check.verdict for check in machine.check_file_system(workspace)}

    assert told[lacking] == "problem"
    assert list((workspace / "audit").iterdir()) == []


def test_exchange_and_openat2_may_lack_with_a_warning(workspace, monkeypatch):
    def fails(place):
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(probe, "_TRIALS", {**probe._TRIALS, "exchange": fails})
    monkeypatch.setattr(probe, "is_supported", lambda _: False)

    assert {check.name: check.verdict for check in machine.check_file_system(workspace)}["exchange"] == "warning"
    assert [check.verdict for check in machine.check_kernel(workspace)] == ["warning"]


def test_a_lock_that_is_given_twice_is_found(workspace, monkeypatch):
    monkeypatch.setattr(probe.fcntl, "flock", lambda *_: None)

    assert probe.try_file_system(workspace)["lock"] is not None


def test_what_the_disk_does_not_tell_is_unknown_and_3(root, doctor, monkeypatch):
    def fails(_root):
        raise OSError(5, "Input/output error")
        yield

    monkeypatch.setattr(workspace, "check_plans", fails)
    status, checks = doctor()

    assert (status, checks["plans"]["verdict"]) == (3, "unknown")


def test_no_client_is_a_warning_that_names_the_command(root, doctor, kaiza):
    kaiza("init", "--client", "claude-code", "--remove", "--yes")
    for name in ("plans", "audit"):
        (root / name).mkdir(exist_ok=True)
    status, checks = doctor()

    assert (status, checks["clients"]["verdict"]) == (0, "warning")
    assert "kaiza init --client" in checks["clients"]["todo"]


def test_a_client_whose_own_tools_write_is_a_warning(root, doctor):
    (root / ".claude/settings.json").unlink()

    assert doctor()[1]["client:claude-code:tools"]["verdict"] == "warning"


def test_codex_with_a_sandbox_that_writes_is_a_warning(root, doctor, kaiza):
    (root / ".codex").mkdir()
    (root / ".codex/config.toml").write_text('sandbox_mode = "workspace-write"\n')
    told = kaiza("init", "--client", "codex", "--yes")

    assert "sandbox_mode" in told.err
    assert doctor()[1]["client:codex:tools"]["verdict"] == "warning"


def test_a_command_that_is_not_kaizas_own_is_named_and_never_started(root, doctor, tmp_path):
    trap = tmp_path / "trap"
    script = tmp_path / "evil"
    script.write_text(f"#!/bin/sh\ntouch {trap}\n")
    script.chmod(0o755)
    entry = {"command": str(script), "args": ["serve", "--workspace", str(root)]}
    (root / ".mcp.json").write_text(json.dumps({"mcpServers": {"kaiza": entry}}))
    _, checks = doctor()

    assert checks["client:claude-code"]["verdict"] == "warning"
    assert not trap.exists()


def test_a_configuration_that_cannot_be_read_is_a_problem(root, doctor):
    (root / ".mcp.json").write_text("{")
    status, checks = doctor()

    assert (status, checks["client:claude-code"]["verdict"]) == (1, "problem")


@pytest.mark.parametrize("command", ["/nonexistent", "/bin/true", "/bin/cat"])
def test_a_server_that_does_not_answer_is_found(command):
    assert clients.probe_server(ServerCommand(command, ())) is not None


def test_journals_that_were_set_aside_are_named(root, doctor):
    (root / ".kaiza/journal").mkdir(parents=True)
    (root / ".kaiza/journal/x").write_text("{}\n")
    before = doctor()[1]
    app = App([str(root)])
    app.call("begin_session", {"role": "WINDSURF"})
    app.close()
    status, checks = doctor()

    assert "journals" not in before
    assert (status, checks["journals"]["verdict"]) == (0, "warning")
    assert checks["journals"]["message"].startswith("1 set aside")
