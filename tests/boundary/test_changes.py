"""Changes and their undo, called through the application: plan, rules, intent, files, outcome."""

import os
import stat
import tracemalloc
import unicodedata
import zlib
from pathlib import Path

import pytest
from agents import sha
from scenes import put_plan, records

from kaiza.domain.call import CallRequest
from kaiza.store.changes.transaction import TransactionManager

HEAD = """---
kaiza_plan: 1
plan_id: {plan_id}
title: A plan
status: {status}
author: ANTIGRAVITY
created: "2026-11-18T09:00:00Z"
approved_by: null
approved_at: null
scope:
  modify: ["src/**"]
  create: ["src/**", "docs/*.md"]
  delete: ["src/**"]
  move: [{{from: "src/**", to: "src/**"}}]
  deny: ["src/keys/**"]
{more}---
# Why
"""


def plan(root, plan_id="PLAN-1", status="APPROVED", more=""):
    text = HEAD.format(plan_id=plan_id, status=status, more=more)
    put_plan(root / "plans" / f"{plan_id}.md", text)
    return sha(text.encode())


def manifest(root):
    """Every directory, and every file with content and mode, except for the log and Kaiza's own directory."""
    entries = {}
    for directory, names, files in os.walk(root):
        names[:] = [name for name in names if not (directory == str(root) and name in ("audit", ".kaiza"))]
        for name in files:
            path = Path(directory, name)
            entries[str(path.relative_to(root))] = (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
        entries[directory] = None
    return entries


@pytest.fixture
def approved(begun, workspace):
    """Hash of an approved plan, in a workspace with two files in its scope."""
    (workspace / "src").mkdir()
    (workspace / "src" / "a.py").write_bytes(b"one\r\ntwo\r\n")
    (workspace / "src" / "run.sh").write_bytes(b"#!/bin/sh\n")
    (workspace / "src" / "run.sh").chmod(0o755)
    return plan(workspace)


def code(app, tool, **arguments):
    outcome = app.call(tool, arguments)
    return outcome.envelope["error_code"] if outcome.envelope else "ok"


def test_a_change_under_an_approved_plan_records_an_intent_before_and_an_outcome_after(begun, workspace, approved):
    output = begun.call("write_file", {"path": "src/new/b.py", "content": "x = 1\n", "plan_hash": approved}).output
    written = records(workspace)[-3:]

    assert (workspace / "src/new/b.py").read_bytes() == b"x = 1\n"
    assert (output["operation"], output["after_hash"]) == ("create", sha(b"x = 1\n"))
    assert [record["kind"] for record in written] == ["plan", "intent", "call"]
    assert written[0]["detail"]["how"] == "edited"
    assert {record["request_id"] for record in written[1:]} == {output["request_id"]}
    assert written[1]["outcome"] is None
    assert written[1]["changes"] == written[2]["changes"]
    assert "x = 1" not in (workspace / "audit/audit-log.jsonl").read_text()


@pytest.mark.rows("S1-36", "S1-41", "S4-50")
def test_a_retried_write_is_safe_and_a_stale_hash_is_refused(begun, workspace, approved):
    arguments = {"path": "src/b.py", "content": "x\n", "plan_hash": approved}
    begun.call("write_file", arguments)
    again = begun.call("write_file", arguments).output
    other = begun.call("write_file", {**arguments, "content": "y\n"}).envelope
    stale = begun.call("write_file", {**arguments, "content": "y\n", "expected_hash": "0" * 64}).envelope

    assert again["unchanged"] is True
    assert (other["error_code"], other["cause"]["current_hash"]) == ("FILE_ALREADY_EXISTS", sha(b"x\n"))
    assert (stale["error_code"], stale["cause"]["current_hash"]) == ("HASH_MISMATCH", sha(b"x\n"))
    assert (workspace / "src/b.py").read_bytes() == b"x\n"


@pytest.mark.rows("S1-42", "S1-43", "S1-44")
def test_nothing_changes_without_an_approved_plan(begun, workspace, approved):
    draft = plan(workspace, "PLAN-2", "DRAFT")
    broken = plan(workspace, "PLAN-3", "APPROVED", "surprise: 1\n")
    arguments = {"path": "src/b.py", "content": "x\n"}

    assert code(begun, "write_file", **arguments) == "MISSING_REQUIRED_FIELD"
    assert code(begun, "write_file", **arguments, plan_hash="0" * 64) == "PLAN_NOT_FOUND"
    assert code(begun, "write_file", **arguments, plan_hash=draft) == "PLAN_NOT_APPROVED"
    assert code(begun, "write_file", **arguments, plan_hash=broken) == "PLAN_ENFORCEMENT_FAILED"
    assert not (workspace / "src/b.py").exists()


@pytest.mark.rows("S1-22", "S1-45", "S1-87", "S2-36")
def test_a_change_out_of_scope_locks_every_session_and_a_report_unlocks(begun, make_app, workspace, approved):
    arguments = {"path": "elsewhere/b.py", "content": "x\n", "plan_hash": approved}
    first = code(begun, "write_file", **arguments)
    second = code(begun, "write_file", path="src/b.py", content="x\n", plan_hash=approved)
    other = make_app(workspace)
    other.call("begin_session", {"role": "WINDSURF"})
    third = code(other, "write_file", path="src/b.py", content="x\n", plan_hash=approved)
    reads = code(other, "read_file", path="src/a.py")
    report = begun.call("write_report", {"title": "What happened", "content": "I strayed."}).output
    second_report = begun.call("write_report", {"title": "Again", "content": "Nothing."}).output

    assert [first, second, third, reads] == ["PLAN_SCOPE_VIOLATION", "SESSION_LOCKED", "SESSION_LOCKED", "ok"]
    assert (report["state"], report["unlocked"]) == ("active", True)
    assert (second_report["state"], second_report["unlocked"]) == ("active", False)
    assert "I strayed." in (workspace / report["path"]).read_text()
    assert code(other, "write_file", path="src/b.py", content="x\n", plan_hash=approved) == "ok"


CONTROLS = "\x1b[2J\x1b]0;x\x07 \x9b2J \x00 \x7f a\rb \u202etxet\u2069 \u200f \U000e0041"


def test_control_characters_in_a_report_are_spelled_out(begun, workspace):
    output = begun.call("write_report", {"title": f"t {CONTROLS} t", "content": f"One\r\n\ttwo\r\n{CONTROLS}\r"}).output
    written = (workspace / output["path"]).read_bytes().decode()

    head, _, rest = written.partition("\n")
    assert head.startswith("# t <U+001B>[2J<U+001B>]0;x<U+0007> ")
    assert "\r\n\ttwo\r\n" in rest
    assert "a<U+000D>b <U+202E RIGHT-TO-LEFT OVERRIDE>txet" in rest
    assert "<U+E0041 TAG LATIN CAPITAL LETTER A>" in rest
    controls = {char for char in written if unicodedata.category(char) in {"Cc", "Cf"}}
    assert controls == set("\r\n\t")
    assert "\r" not in written.replace("\r\n", "")


def test_flags_emoji_and_scripts_in_a_report_are_kept(begun, workspace):
    flag = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
    text = f"caf\u00e9 {flag} \u2764\ufe0f\u200d\U0001f525 \u0645\u06cc\u200c\u062e"
    output = begun.call("write_report", {"title": text, "content": text}).output

    assert (workspace / output["path"]).read_text().count(text) == 2


def test_a_dry_run_is_judged_by_every_rule_and_writes_only_its_record(begun, workspace, approved):
    before = manifest(workspace)
    dry_run = begun.call("write_file", {"path": "src/b.py", "content": "x\n", "plan_hash": approved, "dry_run": True})
    out_of_scope = code(begun, "write_file", path="else/b.py", content="x\n", plan_hash=approved, dry_run=True)

    assert "+x" in dry_run.output["diff"]
    assert out_of_scope == "PLAN_SCOPE_VIOLATION"
    assert manifest(workspace) == before
    assert code(begun, "write_file", path="src/b.py", content="x\n", plan_hash=approved) == "ok"


PATCH = """diff --git a/src/a.py b/src/a.py
--- a/src/a.py
+++ b/src/a.py
@@ -1,2 +1,2 @@
-one\r
+ONE\r
 two\r
diff --git a/src/c.py b/src/c.py
new file mode 100755
--- /dev/null
+++ b/src/c.py
@@ -0,0 +1 @@
+c
"""


@pytest.mark.rows("S1-39", "S1-40")
def test_a_patch_is_applied_whole_or_not_at_all(begun, workspace, approved):
    misfit = PATCH.replace("-one", "-eins")
    assert code(begun, "apply_patch", patch="garbage", plan_hash=approved) == "PATCH_INVALID"
    assert code(begun, "apply_patch", patch=misfit, plan_hash=approved) == "PATCH_APPLY_FAILED"
    assert not (workspace / "src/c.py").exists()
    assert code(begun, "apply_patch", patch=PATCH, plan_hash=approved) == "ok"

    assert (workspace / "src/a.py").read_bytes() == b"ONE\r\ntwo\r\n"
    assert stat.S_IMODE((workspace / "src/c.py").stat().st_mode) & 0o111


def test_no_text_of_an_accepted_patch_or_edit_is_recorded(begun, workspace, approved):
    patch = PATCH.replace("+ONE", "+inside-the-patch")
    edits = [{"old_text": "inside-the-patch", "new_text": "inside-the-edit"}]
    arguments = {"path": "src/a.py", "expected_hash": sha(b"inside-the-patch\r\ntwo\r\n"), "edits": edits}
    codes = [
        code(begun, "apply_patch", patch=patch, plan_hash=approved),
        code(begun, "edit_file", **arguments, plan_hash=approved),
    ]

    assert codes == ["ok", "ok"]
    assert (workspace / "src/a.py").read_bytes() == b"inside-the-edit\r\ntwo\r\n"
    assert b"inside-the" not in (workspace / "audit/audit-log.jsonl").read_bytes()


def test_no_text_of_a_faulty_plan_is_recorded_or_answered(begun, workspace):
    faulty = plan(workspace, more="inside_the_plan: 1\npolicy: {inside_the_policy: inside-the-value}\n")
    arguments = {"path": "src/b.py", "content": "x\n", "plan_hash": faulty}
    envelope = begun.call("write_file", arguments).envelope

    assert envelope["error_code"] == "PLAN_ENFORCEMENT_FAILED"
    assert envelope["cause"]["findings"]
    assert all(set(finding) == {"rule", "line", "column"} for finding in envelope["cause"]["findings"])
    assert "inside" not in str(envelope)
    assert b"inside" not in (workspace / "audit/audit-log.jsonl").read_bytes()


def test_undo_restores_content_and_mode_of_a_session_except_files_modified_since(begun, workspace, approved):
    before = manifest(workspace)
    run_hash = sha(b"#!/bin/sh\n")
    steps = [
        code(begun, "write_file", path="src/deep/er/new.py", content="n\n", plan_hash=approved),
        code(begun, "apply_patch", patch=PATCH, plan_hash=approved),
        code(
            begun,
            "edit_file",
            path="src/a.py",
            expected_hash=sha(b"ONE\r\ntwo\r\n"),
            edits=[{"old_text": "two", "new_text": "TWO"}],
            plan_hash=approved,
        ),
        code(
            begun, "move_file", source="src/run.sh", destination="src/go.sh", expected_hash=run_hash, plan_hash=approved
        ),
        code(begun, "delete_file", path="src/go.sh", expected_hash=run_hash, plan_hash=approved),
        code(begun, "write_file", path="docs/mine.md", content="m\n", plan_hash=approved),
    ]
    (workspace / "docs/mine.md").write_text("changed by a person\n")
    undo = begun.call("undo_changes", {"all_of_session": True, "plan_hash": approved})
    after = manifest(workspace)
    docs = str(workspace / "docs")

    assert steps == ["ok"] * 6
    assert undo.envelope is None
    assert undo.output["kept"] == [{"path": "docs/mine.md", "reason": "changed_since"}]
    assert after.pop("docs/mine.md")[0] == b"changed by a person\n"
    after.pop(docs)
    assert after == before


@pytest.mark.parametrize("size", [9, 3 << 20])
def test_a_corrupt_pre_image_is_not_restored(begun, workspace, approved, size):
    (workspace / "src/big.bin").write_bytes(b"x" * size)
    arguments = {"path": "src/big.bin", "expected_hash": sha(b"x" * size), "plan_hash": approved}
    deleted = begun.call("delete_file", arguments).output
    (blob,) = (workspace / ".kaiza/objects").glob(f"{sha(b'x' * size)}*")
    blob.chmod(0o600)
    with blob.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"y")
    before = manifest(workspace)
    outcome = begun.call("undo_changes", {"request_ids": [deleted["request_id"]], "plan_hash": approved})

    if size == 9:  # a large one is verified when it is put back
        assert outcome.output["kept"] == [{"path": "src/big.bin", "reason": "not_kept"}]
    else:
        assert outcome.envelope["error_code"] == "FILE_READ_FAILED"
    assert manifest(workspace) == before


