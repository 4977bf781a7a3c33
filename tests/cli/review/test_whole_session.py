"""Each number and each finding of a review is what the log and the tree say, whatever changed without Kaiza."""

import json
import os
from types import SimpleNamespace

import pytest
from outside_changes import CHANGES
from recount import is_in_scope, recount
from scenes import records
from trees import look
from whole_sessions import BETWEEN, PLANS, WholeSession

CODES = {
    "CURSOR_INVALID",
    "FILE_NOT_FOUND",
    "HASH_MISMATCH",
    "INVALID_INPUT_TYPE",
    "INVALID_INPUT_VALUE",
    "MISSING_REQUIRED_FIELD",
    "OUTSIDE_WORKSPACE",
    "PATCH_APPLY_FAILED",
    "PATCH_INVALID",
    "PATH_NOT_FOUND",
    "PATH_TRAVERSAL_BLOCKED",
    "PLAN_ENFORCEMENT_FAILED",
    "PLAN_NOT_APPROVED",
    "PLAN_NOT_FOUND",
    "PLAN_SCOPE_VIOLATION",
    "POLICY_VIOLATION",
    "RUST_POLICY_VIOLATION",
    "SESSION_LOCKED",
}


@pytest.fixture
def make_session(tmp_path, monkeypatch):
    """Plays a session; `takes_over` lets the agent write files that other programs change, too."""
    made = []

    def make(*, takes_over):
        scene = WholeSession(tmp_path / "shop", takes_over=takes_over)
        made.append(scene)
        monkeypatch.chdir(scene.root)
        scene.play()
        return scene

    try:
        yield make
    finally:
        for scene in made:
            scene.close()


def review(kaiza):
    result = kaiza("review", "--json")
    assert result.status == 0, result.err
    return json.loads(result.out)


def check(document, scene, left):
    """Compare a review with what the log and the tree say."""
    looks = SimpleNamespace(
        begin=scene.begin_look,
        left=left,
        now=look(scene.root),
        between={("src/keep/h.py", "modified", None)},
        between_lines={BETWEEN.strip()},
    )
    expected = recount(records(scene.root), scene.session_id, looks, PLANS)

    assert {(file["path"], file["change"], file.get("from")) for file in document["ungoverned"]} == expected.ungoverned
    assert len(document["ungoverned"]) == len(expected.ungoverned)
    assert document["manifest"] == "whole"
    assert {(each["path"], each["in_scope"], each["over_governed"]) for each in document["ungoverned"]} == {
        (path, is_in_scope(path, kind, source), path in expected.written or source in expected.written)
        for path, kind, source in expected.ungoverned
    }
    assert document["counts"] == expected.counts
    assert {file["path"]: describe(file) for file in document["files"]} == expected.files
    assert {file["path"]: lines_of_calls(file) for file in document["files"] if file["not_shown"] is None} == {
        path: lines for path, lines in expected.lines.items() if is_shown(document, path)
    }
    assert sorted(map(describe_refusal, document["refusals"]), key=lambda each: each["seq"]) == expected.refusals
    assert use_of(document["limits"]) == expected.limits
    assert [finding["kind"] for finding in document["findings"]] == expected.findings
    assert document["verdict"]["record"] == "intact"


def describe(file):
    names = ("source", "operation", "state", "before_hash", "now_hash")
    return {name: file[name] for name in names} | {"calls": [call["seq"] for call in file["calls"]]}


def is_shown(document, path):
    return next(file["not_shown"] for file in document["files"] if file["path"] == path) is None


def lines_of_calls(file):
    """The lines that the review says were added and removed by calls."""
    lines = [line for hunk in file["hunks"] for line in hunk["lines"] if isinstance(line.get("by"), dict)]
    seqs = {call["seq"] for call in file["calls"]}
    assert {line["by"]["seq"] for line in lines} <= seqs
    return tuple({line["text"] for line in lines if line["kind"] == kind} for kind in ("added", "removed"))


def describe_refusal(refusal):
    names = ("seq", "request_id", "tool_name", "error_code", "is_locking")
    return {name: refusal[name] for name in names} | {"report": refusal["report"] and refusal["report"]["seq"]}


def use_of(limits):
    used = {}
    for limit in limits:
        used.setdefault(limit["plan_id"], {})[limit["name"]] = limit["used"]
    return used


# Half a minute more.
IS_WHOLE = bool(os.environ.get("CI") or os.environ.get("KAIZA_LONG"))
AGENTS_FILES = pytest.param(True, marks=pytest.mark.skipif(not IS_WHOLE, reason="takes longer: set CI or KAIZA_LONG"))
# Finding each of the changes is shown at the boundary; a review is told of a few of each kind.
FEW = ("nothing", "edit", "create in a new directory", "delete", "rename", "rename and edit", "swap two names", "chmod",
       "a file becomes a link", "a file becomes a directory", "edit an ignored file", "rename a secret",
       "names with controls")  # fmt: skip
REVIEWED = CHANGES if IS_WHOLE else {name: CHANGES[name] for name in FEW}
# Changes of files that the agent created, deleted, moved, restored, or wrote as bytes.
OVER_THE_AGENTS = [
    {
        "rename to where the agent deleted": lambda keep: (keep.parent / "f3.py").rename(keep / "g.py"),
        "delete what the agent created": lambda keep: (keep / "b.py").unlink(),
        "move back what the agent moved": lambda keep: (keep / "moved.py").rename(keep / "e.py"),
        "put back what was there before": lambda keep: (keep / "a.py").write_text("a = 1\nb = 2\n"),
        "edit what the agent put back": lambda keep: (keep / "undone.py").write_text("u = 7\n"),
        "edit what something else edited, too": lambda keep: (keep / "h.py").write_text("h = 9\n"),
        "change a binary file": lambda keep: (keep / "picture").write_bytes(b"\0"),
        "change a large file": lambda keep: (keep / "large.txt").write_text("small\n"),
    },
    {
        "create where the agent deleted": lambda keep: (keep / "g.py").write_text("again\n"),
        "delete what the agent put back": lambda keep: (keep / "undone.py").unlink(),
        "make executable what the agent created": lambda keep: (keep / "b.py").chmod(0o755),
    },
]
"""Each is made in one session: they are of different files."""


@pytest.mark.parametrize("takes_over", [False, AGENTS_FILES], ids=["of others", "of the agent"])
@pytest.mark.parametrize("change", REVIEWED.values(), ids=REVIEWED.keys())
def test_a_review_says_what_the_log_and_the_tree_say(make_session, kaiza, change, takes_over):
    scene = make_session(takes_over=takes_over)
    left = look(scene.root)
    change(scene.root)

    check(review(kaiza), scene, left)
    scene.change("end_session")
    check(review(kaiza), scene, left)
    assert set(scene.codes) == CODES


@pytest.mark.parametrize("changes", OVER_THE_AGENTS)
def test_a_review_says_what_happened_to_what_the_agent_left(make_session, kaiza, changes):
    scene = make_session(takes_over=False)
    left = look(scene.root)
    for change in changes.values():
        change(scene.root / "src/keep")

    check(review(kaiza), scene, left)
    scene.change("end_session")
    check(review(kaiza), scene, left)
