"""One workspace of two accounts, of a host and a container, and of several worktrees, from the command line.

The how-to pages `several-people-one-workspace`, `host-and-container` and `worktrees` describe the same.
"""

import os
import subprocess
import sys

import pytest
from agents import Agent, confirm, edit, hash_of, plan
from cli.test_ordinary_days import adopt, approve_by_command, draft_and_approve, git, kaiza, outcome, project, write

__all__ = ["project"]  # a fixture

AS_ANOTHER_ACCOUNT = """
import os, pkgutil, sys
import kaiza
for module in pkgutil.walk_packages(kaiza.__path__, "kaiza."):
    if module.name != "kaiza.__main__":
        __import__(module.name)
os.setgid(65534)
os.setuid(65534)
from kaiza.cli import dispatch
sys.exit(dispatch.main(sys.argv[1:]))
"""


def on(monkeypatch, state):
    """From now on, processes belong to the side with this state directory."""
    monkeypatch.setenv("XDG_STATE_HOME", str(state))


def test_host_and_container_record_into_one_log_after_one_adoption(project, tmp_path, monkeypatch):
    host, container = tmp_path / "host", tmp_path / "container"
    on(monkeypatch, host)
    assert kaiza(project, "init", "--yes").returncode == 0
    draft_and_approve(project)
    agent = Agent(project)
    try:
        assert agent.write("src/host.py", hash_of(project, "PLAN-0002-app")) == "ok"
        on(monkeypatch, container)
        refused = write(project, path="src/container.py")
        assert adopt(project) == 0
        assert approve_by_command(project) == 0
        adopted = write(project, path="src/container.py")
        on_host = agent.write("src/host-again.py", hash_of(project, "PLAN-0002-app"))
        assert kaiza(project, "freeze", "from the container").returncode == 0
        frozen = agent.write("src/frozen.py", hash_of(project, "PLAN-0002-app"))
    finally:
        agent.close()

    assert outcome(refused) == "WORKSPACE_NOT_ADOPTED"
    assert outcome(adopted) == on_host == "ok"
    assert frozen == "POLICY_VIOLATION"
    for state in (host, container):
        on(monkeypatch, state)
        assert kaiza(project, "audit", "verify").returncode == 0
        assert "2 state directories" in kaiza(project, "status").stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another account")
def test_another_account_changes_nothing_and_is_told_why(project, tmp_path):
    plan(project)
    confirm(project, "plan", "approve", "PLAN-1", "--as", "Ann")
    tmp_path.chmod(0o755)
    before = (project / "audit" / "audit-log.jsonl").read_bytes()
    home = tmp_path / "nobody"
    home.mkdir()
    os.chown(home, 65534, 65534)
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "XDG_STATE_HOME": str(home / "state")}
    results = [
        subprocess.run(
            [sys.executable, "-c", AS_ANOTHER_ACCOUNT, *words, "--workspace", str(project)],
            cwd="/", env=environment, capture_output=True, text=True, check=False, timeout=60,
        )
        for words in (["status"], ["plan", "list"], ["freeze"], ["doctor"])
    ]  # fmt: skip

    assert [result.returncode != 0 for result in results] == [True] * len(results)
    assert not any("Traceback" in result.stderr for result in results)
    assert (project / "audit" / "audit-log.jsonl").read_bytes() == before


def test_worktrees_have_their_own_log_freeze_and_approvals(project, tmp_path):
    draft_and_approve(project)
    assert kaiza(project, "plan", "list").returncode == 0  # sees the edited word before git has the bytes
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "Approve a plan")
    trees = [tmp_path / name for name in ("one", "two")]
    for tree in trees:
        git(project, "worktree", "add", "-q", "-b", tree.name, str(tree))
        assert approve_by_command(tree) == 0
    assert kaiza(trees[0], "freeze", "only here").returncode == 0

    assert outcome(write(trees[0])) == "WORKSPACE_FROZEN"
    assert outcome(write(trees[1])) == "ok"
    assert outcome(write(project)) == "ok"


def test_a_machine_without_a_terminal_cannot_approve_adopt_or_trust(project):
    edit(project, "status: DRAFT", "status: APPROVED", "PLAN-0001-example")
    words = (["plan", "approve", "PLAN-0001-example"], ["trust", "merged", "--ref", "refs/heads/main"])

    assert [kaiza(project, *line).returncode for line in words] == [3, 3]
