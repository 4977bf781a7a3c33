"""The demo: the whole story on the real server, each refusal with its code, and a no once a step goes otherwise."""

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

FORGETS_THE_SCOPE = """
import kaiza.policy.judge as judge
judge.SCOPE_RULES = tuple(rule for rule in judge.SCOPE_RULES if rule.__name__ != "check_paths_in_scope")
"""
"""A server that lost one rule."""


def played(tmp_path, *words, **environment):
    told = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TMPDIR": str(tmp_path), **environment}
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=tmp_path, env=told, capture_output=True, text=True, timeout=60, check=False)


def test_the_story_goes_as_it_is_told_and_every_refusal_shows_its_code(tmp_path):
    told = played(tmp_path, "-m", "kaiza", "demo", "--fast")

    assert (told.returncode, told.stderr) == (0, "")
    assert re.findall(r"refused, error_code ([A-Z_]+)$", told.stdout, re.MULTILINE) == REFUSALS
    assert "broken, record 17: edited" in told.stdout
    assert "intact" in told.stdout


def test_it_plays_in_the_directory_it_is_given_leaves_it_there_and_nowhere_else(tmp_path):
    (tmp_path / "home").mkdir()
    told = played(tmp_path, "-m", "kaiza", "demo", "--fast", "--keep", "stage", HOME=str(tmp_path / "home"))
    again = played(tmp_path, "-m", "kaiza", "demo", "--fast", "--keep", "stage")
    project = tmp_path / "stage" / "project"
    verified = played(
        tmp_path,
        "-m",
        "kaiza",
        "audit",
        "verify",
        "--workspace",
        str(project),
        XDG_STATE_HOME=f"{tmp_path}/stage/state",
    )

    assert (told.returncode, again.returncode, verified.returncode) == (0, 2, 0)
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
def test_a_step_that_goes_otherwise_ends_the_demo_with_1_and_says_which(tmp_path, wrong, instead):
    program = f"import sys, kaiza.cli.demo.story as story\nstory.{wrong}\nfrom kaiza.cli import dispatch\n"
    told = played(tmp_path, "-c", program + "sys.exit(dispatch.main(['demo', '--fast']))")

    assert told.returncode == 1
    assert f"The demo went wrong: {instead}" in told.stderr


def test_a_server_that_lost_a_rule_is_found_out(tmp_path):
    (tmp_path / "trap").mkdir()
    (tmp_path / "trap" / "sitecustomize.py").write_text(FORGETS_THE_SCOPE)
    told = played(tmp_path, "-m", "kaiza", "demo", "--fast", PYTHONPATH=str(tmp_path / "trap"))

    assert told.returncode == 1
    assert "write_file answered ok instead of PLAN_SCOPE_VIOLATION" in told.stderr
