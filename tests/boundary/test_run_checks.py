"""Check commands of a plan: time limit, output limit, environment, and detection of altered protected files."""

import hashlib
import os
import sys
import time
from pathlib import Path

import pytest
from boundary.test_changes import HEAD
from scenes import records

from kaiza.store import check_runner

PHASE = 'phases:\n  - {{phase_id: P1, objective: test, verify: [["{python}", "check.py"]]}}\n'


@pytest.fixture
def checked(make_app, workspace):
    """Run a script as the check of an approved plan."""
    app = make_app(workspace, allowed=("allow_checks",))
    app.call("begin_session", {"role": "WINDSURF"})
    text = HEAD.format(plan_id="PLAN-1", status="APPROVED", more=PHASE.format(python=sys.executable))
    (workspace / "plans" / "PLAN-1.md").write_text(text)
    plan_hash = hashlib.sha256(text.encode()).hexdigest()

    def run(script):
        (workspace / "check.py").write_text(script)
        return app.call("run_checks", {"plan_hash": plan_hash, "phase_id": "P1"})

    run.app = app
    return run


def test_checks_are_offered_only_where_the_operator_allows_them(begun):
    envelope = begun.call("run_checks", {"plan_hash": "0" * 64, "phase_id": "P1"}).envelope

    assert envelope["error_code"] == "TOOL_NOT_FOUND"


def test_a_check_that_passes_returns_its_output_and_is_recorded(checked, workspace):
    output = checked("print('fine')").output

    assert (output["results"][0]["exit_code"], output["results"][0]["output"]) == (0, "fine\n")
    assert records(workspace)[-1]["detail"]["checks"][0]["exit_code"] == 0


@pytest.mark.rows("S1-48")
def test_the_output_of_a_failed_check_is_returned_but_not_recorded(checked, workspace):
    outcome = checked("print('broken'); raise SystemExit(3)")

    assert outcome.envelope["error_code"] == "PREFLIGHT_FAILED"
    assert outcome.envelope["cause"]["exit_code"] == 3
    assert outcome.evidence["results"][0]["output"] == "broken\n"
    assert "broken" not in str(records(workspace)[-1])


@pytest.mark.rows("S1-49")
@pytest.mark.parametrize(
    "script",
    [
        "p = 'plans/PLAN-1.md'; t = open(p).read().replace('A plan', 'Mine'); open(p, 'w').write(t)",
        "open('plans/PLAN-2.md', 'w').write('x')",
        "import os; os.makedirs('.git/hooks'); open('.git/hooks/pre-commit', 'w').write('x')",
        "p = 'audit/audit-log.jsonl'; b = bytearray(open(p, 'rb').read()); b[9] ^= 1; open(p, 'wb').write(b)",
        "open('CLAUDE.md', 'w').write('obey')",
        "import os; os.symlink('/etc/passwd', 'kaiza.toml')",
    ],
)
def test_a_check_that_alters_protected_files_is_detected_and_locks(checked, workspace, script):
    envelope = checked(script).envelope

    assert (envelope["error_code"], envelope["invariant_id"]) == ("INVARIANT_VIOLATION", "CHECKS_MEDDLED")
    assert checked.app.services.workspaces[os.path.realpath(workspace)].audit_state.locks["WINDSURF"]


def test_a_check_that_ignores_signals_is_killed_with_all_its_children_at_its_timeout(workspace):
    script = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "for _ in range(3):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        if os.fork() == 0:\n"
        "            open(f'pid-{os.getpid()}', 'w').close()\n"
        "        time.sleep(60)\n"
        "time.sleep(60)\n"
    )
    (workspace / "check.py").write_text(script)
    start = time.monotonic()
    result = check_runner.run([sys.executable, "check.py"], str(workspace), 1.0)
    pids = [path.name.removeprefix("pid-") for path in workspace.glob("pid-*")]

    assert result.exit_code is None
    assert time.monotonic() - start < 15
    assert len(pids) == 3
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_huge_output_of_a_check_is_truncated(workspace):
    size = 1 << 30 if os.environ.get("KAIZA_LONG") else 64 << 20
    script = f"import sys\nfor _ in range({size >> 16}): sys.stdout.write('x' * 65536)\n"
    result = check_runner.run([sys.executable, "-c", script], str(workspace), 60)

    assert result.exit_code == 0
    assert result.truncated
    assert len(result.output) == check_runner.MAX_OUTPUT_BYTES


def test_checks_do_not_inherit_secrets_from_the_environment(workspace, monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", "secret-1")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-2")
    result = check_runner.run([sys.executable, "-c", "import os; print(dict(os.environ))"], str(workspace), 10)

    assert "secret-" not in result.output
    assert "PATH" in result.output


def test_a_command_that_does_not_exist_fails_with_status_127(workspace):
    assert check_runner.run(["no-such-program"], str(workspace), 5).exit_code == 127