def test_a_pre_image_that_decompresses_to_far_more_is_neither_restored_nor_decompressed(begun, workspace, approved):
    content = bytes(1 << 26)
    (workspace / "src/a.py").write_bytes(content)
    arguments = {"path": "src/a.py", "expected_hash": sha(content), "plan_hash": approved}
    deleted = begun.call("delete_file", arguments).output
    (blob,) = (workspace / ".kaiza/objects").glob(f"{sha(content)}*")
    blob.unlink()
    blob.with_suffix(".z").write_bytes(zlib.compress(content, 9))
    del content
    undo = {"request_ids": [deleted["request_id"]], "plan_hash": approved}
    begun.call("undo_changes", {**undo, "dry_run": True})
    tracemalloc.start()
    output = begun.call("undo_changes", undo).output
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert output["kept"] == [{"path": "src/a.py", "reason": "not_kept"}]
    assert peak < 1 << 24
    assert not (workspace / "src/a.py").exists()


@pytest.mark.rows("S1-46")
def test_a_secret_is_refused_with_its_path_and_line(begun, workspace, approved):
    content = "a\n-----BEGIN RSA PRIVATE KEY-----\n"
    envelope = begun.call("write_file", {"path": "src/k.py", "content": content, "plan_hash": approved}).envelope

    assert envelope["error_code"] == "POLICY_VIOLATION"
    assert (envelope["cause"]["line"], envelope["cause"]["path"]) == (1, "src/k.py")
    assert not (workspace / "src/k.py").exists()


