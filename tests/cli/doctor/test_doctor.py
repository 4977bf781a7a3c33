"""`kaiza doctor`: each problem is detected, and named with the next step."""

import json
import os
import socket
import subprocess
import threading
from contextlib import suppress

import pytest

from kaiza.app import App
from kaiza.domain.audit import record
from kaiza.queries.doctor import machine, server_probe, workspace
from kaiza.queries.doctor.client_listing import Listing
from kaiza.store.audit import log as audit_log
from kaiza.store.checks import sandbox
from kaiza.store.clients.client import ServerCommand
from kaiza.store.disk import state_dir
from kaiza.store.files import probe

LOG = "audit/audit-log.jsonl"
CLIENT = "client:claude-code"


@pytest.fixture
def root(workspace, kaiza, monkeypatch):
    """An initialized workspace with a client, checked by a plain user."""
    monkeypatch.setattr("kaiza.queries.doctor.machine.check_user", lambda: iter(()))
    # What a client says that this machine happens to have is not part of these tests.
    monkeypatch.setattr("kaiza.queries.doctor.clients.ask_client", lambda *_: Listing.NO_PROGRAM)
    kaiza("init", "--client", "claude-code", "--yes")
    return workspace


@pytest.fixture
def doctor(kaiza):
    def run(*words):
        result = kaiza("doctor", *words, "--json")
        return result.status, {one["check"]: one for one in json.loads(result.out)["checks"]}

    return run


def verdicts(checks):
    return {name: check["verdict"] for name, check in checks.items()}


@pytest.fixture
def recorded(root):
    """A log of three records, written as a server writes them."""
    for number in range(3):
        append(root, "call", request_id=f"r{number}")
    return root / "audit/audit-log.jsonl"


def append(root, kind, *, request_id="r", timestamp="2025-03-18T09:00:00.000Z", **members):
    log = audit_log.AuditLog(str(root), follow=lambda _: None)
    body = record.new_body(kind, timestamp=timestamp, request_id=request_id, detail={}, **members)
    log.append(lambda: body, durable=True)
    log.close()


def test_an_initialized_workspace_passes_every_check(root, doctor, kaiza, recorded):
    status, checks = doctor()
    result = kaiza("doctor")

    assert (status, result.status) == (0, 0)
    assert {name for name, check in checks.items() if check["verdict"] != "ok"} <= {"exchange", "paths"}
    assert {"python", "system", "paths", "workspace", "permissions", "sync", "lock", "exchange", "settings", "plans",
            "record", "anchor", "open-changes", "clock", "state", "server",
            "client:claude-code"} <= checks.keys()  # fmt: skip
    assert result.out.startswith(f"{root}\nok       python")


def test_doctor_changes_nothing(root, doctor, recorded, tmp_path):
    doctor()
    before = {path: path.read_bytes() if path.is_file() else None for path in tmp_path.rglob("*")}
    doctor()

    assert {path: path.read_bytes() if path.is_file() else None for path in tmp_path.rglob("*")} == before


def test_a_directory_that_is_not_a_workspace_is_a_problem_that_names_init(doctor, tmp_path, monkeypatch):
    (tmp_path / "plain").mkdir()
    status, checks = doctor(str(tmp_path / "plain"))

    assert status == 1
    assert "kaiza init" in checks["workspace"]["todo"]


def test_a_missing_directory_is_a_failure(kaiza, tmp_path):
    assert kaiza("doctor", str(tmp_path / "none")).status == 1


def edit_log(log):
    log.write_bytes(log.read_bytes().replace(b'"r1"', b'"rX"'))


def tear_log(log):
    log.write_bytes(log.read_bytes() + b'{"half":')


def append_intent(root):
    append(root, "intent", tool_name="write_file", changes=[])


