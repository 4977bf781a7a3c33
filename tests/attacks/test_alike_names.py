"""Names that look alike when they are written with escapes stay different files, in the log and for its readers."""

import json
import os
from contextlib import closing
from hashlib import sha256

import pytest
from boundary.test_changes import HEAD
from scenes import put_plan

from kaiza.app import App
from kaiza.cli import dispatch
from kaiza.domain.paths.shown_names import escape_name

ALIKE = ["a\x7f", "a\\x7f", "a\\\\x7f", "é", "\\xe9", "\\u00e9", "b\\", "b\\\\", "\\udc80", "c\u2028", "c\\u2028",
         "d\x9b", "d\\x9b", "e\x01", "e\\x01", "\\x7f\x7f", "\x7f\\x7f"]  # fmt: skip


def digest(text):
    return sha256(text.encode()).hexdigest()


@pytest.fixture
def root(workspace):
    (workspace / "src").mkdir()
    for name in ALIKE:
        (workspace / "src" / name).write_text(f"before {name!r}\n")
        (workspace / "src" / name).chmod(0o600 + ALIKE.index(name) % 8)
    return workspace


@pytest.fixture
def app(root):
    with closing(App([os.path.realpath(root)])) as app:
        yield app


def contents(root):
    return {name: ((root / "src" / name).read_text(), (root / "src" / name).stat().st_mode) for name in ALIKE}


def change_all(app, root):
    """Change each of the files in a session under a plan for exactly as many; the session and the plan's hash."""
    text = HEAD.format(plan_id="PLAN-1", status="APPROVED", more=f"limits: {{files: {len(ALIKE)}}}\n")
    put_plan(root / "plans/PLAN-1.md", text)
    session_id = app.call("begin_session", {"role": "WINDSURF"}).output["session_id"]
    for name in ALIKE:
        before = {"path": f"src/{name}", "expected_hash": digest(f"before {name!r}\n")}
        outcome = app.call("write_file", {**before, "content": f"after {name!r}\n", "plan_hash": digest(text)})
        assert outcome.envelope is None
    return session_id, digest(text)


def run(capsys, root, *words):
    status = dispatch.main([*words, "--workspace", str(root)])
    return status, capsys.readouterr().out


def test_each_is_counted_attested_and_reviewed_as_itself(app, root, capsys):
    session_id, _ = change_all(app, root)
    use = app.call("session_status", {}).output["plan_use"]
    attested = json.loads(run(capsys, root, "attest", "--session", session_id)[1])
    reviewed = json.loads(run(capsys, root, "review", "--session", session_id, "--json")[1])

    assert [each["files"] for each in use] == [len(ALIKE)]
    assert {each["name"]: each["digest"]["sha256"] for each in attested["subject"]} == {
        f"src/{name}": digest(f"after {name!r}\n") for name in ALIKE
    }
    assert {each["path"] for each in reviewed["files"]} == {escape_name(f"src/{name}") for name in ALIKE}
    assert {each["state"] for each in reviewed["files"]} == {"as_left"}


@pytest.mark.parametrize("by", ["a person", "the agent"])
def test_an_undo_restores_each_with_its_own_content_and_mode(app, root, capsys, by):
    before = contents(root)
    session_id, plan_hash = change_all(app, root)
    for name in ALIKE:
        (root / "src" / name).chmod(0o640)
    changed = contents(root)
    for name in ALIKE:
        (root / "src" / name).chmod(before[name][1] & 0o777)
    if by == "a person":
        assert run(capsys, root, "undo", "--session", session_id, "--yes")[0] == 0
    else:
        outcome = app.call("undo_changes", {"all_of_session": True, "plan_hash": plan_hash})
        assert (outcome.envelope, outcome.output["kept"]) == (None, [])

    assert changed != before
    assert contents(root) == before


def test_an_undo_of_one_call_leaves_the_file_with_the_other_name(app, root, capsys):
    before = contents(root)
    change_all(app, root)
    first = app.call("read_audit_log", {"path": "src/a\x7f", "tool_name": "write_file"}).output["items"][-1]
    status, _ = run(capsys, root, "undo", "--request", first["request_id"], "--yes")
    after = contents(root)

    assert status == 0
    assert [name for name in ALIKE if after[name][0] == before[name][0]] == ["a\x7f"]
