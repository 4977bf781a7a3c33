"""Attempts of an agent to change what governs it: each is refused and recorded, and changes nothing."""

import base64
import os
import random
import shutil
import unicodedata
from pathlib import Path

import pytest
from agents import HEAD, WIDE, Agent, plan, sha
from scenes import bind, records

LONG = bool(os.environ.get("KAIZA_LONG"))


def draft_with(status):
    return HEAD.format(plan_id="PLAN-9", status=status, scope='{modify: ["src/**"]}', more="")


DRAFT = draft_with("DRAFT")

APPROVED = {
    "plain": "APPROVED",
    "quoted": '"APPROVED"',
    "single-quoted": "'APPROVED'",
    "escaped": '"\\u0041PPROVED"',
    "escaped by a byte": '"\\x41PPROVED"',
    "folded": ">-\n  APPROVED",
    "literal": "|-\n  APPROVED",
    "on the next line": "\n  APPROVED",
    "tagged": "!!str APPROVED",
    "anchored": "&a APPROVED",
    "aliased": "*a",
    "another case": "Approved",
    "lower case": "approved",
    "padded": "APPROVED   ",
    "look-alike": "\u0410PPROVED",
    "full-width": "\uff21PPROVED",
    "zero width": "APP\u200bROVED",
    "with a comment": "APPROVED # DRAFT",
    "draft in a comment": "DRAFT # status: APPROVED",
    "doubled": "DRAFT\nstatus: APPROVED",
    "doubled first": "APPROVED\nstatus: DRAFT",
    "doubled in another case": "DRAFT\nStatus: APPROVED",
    "doubled in quotes": 'DRAFT\n"status": APPROVED',
    "doubled with an escape": 'DRAFT\n"st\\u0061tus": APPROVED',
    "explicit key": "DRAFT\n? status\n: APPROVED",
    "merged": "DRAFT\n<<: {status: APPROVED}",
    "a list": "[APPROVED]",
    "a mapping": "{APPROVED: APPROVED}",
    "null": "null",
    "nothing": "",
    "a line separator": "DRAFT\u2028status: APPROVED",
    "a carriage return": "DRAFT\rstatus: APPROVED",
    "next line character": "DRAFT\x85status: APPROVED",
    "a second document": "DRAFT\n---\nstatus: APPROVED",
    "rejected": "REJECTED",
    "done": "DONE",
}
WHOLE = {
    "a byte order mark": "\ufeff" + draft_with("APPROVED"),
    "a draft with a byte order mark": "\ufeff" + DRAFT,
    "a flow mapping": "---\n{kaiza_plan: 1, plan_id: PLAN-9, title: t, status: APPROVED, author: a,"
    ' created: "2026-11-18", scope: {}}\n---\n',
    "a second head": DRAFT + "\n---\nstatus: APPROVED\n---\n",
    "a head before": "---\nstatus: APPROVED\n---\n" + DRAFT,
    "a directive": "%YAML 1.2\n" + draft_with("APPROVED"),
    "another plan's name": draft_with("APPROVED").replace("PLAN-9", "PLAN-1"),
    "json": '{"kaiza_plan": 1, "plan_id": "PLAN-9", "status": "APPROVED"}',
    "approved by a name": DRAFT.replace("approved_by: null", "approved_by: Ann"),
    "empty": "",
}