def write_invalid_settings(root):
    (root / "kaiza.toml").write_text("\nunknown = 1\n")


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (lambda root: edit_log(root / LOG), ("record", "problem", "kaiza audit accept")),
        (lambda root: tear_log(root / LOG), ("record", "warning", "")),
        (lambda root: (root / LOG).chmod(0o444), ("permissions", "problem", "")),
        (lambda root: (state_of(root) / "anchor").unlink(), ("anchor", "warning", "")),
        (lambda root: state_of(root).chmod(0o777), ("state", "warning", "")),
        (lambda root: os.environ.update(XDG_STATE_HOME=str(root / "state")), ("state", "problem", "")),
        (append_intent, ("open-changes", "warning", "1 ")),
        (lambda root: append(root, "call", timestamp="2999-01-01T00:00:00.000Z"), ("clock", "warning", "")),
        (lambda root: (root / "plans/PLAN-9.md").write_text("---\nnothing: 1\n---\n"), ("plans", "warning", "PLAN-9")),
        (write_invalid_settings, ("settings", "problem", "line 2")),
        (write_invalid_settings, ("server", "problem", "line 2")),
        (write_invalid_settings, (CLIENT, "problem", "")),
        (lambda root: (root / ".mcp.json").write_text("{"), (CLIENT, "problem", "")),
        (lambda root: (root / ".claude/settings.json").unlink(), (f"{CLIENT}:tools", "warning", "")),
        (lambda _root: os.environ.update(PATH="/dev/null/none"), ("checks", "warning", "")),
    ],
)
def test_each_fault_is_a_problem_or_a_warning_that_names_it(root, doctor, monkeypatch, spoil, expected):
    for name in ("XDG_STATE_HOME", "PATH"):
        monkeypatch.setenv(name, os.environ[name])  # undoes what the fault changes
    name, verdict, words = expected
    spoil(root)
    status, checks = doctor()

    assert checks[name]["verdict"] == verdict
    assert words in checks[name]["message"] + checks[name]["todo"]
    assert status == (1 if verdict == "problem" else 0)


def state_of(root):
    return state_dir.path_of(str(root))


def test_earlier_damage_is_a_problem_until_the_log_is_verified_again(root, doctor, kaiza, recorded):
    good = recorded.read_bytes()
    recorded.write_bytes(good.replace(b'"r1"', b'"rX"'))
    kaiza("audit", "verify")
    recorded.write_bytes(good)
    held = doctor()
    kaiza("audit", "verify")

    assert held[1]["record"]["verdict"] == "problem"
    assert "kaiza audit verify" in held[1]["record"]["todo"]
    assert doctor()[0] == 0


def test_workspaces_below_are_a_warning_that_names_them(root, doctor):
    for path in ("packages/x/audit/audit-log.jsonl", "deep/down/.kaiza/id", "ignored/y/.kaiza/id", "docs/plans/x.md"):
        (root / path).parent.mkdir(parents=True)
        (root / path).write_text("# A text\n")
    (root / ".gitignore").write_text("ignored\n")
    status, checks = doctor()

    assert status == 0
    assert checks["nested"]["verdict"] == "warning"
    assert all(name in checks["nested"]["message"] for name in ("packages/x", "deep/down", "ignored/y"))
    assert "docs" not in checks["nested"]["message"]


def test_a_log_that_git_does_not_ignore_is_a_warning(root, doctor):
    subprocess.run(["git", "init", "-q"], check=True)
    ignored = doctor()[1]["git"]
    (root / "audit/.gitignore").unlink()

    assert ignored["verdict"] == "ok"
    assert doctor()[1]["git"]["verdict"] == "warning"


def test_running_as_root_is_a_warning(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)

    assert [check.verdict for check in machine.check_user()] == ["warning"]


@pytest.mark.parametrize("lacking", ["sync", "lock", "link"])
def test_a_file_system_without_fsync_locks_or_links_is_a_problem(workspace, monkeypatch, lacking):
    def fails(place):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(probe, "_TRIALS", {**probe._TRIALS, lacking: fails})
    result = {check.name: check.verdict for check in machine.check_file_system(workspace)}

    assert result[lacking] == "problem"
    assert list((workspace / "audit").iterdir()) == []


def test_a_full_disk_is_named_and_no_other_file_system_is_asked_for(small_disk, process):
    root = small_disk / "project"
    root.mkdir()
    assert process("init", "--yes", cwd=root).returncode == 0
    with (small_disk / "ballast").open("wb", buffering=0) as ballast, suppress(OSError):
        while ballast.write(bytes(4096)):
            pass
    result = process("doctor", "--json", cwd=root)
    (check,) = [one for one in json.loads(result.stdout)["checks"] if one["verdict"] == "problem"]

    assert (check["check"], check["message"]) == ("file-system", "the disk is full")
    assert check["todo"].startswith("Free some space.")


def test_missing_exchange_or_openat2_is_a_warning(workspace, monkeypatch):
    def fails(place):
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(probe, "_TRIALS", {**probe._TRIALS, "exchange": fails})
    monkeypatch.setattr(probe, "is_supported", lambda _: False)

    assert {check.name: check.verdict for check in machine.check_file_system(workspace)}["exchange"] == "warning"
    assert [check.verdict for check in machine.check_kernel(workspace)] == ["warning"]


def test_a_file_lock_that_two_holders_get_is_detected(workspace, monkeypatch):
    monkeypatch.setattr(probe.fcntl, "flock", lambda *_: None)

    assert probe.try_file_system(workspace)["lock"] is not None


