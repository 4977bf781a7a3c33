"""Ordinary days with git and a Kaiza workspace, walked through from the command line with real servers and real git.

`docs/how-to/ordinary-days.md` describes the same days, one heading each.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from agents import HEAD, Agent, confirm, edit, hash_of

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "ordinary-days.md"
SCOPE = '{create: ["src/**"], modify: ["src/**"]}'
pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture(autouse=True)
def _own_git_configuration(tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "Ann")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "ann@example.org")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def project(tmp_path):
    """A repository with one commit, in which `kaiza init` has run and was committed."""
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "src" / "app.py").write_text("x = 1\n")
    git(root, "init", "-q", "-b", "main")
    assert kaiza(root, "init", "--yes").returncode == 0
    (root / ".gitignore").write_text(".kaiza/\n")
    commit(root, "Set up Kaiza")
    return root


def git(root, *words):
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def commit(root, message):
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", message)


def clone(source, target):
    git(target.parent, "clone", "-q", str(source), str(target))
    return target


def kaiza(root, *words, **environment):
    return subprocess.run(
        [sys.executable, "-m", "kaiza", *words],
        cwd=root,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
        timeout=60,
        env={**os.environ, **environment},
    )


@contextmanager
def agent_in(root, role="WINDSURF"):
    agent = Agent(root, role)
    try:
        yield agent
    finally:
        agent.close()


def draft(root, plan_id="PLAN-0002-app"):
    """An agent drafts a plan."""
    with agent_in(root, "ANTIGRAVITY") as planner:
        content = HEAD.format(plan_id=plan_id, status="DRAFT", scope=SCOPE, more="")
        assert planner.code("save_plan", plan_id=plan_id, content=content) == "ok"


def approve_by_editing(root, plan_id="PLAN-0002-app"):
    return edit(root, "status: DRAFT", "status: APPROVED", plan_id)


def draft_and_approve(root, plan_id="PLAN-0002-app"):
    draft(root, plan_id)
    return approve_by_editing(root, plan_id)


def write(root, plan_id="PLAN-0002-app", path="src/new.py", content="y = 2\n"):
    """What an agent hears that writes a file under the plan as it is now, in a server of its own."""
    with agent_in(root) as agent:
        return agent.call("write_file", path=path, content=content, plan_hash=hash_of(root, plan_id))


def outcome(answer):
    """The most precise name in an answer: its invariant, else its code, else ok."""
    return answer.get("invariant_id") or answer.get("error_code") or "ok"


def approve_by_command(root, plan_id="PLAN-0002-app"):
    return confirm(root, "plan", "approve", plan_id, "--as", "Ann")


def adopt(root):
    return confirm(root, "adopt", "--as", "Ann")


def test_fresh_clone(project, tmp_path):
    there = clone(project, tmp_path / "clone")

    draft_and_approve(there)
    assert outcome(write(there)) == "ok"
    assert kaiza(there, "doctor").returncode == 0
    assert kaiza(there, "adopt", "--show").returncode == 0


def test_clone_again_at_the_same_path(project, tmp_path):
    there = clone(project, tmp_path / "clone")
    draft_and_approve(there)
    assert outcome(write(there)) == "ok"
    assert kaiza(there, "freeze", "until Monday").returncode == 0
    shutil.rmtree(there)
    clone(project, there)

    assert "frozen" in kaiza(there, "status").stdout
    assert confirm(there, "thaw", "--as", "Ann") == 0
    draft_and_approve(there, "PLAN-0003-next")
    assert outcome(write(there, "PLAN-0003-next", "src/next.py")) == "ok"
    assert kaiza(there, "audit", "verify").returncode == 0
    assert "state_retired" in (there / "audit" / "audit-log.jsonl").read_text()


def test_git_clean(project):
    draft_and_approve(project)
    assert outcome(write(project)) == "ok"
    commit(project, "Approve a plan, and the change")
    git(project, "clean", "-fdxq")

    assert outcome(write(project, path="src/again.py")) == "PLAN_ARRIVED_APPROVED"
    assert approve_by_command(project) == 0
    assert outcome(write(project, path="src/again.py")) == "ok"
    assert kaiza(project, "audit", "verify").returncode == 0


def test_first_plan_with_a_formatter_on_save(project):
    draft(project)
    path = project / "plans" / "PLAN-0002-app.md"
    text = path.read_text().replace("status: DRAFT", "status: APPROVED")
    head, prose = text.removeprefix("---\n").split("---\n", 1)
    # As a formatter does: other quotes, another order, blanks at line ends, CRLF; saved by renaming.
    lines = [line.replace('"', "'") + "  " for line in reversed_sections(head)]
    (project / "plans" / "new.tmp").write_text(
        "---\r\n" + "\r\n".join(lines) + "\r\n---\r\n" + prose.replace("\n", "  \r\n"), newline=""
    )
    (project / "plans" / "new.tmp").rename(path)

    assert outcome(write(project)) == "ok"


def test_formatter_on_what_git_brought(project, tmp_path):
    draft(project)
    commit(project, "Draft a plan")
    there = clone(project, tmp_path / "clone")
    approve_by_editing(project)
    commit(project, "Approve a plan")
    assert kaiza(there, "plan", "list").returncode == 0
    git(there, "pull", "-q")
    path = there / "plans" / "PLAN-0002-app.md"
    path.write_text(path.read_text() + "\n")  # as end-of-file-fixer does
    answer = write(there)

    assert (outcome(answer), answer["cause"]["came_by"]) == ("PLAN_ARRIVED_APPROVED", "git")
    assert approve_by_command(there) == 0
    assert outcome(write(there)) == "ok"


def test_merge_conflict_in_a_plan(project):
    draft(project)
    commit(project, "Draft a plan")
    git(project, "switch", "-q", "-c", "theirs")
    approve_by_editing(project)
    edit(project, "# Why", "# Why they", "PLAN-0002-app")
    commit(project, "Approve it")
    git(project, "switch", "-q", "main")
    edit(project, "# Why", "# Why we", "PLAN-0002-app")
    commit(project, "Edit it")
    assert kaiza(project, "plan", "list").returncode == 0
    assert subprocess.run(["git", "merge", "theirs"], cwd=project, capture_output=True, check=False).returncode == 1
    text = git(project, "show", "main:plans/PLAN-0002-app.md").replace("status: DRAFT", "status: APPROVED")
    (project / "plans" / "PLAN-0002-app.md").write_text(text)
    answer = write(project)
    commit(project, "Merge")

    assert (outcome(answer), answer["cause"]["came_by"]) == ("PLAN_ARRIVED_APPROVED", "in_progress")
    assert outcome(write(project)) == "PLAN_ARRIVED_APPROVED"


def test_plan_taken_back(project):
    draft_and_approve(project)
    assert outcome(write(project)) == "ok"
    commit(project, "Approve a plan, and the change")
    edit(project, "status: APPROVED", "status: DRAFT", "PLAN-0002-app")
    assert kaiza(project, "plan", "list").returncode == 0
    git(project, "checkout", "--", "plans")

    assert outcome(write(project, path="src/more.py")) == "PLAN_WITHDRAWN"
    assert approve_by_command(project) == 0
    assert outcome(write(project, path="src/more.py")) == "ok"


def reversed_sections(head):
    """The top-level keys of a YAML text in reverse order, each with its indented lines."""
    sections = re.findall(r"(?m)^[^\s#].*\n(?:[ \t#].*\n)*", head)
    return "".join(reversed(sections)).splitlines()


def test_plan_written_by_hand(project):
    shutil.copy(project / "plans" / "PLAN-0001-example.md", project / "plans" / "PLAN-0002-app.md")
    edit(project, "PLAN-0001-example", "PLAN-0002-app", "PLAN-0002-app")
    edit(project, "status: DRAFT", "status: APPROVED", "PLAN-0002-app")
    answer = write(project, path="notes/hello.md")

    assert (outcome(answer), answer["cause"]["came_by"]) == ("PLAN_ARRIVED_APPROVED", "bound")
    assert approve_by_command(project) == 0
    assert outcome(write(project, path="notes/hello.md")) == "ok"


def test_branch_switch(project):
    draft_and_approve(project)
    assert outcome(write(project)) == "ok"
    git(project, "switch", "-q", "-c", "feature")
    commit(project, "Approve a plan, and the change")
    git(project, "switch", "-q", "main")
    with agent_in(project) as agent:
        assert [plan["plan_id"] for plan in agent.begun["plans"]] == ["PLAN-0001-example"]
    git(project, "switch", "-q", "feature")

    assert outcome(write(project, path="src/more.py")) == "ok"


def test_stash(project):
    draft(project)
    git(project, "add", "plans")
    approve_by_editing(project)
    assert outcome(write(project)) == "ok"
    git(project, "stash", "-q", "-u")
    git(project, "stash", "pop", "-q")

    assert outcome(write(project, path="src/more.py")) == "ok"


def test_rebase(project):
    git(project, "switch", "-q", "-c", "feature")
    draft_and_approve(project)
    assert outcome(write(project)) == "ok"
    commit(project, "Approve a plan, and the change")
    git(project, "switch", "-q", "main")
    (project / "README.md").write_text("# App\n")
    commit(project, "Add a readme")
    git(project, "switch", "-q", "feature")
    git(project, "rebase", "-q", "main")

    assert outcome(write(project, path="src/more.py")) == "ok"


def test_merge_of_an_approved_plan(project, tmp_path):
    there = clone(project, tmp_path / "clone")
    draft_and_approve(project)
    commit(project, "Approve a plan")
    git(there, "pull", "-q")
    refused = write(there)
    git(there, "remote", "set-head", "origin", "main")
    trusted = confirm(there, "trust", "merged", "--as", "Ann")

    assert (outcome(refused), refused["cause"]["came_by"]) == ("PLAN_ARRIVED_APPROVED", "git")
    assert trusted == 0
    assert outcome(write(there)) == "ok"


def test_pull_of_an_edited_plan(project, tmp_path):
    draft_and_approve(project)
    commit(project, "Approve a plan")
    there = clone(project, tmp_path / "clone")
    assert approve_by_command(there) == 0
    assert outcome(write(there)) == "ok"
    edit(project, "# Why", "# Why not", "PLAN-0002-app")
    commit(project, "Edit the plan")
    git(there, "stash", "-q", "-u")
    git(there, "pull", "-q")
    answer = write(there, path="src/more.py")

    assert outcome(answer) == "PLAN_CHANGED_AFTER_APPROVAL"
    assert approve_by_command(there) == 0
    assert outcome(write(there, path="src/more.py")) == "ok"


def test_pull_request_checked_out(project, tmp_path):
    draft(project)
    commit(project, "Draft a plan")
    theirs = clone(project, tmp_path / "theirs")
    git(theirs, "switch", "-q", "-c", "pull-request")
    edit(theirs, "status: DRAFT", "status: APPROVED", "PLAN-0002-app")
    commit(theirs, "Approve it myself")
    git(project, "fetch", "-q", str(theirs), "pull-request:pr")
    with agent_in(project) as agent:  # a server that runs while the branch is checked out
        git(project, "switch", "-q", "pr")
        answer = agent.call("write_file", path="src/new.py", content="y\n", plan_hash=hash_of(project, "PLAN-0002-app"))

    assert (outcome(answer), answer["cause"]["came_by"]) == ("PLAN_ARRIVED_APPROVED", "git")
    assert not (project / "src" / "new.py").exists()


def test_worktree_for_an_agent(project, tmp_path):
    draft_and_approve(project)
    assert outcome(write(project)) == "ok"
    commit(project, "Approve a plan, and the change")
    git(project, "worktree", "add", "-q", "-b", "agent", str(tmp_path / "worktree"))
    refused = write(tmp_path / "worktree")

    assert outcome(refused) == "PLAN_ARRIVED_APPROVED"
    assert approve_by_command(tmp_path / "worktree") == 0
    assert outcome(write(tmp_path / "worktree")) == "ok"


def test_devcontainer_rebuilt(project, tmp_path, monkeypatch):
    draft_and_approve(project)
    assert outcome(write(project)) == "ok"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "new-container"))  # the old one went with its container
    refused = write(project, path="src/more.py")

    assert outcome(refused) == "WORKSPACE_NOT_ADOPTED"
    assert adopt(project) == 0
    assert approve_by_command(project) == 0
    assert outcome(write(project, path="src/more.py")) == "ok"


@pytest.mark.parametrize("state", ["fresh", "kept"])
def test_continuous_integration(project, tmp_path, monkeypatch, state):
    """Hosted: a new machine each time. Self-hosted: the state and the checkout's path are those of the last run."""
    draft_and_approve(project)
    commit(project, "Approve a plan")
    configuration = tmp_path / "configuration"
    (configuration / "kaiza").mkdir(parents=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(configuration))
    there = tmp_path / "runner"
    (configuration / "kaiza" / "config.toml").write_text(
        f'[[trust.merged]]\nrepository = "{there}"\nref = "refs/remotes/origin/main"\n'
    )
    for run in range(2):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / (f"state-{run}" if state == "fresh" else "state")))
        shutil.rmtree(there, ignore_errors=True)
        clone(project, there)
        assert outcome(write(there)) == "ok"
        assert kaiza(there, "audit", "verify").returncode == 0