@pytest.mark.rows("S1-51")
def test_a_damaged_log_stops_changes_but_not_reads(make_app, workspace, approved, begun):
    begun.close()
    log = workspace / "audit" / "audit-log.jsonl"
    log.write_bytes(b"{}\n")
    app = make_app(workspace)
    app.call("begin_session", {"role": "WINDSURF"})

    assert code(app, "write_file", path="src/b.py", content="x\n", plan_hash=approved) == "SELF_AUDIT_FAILURE"
    assert code(app, "read_file", path="src/a.py") == "ok"
    assert not (workspace / "src/b.py").exists()


def test_a_change_too_large_for_one_record_is_refused_before_its_intent(begun, workspace, approved):
    names = [f"src/{'a' * 240}/{'b' * 240}/{'c' * 240}/{number}" for number in range(180)]
    (workspace / names[0]).parent.mkdir(parents=True)
    for name in names:
        (workspace / name).write_text("x\n")
    before = manifest(workspace)
    patch = "".join(f"--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-x\n+y\n" for name in names)
    envelope = begun.call("apply_patch", {"patch": patch, "plan_hash": approved}).envelope

    assert (envelope["error_code"], envelope["cause"]["cap"]) == ("CAP_EXCEEDED", "record_bytes")
    assert manifest(workspace) == before
    assert [each["kind"] for each in records(workspace)] == ["call", "plan", "call"]
    assert code(begun, "apply_patch", patch=patch[: patch.index("--- a", 9)], plan_hash=approved) == "ok"


