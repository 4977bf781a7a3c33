"""`kaiza demo`: every step on the real server, and a failure if a step has another result."""

import re
import subprocess
import sys

import pytest

REFUSALS = [
    "SESSION_NOT_INITIALIZED",
    "PATH_TRAVERSAL_BLOCKED",
    "PLAN_NOT_FOUND",
    "PLAN_ENFORCEMENT_FAILED",
    "PLAN_NOT_APPROVED",
    "PLAN_SCOPE_VIOLATION",
    "SESSION_LOCKED",
]

WITHOUT_THE_SCOPE_RULE = """
import kaiza.policy.judge as judge
judge.SCOPE_RULES = tuple(rule for rule in judge.SCOPE_RULES if rule.__name__ != "check_paths_in_scope")
"""
"""Makes a server that lacks one rule."""


def run_demo(tmp_path, *words, **environment):
    result = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TMPDIR": str(tmp_path), **environment}
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=tmp_path, env=result, capture_output=True, text=True, timeout=60, check=False)


def test_the_demo_succeeds_and_every_refusal_shows_its_code(tmp_path):
    result = run_demo(tmp_path, "-m", "kaiza", "demo", "--fast")

    assert (result.returncode, result.stderr) == (0, "")
    assert re.findall(r"refused, error_code ([A-Z_]+)$", result.stdout, re.MULTILINE) == REFUSALS
    assert "broken, record 17: edited" in result.stdout
    assert "intact" in result.stdout


def test_the_demo_writes_only_to_the_directory_it_is_given(tmp_path):
    (tmp_path / "home").mkdir()
    result = run_demo(tmp_path, "-m", "kaiza", "demo", "--fast", "--keep", "stage", HOME=str(tmp_path / "home"))
    again = run_demo(tmp_path, "-m", "kaiza", "demo", "--fast", "--keep", "stage")
    project = tmp_path / "stage" / "project"
    verified = run_demo(
        tmp_path,
        "-m",
        "kaiza",
        "audit",
        "verify",
        "--workspace",
        str(project),
        XDG_STATE_HOME=f"{tmp_path}/stage/state",
    )

    assert (result.returncode, again.returncode, verified.returncode) == (0, 2, 0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "stage"]
    assert list((tmp_path / "home").iterdir()) == []
    assert "a person" in (project / "docs/usage.md").read_text()


@pytest.mark.parametrize(
    ("wrong", "instead"),
    [
        ("PLAN = story.PLAN.replace('src/farewell.py', 'src/other.py')", "apply_patch answered PLAN_SCOPE_VIOLATION"),
        ("_hash_files = lambda root: {'a': str(len(list(root.rglob('*'))))}", "undo did not restore everything"),
    ],
)
def test_an_unexpected_result_ends_the_demo_with_1_and_is_named(tmp_path, wrong, instead):
    program = f"import sys, kaiza.cli.demo.story as story\nstory.{wrong}\nfrom kaiza.cli import dispatch\n"
    result = run_demo(tmp_path, "-c", program + "sys.exit(dispatch.main(['demo', '--fast']))")

    assert result.returncode == 1
    assert f"The demo went wrong: {instead}" in result.stderr


def test_the_demo_detects_a_server_that_lacks_a_rule(tmp_path):
    (tmp_path / "trap").mkdir()
    (tmp_path / "trap" / "sitecustomize.py").write_text(WITHOUT_THE_SCOPE_RULE)
    result = run_demo(tmp_path, "-m", "kaiza", "demo", "--fast", PYTHONPATH=str(tmp_path / "trap"))

    assert result.returncode == 1
    assert "write_file answered ok instead of PLAN_SCOPE_VIOLATION" in result.stderr