ROOTS = ["plans/PLAN-1.md", "plans/PLAN-2.md", "plans/deep/x", "audit/audit-log.jsonl", "audit/x", ".kaiza/journal/x"]
ROOTS += ["kaiza.toml", ".kaiza/objects/00/x", ".kaiza", "plans", "audit"]
ANYWHERE = [".git/config", ".git/hooks/pre-commit", "src/.git/config", ".gitmodules", "src/.gitattributes", ".husky/x"]
AGENT_FILES = [
    ".claude/settings.json", ".cursor/rules/x", ".vscode/tasks.json", ".codex/config.toml", ".gemini/settings.json",
    ".kiro/x", ".windsurf/x", ".agents/x", ".idea/x", ".devcontainer/devcontainer.json", ".mcp.json", ".cursorrules",
    "AGENTS.md", "CLAUDE.md", "GEMINI.md", ".github/workflows/x.yml", ".github/hooks/x", ".pre-commit-config.yaml",
    ".envrc", "src/.claude/x", "src/AGENTS.md",
]  # fmt: skip
SECRET = [".env", ".env.local", "src/id_rsa", "x.pem", "src/deep/y.key", ".npmrc", ".netrc", ".pypirc"]
LOOK_ALIKES = [
    "PLANS/PLAN-1.md", "Plans/x", "plans./x", "plans /x", "\uff50lans/x", "pl\u200bans/x", "plan\u017f/x", "AUDIT/x",
    "audit\u2060/x", ".KAIZA/x", ".kaiza./x", "KAIZA.TOML", "kaiza.toml.", "\u212aaiza.toml", ".GIT/config",
    ".git./config", ".git /config", ".GiT/x",
    "GIT~1/config", "git~1/config", "src/.Git/hooks/x", ".g\u200dit/config", ".\ufeffgit/config", ".GITMODULES",
    ".Claude/x", ".CLAUDE/settings.json", "agents.MD", "claude.md", ".claude./x", "\uff0eclaude/x",
    ".Github/Workflows/x", ".ENV", ".Env.local", "X.PEM", "ID_RSA",
]  # fmt: skip
SPELLINGS = [
    "./plans/PLAN-1.md", "plans//PLAN-1.md", "src/../plans/PLAN-1.md", "./.git/config", "src/./../.git/config",
    "../project/plans/PLAN-1.md", "plans/./PLAN-1.md", "plans/PLAN-1.md/", "src/..//audit/x", "/etc/passwd", "../x",
]  # fmt: skip
PROTECTED = [*ROOTS, *ANYWHERE, *AGENT_FILES, *SECRET, *LOOK_ALIKES, *SPELLINGS]
REFUSALS = {
    "POLICY_VIOLATION", "PATH_TRAVERSAL_BLOCKED", "OUTSIDE_WORKSPACE", "INVALID_PATH", "PATCH_INVALID",
}  # fmt: skip
MINE_HASH = sha(b"mine\n")


@pytest.fixture
def scene(workspace):
    """A workspace with every kind of protected file, and a plan with the widest scope."""
    approved = plan(workspace, scope=WIDE)  # before the broken .git, which makes the origin of new plans unknown
    for path in [*ROOTS[1:3], *ANYWHERE, *AGENT_FILES, *SECRET, ".kaiza/objects/00/x"]:
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text("theirs\n")
    (workspace / "kaiza.toml").write_text("")
    (workspace / "src" / "mine").write_text("mine\n")
    bind(workspace)
    return approved


def manifest(root):
    """Every file and directory, without the log, the run log and the locks that any call adds."""
    found = {}
    for here, names, files in os.walk(root):
        if Path(here) == root:
            names.remove("audit")
        names[:] = [name for name in names if not (Path(here) == root / ".kaiza" and name in ("locks", "live", "runs"))]
        for name in files:
            path = Path(here, name)
            found[str(path)] = os.readlink(path) if path.is_symlink() else path.read_bytes()
        found[here] = sorted(names)
    return found


def attempts(path, plan_hash):
    """Every kind of change of a path, also as either end of a move and through a patch."""
    theirs = sha(b"theirs\n")
    new = f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"
    old = f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-theirs\n+ours\n"
    gone = f"--- a/{path}\n+++ /dev/null\n@@ -1 +0,0 @@\n-theirs\n"
    to = f"diff --git a/src/mine b/{path}\nsimilarity index 100%\nrename from src/mine\nrename to {path}\n"
    away = f"diff --git a/{path} b/src/new\nsimilarity index 100%\nrename from {path}\nrename to src/new\n"
    yield "write_file", {"path": path, "content": "ours\n"}
    yield "write_file", {"path": path, "content": "ours\n", "expected_hash": theirs}
    yield "edit_file", {"path": path, "expected_hash": theirs, "edits": [{"old_text": "theirs", "new_text": "ours"}]}
    yield "delete_file", {"path": path, "expected_hash": theirs}
    yield "move_file", {"source": "src/mine", "destination": path, "expected_hash": MINE_HASH}
    yield "move_file", {"source": path, "destination": "src/new", "expected_hash": theirs}
    for patch in (new, old, gone, to, away):
        yield "apply_patch", {"patch": base64.b64encode(patch.encode()).decode(), "encoding": "base64"}


def try_changes(app, workspace, path, plan_hash):
    """Error code and role lock of every attempt. The lock is removed before the next one."""
    for tool, asked in attempts(path, plan_hash):
        envelope = app.call(tool, {**asked, "plan_hash": plan_hash}).envelope
        state = next(iter(app.services.workspaces.values())).audit_state
        yield tool, envelope and envelope["error_code"], state.locks.pop("WINDSURF", None)
        state.usage.clear()