def test_a_change_under_a_plan_with_phases_must_name_one_of_them(begun, workspace, approved):
    phased = plan(workspace, "PLAN-5", more="phases: [{phase_id: ONE}]\n")
    arguments = {"path": "src/b.py", "content": "x\n", "plan_hash": phased}
    envelopes = [begun.call("write_file", {**arguments, **more}).envelope for more in ({}, {"phase_id": "TWO"})]
    was_written = (workspace / "src/b.py").exists()
    begun.call("write_report", {"title": "t", "content": "c"})

    assert [envelope["error_code"] for envelope in envelopes] == ["MISSING_REQUIRED_FIELD", "PLAN_SCOPE_VIOLATION"]
    assert [envelope["cause"]["rule"] for envelope in envelopes] == ["phase_named"] * 2
    assert not was_written
    assert code(begun, "write_file", **arguments, phase_id="ONE") == "ok"


@pytest.mark.rows("S1-28", "S1-88")
def test_a_forbidden_role_and_an_unapproved_plan_have_different_codes(make_app, workspace):
    arguments = {"path": "src/b.py", "content": "x\n", "plan_hash": plan(workspace, status="DRAFT")}
    codes = {}
    for role in ("ANTIGRAVITY", "WINDSURF"):
        app = make_app(workspace)
        app.call("begin_session", {"role": role})
        codes[role] = code(app, "write_file", **arguments)

    assert codes == {"ANTIGRAVITY": "UNAUTHORIZED_ACTION", "WINDSURF": "PLAN_NOT_APPROVED"}


