"""Check commands of a plan: who may run them, what is recorded, time limit, output limit and environment."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from agents import checking, hash_of
from scenes import records

from kaiza.domain.call import CallRequest
from kaiza.store.checks import check_runner
from kaiza.store.config.schema_registry import SchemaRegistry


@pytest.fixture
def checked(make_app, workspace):
    """Run a script as the check of an approved plan."""
    app = make_app(workspace, allowed=("allow_checks", "allow_unsandboxed_checks"))
    run = checking(app, workspace)
    run.app = app
    return run


def test_checks_are_offered_only_where_the_operator_allows_them(begun):
    envelope = begun.call("run_checks", {"plan_hash": "0" * 64, "phase_id": "P1"}).envelope

    assert envelope["error_code"] == "TOOL_NOT_FOUND"


def test_a_check_that_passes_returns_its_output_and_is_recorded(checked, workspace):
    output = checked("print('fine')").output

    SchemaRegistry().load_tool_io("run_checks").output.validate(output)
    assert output["summary"] == f"{len(output['results'])} checks passed."
    assert "set_aside" not in output
    assert (output["results"][0]["exit_code"], output["results"][0]["output"]) == (0, "fine\n")
    assert records(workspace)[-1]["detail"]["checks"][0]["exit_code"] == 0


def test_each_command_of_a_check_reports_progress(checked, workspace):
    checked("")
    arguments, reports = {"plan_hash": hash_of(workspace), "phase_id": "P1"}, []
    checked.app.answer(
        checked.app.stamp(CallRequest("run_checks", arguments, report_progress=lambda *one: reports.append(one)))
    )

    assert reports == [(0, 1)]


@pytest.mark.rows("S1-48")
def test_the_output_of_a_failed_check_is_returned_but_not_recorded(checked, workspace):
    outcome = checked("print('broken'); raise SystemExit(3)")

    assert outcome.envelope["error_code"] == "PREFLIGHT_FAILED"
    assert outcome.envelope["cause"]["exit_code"] == 3
    assert outcome.evidence["results"][0]["output"] == "broken\n"
    assert "broken" not in str(records(workspace)[-1])


@pytest.mark.usefixtures("alarm")
def test_a_check_that_ignores_signals_is_killed_with_all_its_children_at_its_timeout(workspace):
    script = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "for _ in range(3):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        if os.fork() == 0:\n"
        "            open(f'pid-{os.getpid()}', 'w').close()\n"
        "        time.sleep(3600)\n"
        "time.sleep(3600)\n"
    )
    (workspace / "check.py").write_text(script)
    for seconds in (1, 5, 25):  # a busy machine may need longer to start the children
        result = check_runner.run_unsandboxed([sys.executable, "check.py"], str(workspace), seconds)
        pids = [path.name.removeprefix("pid-") for path in workspace.glob("pid-*")]
        if len(pids) >= 3:
            break

    assert result.exit_code is None
    assert len(pids) >= 3
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_huge_output_of_a_check_is_truncated(workspace):
    size = 1 << 30 if os.environ.get("KAIZA_LONG") else 64 << 20
    script = f"import sys\nfor _ in range({size >> 16}): sys.stdout.write('x' * 65536)\n"
    result = check_runner.run_unsandboxed([sys.executable, "-c", script], str(workspace), 60)

    assert result.exit_code == 0
    assert result.truncated
    assert len(result.output) == check_runner.MAX_OUTPUT_BYTES


def test_checks_do_not_inherit_secrets_from_the_environment(workspace, monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", "secret-1")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-2")
    result = check_runner.run_unsandboxed(
        [sys.executable, "-c", "import os; print(dict(os.environ))"], str(workspace), 10
    )

    assert "secret-" not in result.output
    assert "PATH" in result.output


def test_a_command_that_does_not_exist_fails_with_status_127(workspace):
    assert check_runner.run_unsandboxed(["no-such-program"], str(workspace), 5).exit_code == 127


def test_checks_of_one_workspace_run_one_after_the_other(make_app, workspace):
    (workspace / "kaiza.toml").write_text("[checks]\nseconds = 20\n")  # ends the second one if it is not refused
    allowed = ("allow_checks", "allow_unsandboxed_checks")
    run = checking(make_app(workspace, allowed=allowed), workspace)
    other = make_app(workspace, allowed=allowed)
    other.call("begin_session", {"role": "WINDSURF"})
    arguments = {"plan_hash": hash_of(workspace), "phase_id": "P1"}
    waiting = "import os\nopen('up', 'w').close()\nwhile not os.path.exists('go'): pass\nos.unlink('go')"
    with ThreadPoolExecutor() as threads:
        first = threads.submit(run, waiting)
        try:
            while not (workspace / "up").exists() and not first.done():
                pass
            refused = other.call("run_checks", arguments).envelope
        finally:
            (workspace / "go").touch()
    (workspace / "go").touch()

    assert (refused["error_code"], refused["cause"]["reason"]) == ("FILE_WRITE_FAILED", "checks_running")
    assert first.result().envelope is None
    assert other.call("run_checks", arguments).envelope is None