@pytest.mark.parametrize("path", PROTECTED)
def test_no_spelling_of_a_protected_path_can_be_changed(begun, workspace, scene, path):
    before = manifest(workspace)
    found = list(try_changes(begun, workspace, path, scene))
    written = records(workspace)[-len(found) :]

    assert {code for _, code, _ in found} <= REFUSALS, found
    assert manifest(workspace) == before
    assert [(each["kind"], each["error_code"]) for each in written] == [("call", code) for _, code, _ in found]
    assert any(lock for _, _, lock in found)
    assert "theirs" not in str(written) + str(found)


def add_links(workspace):
    """Add links inside the workspace that lead to protected files."""
    (workspace / "src" / "to-plans").symlink_to("../plans")
    (workspace / "src" / "to-git").symlink_to("../.git")
    (workspace / "src" / "a-plan.md").symlink_to("../plans/PLAN-1.md")
    (workspace / "src" / "deep").mkdir(exist_ok=True)
    (workspace / "src" / "deep" / "up").symlink_to("../..")
    (workspace / "src" / "to-claude").symlink_to("../.claude")
    (workspace / "src" / "dangling").symlink_to("../plans/PLAN-NEW.md")
    (workspace / "src" / "absolute").symlink_to(workspace / "plans")


@pytest.mark.parametrize(
    "path",
    [
        "src/to-plans/PLAN-1.md", "src/to-plans/PLAN-NEW.md", "src/to-git/config", "src/to-git/hooks/pre-commit",
        "src/a-plan.md", "src/deep/up/plans/PLAN-1.md", "src/deep/up/.git/config", "src/deep/up/kaiza.toml",
        "src/to-claude/settings.json", "src/dangling", "src/absolute/PLAN-1.md", "src/deep/up/src/to-plans/PLAN-1.md",
    ],
)  # fmt: skip
def test_no_protected_path_can_be_changed_through_a_link(begun, workspace, scene, path):
    add_links(workspace)
    # The first change under a plan keeps the plan's text.
    begun.call("write_file", {"path": "src/first", "content": "x\n", "plan_hash": scene, "dry_run": True})
    before = manifest(workspace)
    found = list(try_changes(begun, workspace, path, scene))

    assert all(code not in (None, "ok") for _, code, _ in found), found
    assert manifest(workspace) == before
    assert len([each for each in records(workspace) if each["outcome"] == "error"]) == len(found)


def test_a_hard_link_to_a_plan_is_not_written_through(begun, workspace, scene):
    os.link(workspace / "plans" / "PLAN-1.md", workspace / "src" / "innocent")
    before = (workspace / "plans" / "PLAN-1.md").read_bytes()
    asked = {"path": "src/innocent", "content": "x", "expected_hash": sha(before), "plan_hash": scene}

    assert begun.call("write_file", asked).envelope["error_code"] == "FILE_WRITE_FAILED"
    assert (workspace / "plans" / "PLAN-1.md").read_bytes() == before


def test_a_plan_can_unlock_agent_instructions_by_name_but_no_governing_file(begun, workspace, scene):
    shutil.rmtree(workspace / ".git")
    unlocks = ', unlock: ["AGENTS.md", ".claude/settings.json"]}'
    wide = plan(workspace, "PLAN-2", scope=WIDE.replace("}]}", "}]" + unlocks))
    asked = {"content": "ours\n", "expected_hash": sha(b"theirs\n"), "plan_hash": wide}
    unlocked = [
        begun.call("write_file", {**asked, "path": path}).envelope for path in ("AGENTS.md", ".claude/settings.json")
    ]
    unnamed = begun.call("write_file", {**asked, "path": "src/AGENTS.md"}).envelope
    plan_unlocking_git = plan(workspace, "PLAN-3", scope=WIDE.replace("}]}", '}], unlock: [".git/config"]}'))
    report_state = begun.call("write_report", {"title": "t", "content": "c"}).output["state"]
    refused = begun.call("write_file", {**asked, "path": "src/new", "plan_hash": plan_unlocking_git}).envelope

    assert unlocked == [None, None]
    assert (unnamed["error_code"], unnamed["invariant_id"]) == ("POLICY_VIOLATION", "CONTROL_PLANE_PROTECTED")
    assert report_state == "active"
    assert refused["error_code"] == "PLAN_ENFORCEMENT_FAILED"


@pytest.fixture
def planner(app):
    app.call("begin_session", {"role": "ANTIGRAVITY"})
    return app