def test_moved_directory(project, tmp_path):
    draft_and_approve(project)
    assert outcome(write(project)) == "ok"
    moved = project.rename(tmp_path / "moved")
    refused = write(moved, path="src/more.py")

    assert outcome(refused) == "WORKSPACE_NOT_ADOPTED"
    assert kaiza(moved, "adopt", "--show").returncode == 1
    assert adopt(moved) == 0
    assert approve_by_command(moved) == 0
    assert outcome(write(moved, path="src/more.py")) == "ok"


def test_backup_restored_with_its_state(project, tmp_path):
    draft_and_approve(project)
    assert outcome(write(project)) == "ok"
    state = Path(os.environ["XDG_STATE_HOME"])
    for directory, name in ((project, "project"), (state, "state")):
        shutil.copytree(directory, tmp_path / "backup" / name, symlinks=True)
        shutil.rmtree(directory)
        shutil.copytree(tmp_path / "backup" / name, directory, symlinks=True)

    assert outcome(write(project, path="src/more.py")) == "ok"


def test_older_backup_restored_without_its_state(project, tmp_path):
    draft_and_approve(project)
    assert outcome(write(project)) == "ok"
    shutil.copytree(project, tmp_path / "backup", symlinks=True)
    assert outcome(write(project, path="src/more.py")) == "ok"
    shutil.rmtree(project)
    shutil.copytree(tmp_path / "backup", project, symlinks=True)
    refused = write(project, path="src/third.py")

    assert outcome(refused) == "SELF_AUDIT_FAILURE"  # the log ends before the checkpoint outside
    assert confirm(project, "audit", "accept", "--reason", "restored a backup", "--as", "Ann") == 0
    assert outcome(write(project, path="src/third.py")) == "ok"