def test_a_check_that_the_disk_prevents_is_unknown_and_exits_with_3(root, doctor, monkeypatch):
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


def test_a_configured_command_other_than_kaizas_is_a_warning_and_never_started(root, doctor, tmp_path):
    trap = tmp_path / "trap"
    script = tmp_path / "evil"
    script.write_text(f"#!/bin/sh\ntouch {trap}\n")
    script.chmod(0o755)
    entry = {"command": str(script), "args": ["serve", "--workspace", str(root)]}
    (root / ".mcp.json").write_text(json.dumps({"mcpServers": {"kaiza": entry}}))
    _, checks = doctor()

    assert checks["client:claude-code"]["verdict"] == "warning"
    assert not trap.exists()


@pytest.mark.parametrize("command", ["/dev/null/none", "/bin/true", "/bin/cat"])
def test_a_server_that_does_not_answer_is_detected(command):
    assert server_probe.probe_server(ServerCommand(command, ())) is not None


def test_a_server_that_answers_as_another_program_is_detected(tmp_path):
    script = tmp_path / "other"
    script.write_text("""#!/bin/sh
echo '{"id":1,"result":{"serverInfo":{"name":"other"}}}'
echo '{"id":2,"result":{"tools":[{"name":"x"}]}}'
""")
    script.chmod(0o755)

    assert server_probe.probe_server(ServerCommand(str(script), ())) is not None


def test_the_server_is_started_with_the_environment_of_a_client(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/dev/null/none")
    script = tmp_path / "server"
    script.write_text(f"#!/bin/sh\nexec /usr/bin/env > {tmp_path}/seen\n")
    script.chmod(0o755)
    server_probe.probe_server(ServerCommand(str(script), (), {"XDG_STATE_HOME": "/state"}))
    names = {line.partition("=")[0] for line in (tmp_path / "seen").read_text().splitlines()}

    assert {"PATH", "HOME", "XDG_STATE_HOME"} <= names
    assert "PYTHONPATH" not in names


@pytest.fixture
def listener():
    """A server on this machine that answers every connection with the same bytes."""
    started = []

    def start(answer):
        bound = socket.create_server(("127.0.0.1", 0))

        def serve():
            with suppress(OSError):
                while True:
                    with bound.accept()[0] as connection:
                        connection.recv(1000)
                        connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        started.append((bound, thread))
        return f"http://127.0.0.1:{bound.getsockname()[1]}/mcp"

    yield start
    for bound, thread in started:
        bound.shutdown(socket.SHUT_RDWR)
        thread.join()
        bound.close()


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (b'HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{"status":"ok"}', "ok"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "warning"),
        (b"\x1b[2J nothing\r\n", "warning"),
        (b"", "warning"),
    ],
)
def test_doctor_checks_the_health_of_a_server_over_http(root, doctor, kaiza, listener, answer, verdict):
    kaiza("init", "--client", "claude-code", "--http", listener(answer), "--yes")
    check = doctor()[1]["client:claude-code"]

    assert check["verdict"] == verdict
    assert check["message"].isprintable()


@pytest.mark.parametrize("url", ["https://kaiza.example.org/mcp", "http://kaiza.example.org", "file:///etc", "x", ""])
def test_doctor_contacts_no_other_machine(url, monkeypatch):
    def refuse(*_):
        raise AssertionError(url)

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)

    assert server_probe.probe_url(url) is None


def test_journals_set_aside_are_a_warning(root, doctor):
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


def test_a_sandbox_that_works_is_ok(root, doctor):
    if sandbox.find_bubblewrap(str(root)) is None:
        pytest.skip("bubblewrap is missing, or cannot make a sandbox here")
    _, checks = doctor()

    assert checks["checks"]["verdict"] == "ok"


@pytest.mark.parametrize("ending", ['exec "$@"', "exit 0"])
def test_a_sandbox_that_does_not_hold_is_a_problem_and_one_that_fails_a_warning(
    root, doctor, monkeypatch, tmp_path, ending
):
    program = tmp_path / "bin" / "bwrap"
    program.parent.mkdir()
    probed = '[ "$1" = --args ] || exit 0'  # the trial run has its options on the command line
    program.write_text(f'#!/bin/sh\n{probed}\nwhile [ "$1" != -- ]; do shift; done\nshift\n{ending}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    _, checks = doctor()
    places = ("the home directory", "the state directory", "plans/", "the network")

    assert checks["checks"]["verdict"] == ("problem" if ending == 'exec "$@"' else "warning")
    assert all(name in checks["checks"]["message"] for name in places) == (ending == 'exec "$@"')
    assert [path.name for path in tmp_path.rglob(".kaiza-probe-*")] == []