@pytest.mark.parametrize("spelling", [*APPROVED, *WHOLE])
def test_no_spelling_of_an_approved_status_can_be_saved_and_attempts_are_recorded(planner, workspace, spelling):
    content = draft_with(APPROVED[spelling]) if spelling in APPROVED else WHOLE[spelling]
    outcome = planner.call("save_plan", {"plan_id": "PLAN-9", "content": content})
    (last,) = records(workspace)[1:]

    assert outcome.envelope["error_code"] == "PLAN_ENFORCEMENT_FAILED"
    assert os.listdir(workspace / "plans") == []
    assert (last["tool_name"], last["error_code"]) == ("save_plan", "PLAN_ENFORCEMENT_FAILED")
    assert "APPROVED" not in str(last["cause"])


@pytest.mark.parametrize("name", ["../PLAN-9", "PLAN-9.md", "plan-9", "PLAN-9/../../x", "", "PLAN 9", "PLAN-\u0417"])
def test_no_plan_id_can_direct_a_draft_elsewhere(planner, workspace, name):
    before = sorted(os.listdir(workspace))
    outcome = planner.call("save_plan", {"plan_id": name, "content": DRAFT})

    assert outcome.envelope is not None
    assert os.listdir(workspace / "plans") == []
    assert sorted(os.listdir(workspace)) == before
    assert records(workspace)[-1]["error_code"] == outcome.envelope["error_code"]


def test_an_approved_plan_is_not_replaced_by_a_draft(planner, workspace):
    approved = plan(workspace, "PLAN-9")
    outcome = planner.call("save_plan", {"plan_id": "PLAN-9", "content": DRAFT})

    assert outcome.envelope["error_code"] == "FILE_ALREADY_EXISTS"
    assert sha((workspace / "plans/PLAN-9.md").read_bytes()) == approved


def test_an_undo_does_not_write_through_a_link_to_a_plan(begun, workspace, scene):
    made = begun.call("write_file", {"path": "src/new", "content": "x", "plan_hash": scene}).output["request_id"]
    (workspace / "src" / "new").unlink()
    (workspace / "src" / "new").symlink_to("../plans/PLAN-1.md")
    before = manifest(workspace)
    output = begun.call("undo_changes", {"request_ids": [made], "plan_hash": scene}).output

    assert (output["changes"], [each["path"] for each in output["kept"]]) == ([], ["src/new"])
    assert manifest(workspace) == before


def folded_name(name):
    """What a reader or a case-folding file system may take a name for, computed without Kaiza's own rules."""
    bare = "".join(each for each in unicodedata.normalize("NFKC", name) if unicodedata.category(each) != "Cf")
    return bare.replace("\ufe0f", "").replace("\u034f", "").casefold().rstrip(". ")


def disguise(path, dice):
    """The path in random case and width, with invisible characters."""
    invisible = ["\u200b", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u034f", "\ufe0f"]
    for letter in path:
        wide = chr(ord(letter) + 0xFEE0) if "!" <= letter <= "~" and letter != "/" else letter
        yield dice.choice([letter, letter, letter.upper(), wide])
        if dice.random() < 0.05:
            yield dice.choice(invisible)
    yield dice.choice(["", "", ".", " ", "\u3000", "/.", "//"])


@pytest.mark.long
def test_no_random_disguise_of_a_protected_path_can_be_changed(begun, workspace, scene):
    dice = random.Random(4)
    before = {path: content for path, content in manifest(workspace).items() if isinstance(content, bytes)}
    governed = {name for path in [*ROOTS, *ANYWHERE, *AGENT_FILES] for name in path.casefold().split("/")[:1]} - {"src"}
    for _ in range(5000 if LONG else 150):
        path = "".join(disguise(dice.choice([*ROOTS, *ANYWHERE, *AGENT_FILES]), dice))
        begun.call("write_file", {"path": path, "content": "ours\n", "plan_hash": scene})
        next(iter(begun.services.workspaces.values())).audit_state.locks.clear()
    after = {path: content for path, content in manifest(workspace).items() if isinstance(content, bytes)}
    created = [Path(path).relative_to(workspace).parts for path in after.keys() - before.keys()]

    assert {path: after.get(path) for path in before} == before
    assert [parts for parts in created if parts[0] != ".kaiza" and folded_name(parts[0]) in governed] == []


def test_protected_paths_are_refused_over_the_wire_and_for_every_process(workspace, scene):
    before = manifest(workspace)
    agents = [Agent(workspace) for _ in range(2)]
    codes = [agent.write(path, scene) for agent in agents for path in ("plans/X.md", ".git/hooks/pre-commit")]
    for agent in agents:
        agent.close()

    assert codes == ["POLICY_VIOLATION", "SESSION_LOCKED", "SESSION_LOCKED", "SESSION_LOCKED"]
    assert manifest(workspace) == before