@pytest.mark.rows("S1-38")
def test_a_read_only_file_is_not_overwritten(begun, workspace, approved):
    (workspace / "src/a.py").chmod(0o444)
    arguments = {"path": "src/a.py", "content": "x", "expected_hash": sha(b"one\r\ntwo\r\n"), "plan_hash": approved}

    assert code(begun, "write_file", **arguments) == "FILE_WRITE_FAILED"
    assert (workspace / "src/a.py").read_bytes() == b"one\r\ntwo\r\n"


def test_a_move_is_undone_as_a_move(begun, workspace, approved):
    before = manifest(workspace)
    arguments = {"source": "src/run.sh", "destination": "src/deep/go.sh", "expected_hash": sha(b"#!/bin/sh\n")}
    moved = code(begun, "move_file", **arguments, plan_hash=approved)
    output = begun.call("undo_changes", {"all_of_session": True, "plan_hash": approved}).output

    assert moved == "ok"
    assert [(change["operation"], change["path"], change["source"]) for change in output["changes"]] == [
        ("move", "src/run.sh", "src/deep/go.sh")
    ]
    assert manifest(workspace) == before


@pytest.mark.parametrize("modified", ["src/run.sh", "src/go.sh"])
def test_a_move_is_not_undone_if_one_of_its_paths_was_modified_since(begun, workspace, approved, modified):
    arguments = {"source": "src/run.sh", "destination": "src/go.sh", "expected_hash": sha(b"#!/bin/sh\n")}
    code(begun, "move_file", **arguments, plan_hash=approved)
    (workspace / modified).write_text("a person's\n")
    before = manifest(workspace)
    output = begun.call("undo_changes", {"all_of_session": True, "plan_hash": approved}).output

    assert output["changes"] == []
    assert {skip["path"]: skip["reason"] for skip in output["kept"]} == {
        "src/run.sh": "moved_together",
        "src/go.sh": "moved_together",
        modified: "changed_since",
    }
    assert manifest(workspace) == before


def test_an_undo_does_not_lose_a_change_of_another_session(begun, make_app, workspace, approved):
    other = make_app(workspace)
    other.call("begin_session", {"role": "WINDSURF"})
    before = b"one\r\ntwo\r\n"
    for app, content in ((begun, "1"), (other, "2"), (begun, "3")):
        arguments = {"path": "src/a.py", "content": content, "expected_hash": sha(before), "plan_hash": approved}
        assert code(app, "write_file", **arguments) == "ok"
        before = content.encode()
    output = begun.call("undo_changes", {"all_of_session": True, "plan_hash": approved}).output

    assert (workspace / "src/a.py").read_bytes() == b"2"
    assert output["kept"] == [{"path": "src/a.py", "reason": "changed_since"}]


def test_a_change_past_its_deadline_before_its_intent_is_not_made(begun, workspace, approved, monkeypatch):
    call = begun.stamp(CallRequest("write_file", {"path": "src/b.py", "content": "x = 1\n", "plan_hash": approved}))
    expired = []
    prepare = TransactionManager.prepare

    def expire_and_prepare(*arguments, **options):
        expired.append(begun.expire(call))
        return prepare(*arguments, **options)

    monkeypatch.setattr(TransactionManager, "prepare", expire_and_prepare)
    before, log = manifest(workspace), records(workspace)
    late = begun.answer(call)
    written = records(workspace)[len(log) :]

    assert late is None
    assert expired[0].envelope["error_code"] == "CAP_EXCEEDED"
    assert manifest(workspace) == before
    assert [(each["kind"], each["error_code"]) for each in written] == [("plan", None), ("call", "CAP_EXCEEDED")]