def test_monorepo(project):
    part = project / "packages" / "part"
    part.mkdir(parents=True)
    assert kaiza(part, "init", "--yes").returncode == 0
    draft_and_approve(part)
    assert outcome(write(part)) == "ok"
    draft_and_approve(project, "PLAN-0003-all")
    edit_of_part = write(project, "PLAN-0003-all", "src/root.py")

    assert outcome(edit_of_part) == "ok"
    assert outcome(write(part, path="src/more.py")) == "ok"
    assert "packages/part" in kaiza(project, "doctor").stdout


def test_settings_edited_stricter_and_looser(project):
    settings = project / "kaiza.toml"
    settings.write_text('[approval]\nrequire = "command"\n')
    draft_and_approve(project)
    refused = write(project)
    settings.write_text("")
    still_refused = write(project)
    loosened = adopt(project)

    assert outcome(refused) == outcome(still_refused) == "PLAN_NOT_APPROVED"
    assert loosened == 0
    assert outcome(write(project)) == "ok"


def test_state_deleted(project):
    draft_and_approve(project)
    assert outcome(write(project)) == "ok"
    shutil.rmtree(os.environ["XDG_STATE_HOME"])
    refused = write(project, path="src/more.py")

    assert outcome(refused) == "WORKSPACE_NOT_ADOPTED"
    assert adopt(project) == 0
    assert approve_by_command(project) == 0
    assert outcome(write(project, path="src/more.py")) == "ok"


def test_no_ordinary_day_of_a_person_who_ran_init_asks_for_more_than_an_edited_word(project):
    """The example plan approved before the first session, then the log as a person reads it."""
    edit(project, "\nstatus: DRAFT", "\nstatus: APPROVED", "PLAN-0001-example")
    answer = write(project, "PLAN-0001-example", "notes/hello.md")
    shown = json.loads(kaiza(project, "plan", "show", "PLAN-0001-example", "--json").stdout)

    assert outcome(answer) == "ok"
    assert shown["sealed"]["how"] == "edited"


def test_the_page_has_a_heading_for_each_day():
    headings = {heading.lower() for heading in re.findall(r"(?m)^## (.+)$", PAGE.read_text())}
    functions = re.findall(r"(?m)^def test_(\w+)\(project", Path(__file__).read_text())
    days = {name.replace("_", " ") for name in functions if not name.startswith("no_")}

    assert len(days) > 15
    assert days <= headings
