"""`kaiza plan`: drafts, reviews, approvals and revocations."""

import hashlib
import json
import os
import re
import subprocess
import sys
import tracemalloc
import zlib
from pathlib import Path

import pytest
from scenes import put_plan

from kaiza.cli.plan import approve as approve_command
from kaiza.domain.plans import parser
from kaiza.store.documents import scope_preview

HEAD = """---
kaiza_plan: 1
plan_id: PLAN-1
title: A plan
status: {status}
author: ANTIGRAVITY
created: "2026-11-18T09:00:00Z"
approved_by: null
approved_at: null
{more}scope: {scope}
---
# Why
"""
SCOPE = '{modify: ["src/*.py"], create: ["tests/*.py"]}'


@pytest.fixture
def plan(workspace):
    def write(status="DRAFT", scope=SCOPE, more="", text="", plan_id="PLAN-1"):
        path = workspace / "plans" / f"{plan_id}.md"
        put_plan(path, HEAD.format(status=status, scope=scope, more=more).replace("PLAN-1", plan_id) + text)
        return path

    (workspace / "src").mkdir()
    for name in ("a", "b"):
        (workspace / "src" / f"{name}.py").write_text("x\n")
    return write


def sha(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def records(log):
    return [json.loads(line) for line in log.read_bytes().splitlines()] if log.exists() else []


def approve(screen, *more, plan_id="PLAN-1", answer="y", **how):
    prompt = screen("plan", "approve", plan_id, "--as", "Ann", *more, **how)
    shown = prompt.answer(answer)
    return prompt.end(), shown


def test_a_new_plan_is_a_valid_draft_and_never_overwrites(kaiza, workspace):
    result = kaiza("plan", "new", "PLAN-0002-tokens", "--as", 'Ann "A"', "--title", "Rotate: tokens")
    path = workspace / "plans" / "PLAN-0002-tokens.md"
    before = path.read_bytes()
    again = kaiza("plan", "new", "PLAN-0002-tokens")
    read = parser.parse(before, "PLAN-0002-tokens").plan

    assert (result.status, result.out) == (0, "plans/PLAN-0002-tokens.md\n")
    assert (read.status, read.author, read.title) == ("DRAFT", 'Ann "A"', "Rotate: tokens")
    assert kaiza("plan", "lint").status == 0
    assert (again.status, path.read_bytes()) == (1, before)


def test_the_examples_in_the_comments_of_a_new_plan_are_valid(kaiza, workspace):
    kaiza("plan", "new", "PLAN-1", "--as", "Ann")
    path = workspace / "plans" / "PLAN-1.md"
    path.write_text(re.sub(r"(?m)^# (?=expires|phases|  -)", "", path.read_text()))
    for name in ("modify", "create", "move", "deny", "unlock"):
        example = re.search(rf"(?m)^  {name}: \[\] .*?(\[.*\])", path.read_text())[1]
        path.write_text(path.read_text().replace(f"  {name}: []", f"  {name}: {example}"))

    read = parser.parse(path.read_bytes(), "PLAN-1")
    assert read.plan, read.findings
    assert [phase.phase_id for phase in read.plan.phases] == ["PHASE_1", "PHASE_2"]
    assert read.plan.expires


@pytest.mark.parametrize("name", ["plan-1", "../x", "PLAN_1", "", "P" * 65])
def test_an_invalid_plan_id_is_a_usage_error(kaiza, workspace, name):
    for verb in ("new", "show", "approve", "lint"):
        assert kaiza("plan", verb, name).status == 2


def test_plans_are_listed_with_status_and_whether_they_allow_changes(kaiza, plan):
    plan()
    plan("APPROVED", plan_id="PLAN-2", more='expires: "2020-01-01T00:00:00Z"\n')
    plan("APPROVED", plan_id="PLAN-3", more="limits: {files: 3}\n")
    plan("APPROVED", plan_id="PLAN-4", more="surprise: 1\n")
    result = json.loads(kaiza("plan", "list", "--json").out)["plans"]

    assert [(one["plan_id"], one["status"], one["allows"]) for one in result] == [
        ("PLAN-1", "DRAFT", False),
        ("PLAN-2", "APPROVED", False),
        ("PLAN-3", "APPROVED", True),
        ("PLAN-4", "INVALID", False),
    ]
    assert "expired" in result[1]["why_not"]
    assert "files 0/3" in kaiza("plan", "list").out
    assert [
        one["plan_id"] for one in json.loads(kaiza("plan", "list", "--status", "DRAFT", "--json").out)["plans"]
    ] == ["PLAN-1"]


def test_a_plan_is_shown_with_matching_files_limits_phases_and_commands(kaiza, plan):
    phases = 'phases: [{phase_id: ONE, objective: Do it, verify: [["pytest", "-q", "a b"]]}]\nlimits: {files: 3}\n'
    path = plan(more=phases)
    result = json.loads(kaiza("plan", "show", "PLAN-1", "--json").out)
    shown = kaiza("plan", "show", "PLAN-1").out

    assert result["plan_hash"] == sha(path)
    assert result["touches"]["files"] == 2
    assert result["touches"]["patterns"] == [{"operation": "modify", "pattern": "src/*.py", "files": 2}]
    assert [one["path"] for one in result["touches"]["named"]] == ["src/a.py", "src/b.py"]
    assert result["phases"][0]["verify"] == [["pytest", "-q", "a b"]]
    for part in ("src/a.py", "src/*.py  (2 files now)", "tests/*.py", "pytest -q 'a b'", "0 of 3 used", "# Why"):
        assert part in shown


def test_invisible_and_lookalike_characters_are_spelled_out_with_warnings(kaiza, plan, workspace):
    (workspace / "src" / "\u0430dmin.py").write_text("x")
    (workspace / ".claude").mkdir()
    (workspace / ".claude" / "settings.json").write_text("{}")
    scope = '{modify: ["**", "src/\u0430dmin.py"], unlock: [".claude/settings.json"]}'
    plan(scope=scope, text="innocent \u200b text\n")
    result = json.loads(kaiza("plan", "show", "PLAN-1", "--json").out)
    shown = kaiza("plan", "show", "PLAN-1").out

    assert {"broad-scope", "lookalike", "unlock", "hidden-character"} <= {one["rule"] for one in result["warnings"]}
    assert "<U+0430 CYRILLIC SMALL LETTER A>dmin.py" in shown
    assert re.search(r"UNLOCKS +\.claude/settings\.json", shown)
    assert "\\u200b" in shown
    assert "\u200b" not in shown


def test_a_scope_that_matches_many_files_is_a_warning_with_their_number(kaiza, plan, workspace):
    for number in range(201):
        (workspace / "src" / f"{number}.txt").write_text("")
    plan(scope='{delete: ["src/**"]}')
    result = json.loads(kaiza("plan", "show", "PLAN-1", "--json").out)
    findings = json.loads(kaiza("plan", "lint", "PLAN-1", "--json").out)["plans"][0]["findings"]

    assert (result["touches"]["files"], len(result["touches"]["named"])) == (203, 200)
    assert [one["message"] for one in result["warnings"]] == ["The scope matches 203 files now"]
    assert [(one["rule"], one["line"]) for one in findings] == [("broad-scope", 9)]
    assert "and 3 more" in kaiza("plan", "show", "PLAN-1").out


def test_lint_prints_every_finding_with_position_and_fix(kaiza, plan, workspace):
    plan(more="surprise: 1\nsurprise: 2\n")
    plan(plan_id="PLAN-2")
    (workspace / "plans" / "my plan.md").write_text("x")
    result = kaiza("plan", "lint")
    document = json.loads(kaiza("plan", "lint", "--json").out)

    assert (result.status, document["valid"]) == (1, False)
    assert [(one["path"], one["valid"]) for one in document["plans"]] == [
        ("plans/PLAN-1.md", False),
        ("plans/PLAN-2.md", True),
        ("plans/my plan.md", True),
    ]
    assert re.search(r"(?m)^plans/PLAN-1\.md:10:1: error: .+\. .+ \[.+\]$", result.out)
    assert "plans/my plan.md:1:1: warning" in result.out
    assert kaiza("plan", "lint", "PLAN-2").status == 0
    assert kaiza("plan", "lint", "PLAN-2", "PLAN-9").status == 1


def test_a_missing_or_invalid_plan_is_a_failure(kaiza, plan):
    plan(more="surprise: 1\n")

    assert kaiza("plan", "show", "PLAN-9").status == 1
    assert kaiza("plan", "show", "PLAN-1").status == 1
    assert "surprise" in kaiza("plan", "show", "PLAN-1").out
    assert kaiza("plan", "approve", "PLAN-1").status == 1
    assert kaiza("plan", "revoke", "PLAN-1").status == 1


def test_an_approval_sets_status_name_and_time_and_records_the_hash_that_was_shown(kaiza, plan, log, screen):
    path = plan()
    before = path.read_text()
    status, shown = approve(screen)
    person, seal = records(log)
    after = path.read_text()

    assert status == 0
    assert sha(path) in shown
    assert "src/a.py" in shown
    assert person["timestamp"] >= "2026"
    approved = re.search(r'approved_at: "(.+)"', after)[1]
    expected = before.replace("DRAFT", "APPROVED").replace("approved_by: null", 'approved_by: "Ann"')
    assert after == expected.replace("approved_at: null", f'approved_at: "{approved}"')
    assert (person["kind"], person["plan_id"], person["plan_hash"]) == ("person", "PLAN-1", sha(path))
    assert (person["detail"]["action"], person["detail"]["person"]) == ("approve", "Ann")
    assert (seal["kind"], seal["plan_hash"]) == ("plan", sha(path))
    assert seal["detail"] == {"how": "command", "approved_by": "Ann", "files": 2, "counted": True}
    assert json.loads(kaiza("plan", "show", "PLAN-1", "--json").out)["allows"] is True


def test_an_approval_records_no_number_of_files_where_counting_them_was_broken_off(kaiza, plan, log, monkeypatch):
    plan()
    monkeypatch.setattr(scope_preview, "_SECONDS", -1)
    monkeypatch.setattr(approve_command, "confirm", lambda *_, **__: True)
    assert kaiza("plan", "approve", "PLAN-1", "--as", "Ann").status == 0
    _, seal = records(log)

    assert seal["detail"] == {"how": "command", "approved_by": "Ann", "files": None, "counted": False}


@pytest.mark.parametrize("answer", ["PLAN-1", "\x04"])
def test_any_other_answer_approves_nothing(plan, log, screen, answer):
    before = plan().read_bytes()
    prompt = screen("plan", "approve", "PLAN-1")
    prompt.answer(answer)

    assert prompt.end() == 1
    assert plan().read_bytes() == before
    assert records(log) == []


@pytest.mark.parametrize(("answer", "status"), [("PLAN-2-tokens", 0), ("PLAN-2", 1), ("y", 1)])
def test_an_approval_may_be_set_to_need_the_whole_id(plan, workspace, screen, answer, status):
    (workspace / "kaiza.toml").write_text('[approval]\nconfirm = "id"\n')
    path = plan(plan_id="PLAN-2-tokens")
    prompt = screen("plan", "approve", "PLAN-2")
    shown = prompt.answer(answer, "Type PLAN-2-tokens to confirm")

    assert "What it allows:" in shown
    assert prompt.end() == status
    assert ("status: APPROVED" in path.read_text()) is not bool(status)


def test_approval_is_read_from_the_terminal_and_not_from_standard_input(plan, log, screen, tmp_path):
    path = plan()
    before = path.read_bytes()
    prompt = screen("plan", "approve", "PLAN-1", "--json", stdin=b"y\n", out=tmp_path / "out")
    prompt.answer("no")

    assert prompt.end() == 1
    assert (path.read_bytes(), records(log), (tmp_path / "out").read_bytes()) == (before, [], b"")


@pytest.mark.parametrize(
    "words", [["plan", "approve", "PLAN-1"], ["plan", "approve", "PLAN-1", "PLAN-2"], ["thaw"], ["session", "unlock"]]
)
def test_without_a_terminal_nothing_can_be_approved_thawed_or_unlocked(kaiza, plan, workspace, log, words):
    path = plan()
    kaiza("freeze", "stop")
    before = path.read_bytes(), log.read_bytes()
    result = subprocess.run(
        [sys.executable, "-m", "kaiza", *words], input=b"y\ny\n", capture_output=True, check=False,
        cwd=workspace, start_new_session=True, timeout=30,
    )  # fmt: skip

    # Nothing is locked, so that there is no question.
    assert result.returncode == (1 if "unlock" in words else 3)
    assert (b"Run the command in your own terminal" in result.stderr) is ("unlock" not in words)
    assert (path.read_bytes(), log.read_bytes()) == before
    assert kaiza(*words, "--yes").status == 2


@pytest.mark.parametrize("change", ["more text", "nothing but a new file", "gone"])
def test_a_plan_that_changes_during_the_question_is_not_approved(plan, log, screen, change):
    path = plan()
    prompt = screen("plan", "approve", "PLAN-1")
    prompt.until("Approve PLAN-1?")
    if change == "gone":
        path.unlink()
    else:
        path.write_text(path.read_text() + ("More.\n" if change == "more text" else ""))
    before = path.read_bytes() if path.exists() else None
    prompt.answer("y")
    same = change == "nothing but a new file"

    assert prompt.end() == (0 if same else 1)
    if not same:
        assert (path.read_bytes() if path.exists() else None) == before
        assert records(log) == []


def test_approving_a_changed_plan_shows_the_difference_and_makes_it_valid_again(kaiza, plan, log, screen):
    path = plan()
    approve(screen)
    path.write_text(path.read_text().replace('"src/*.py"', '"**"'))
    result = json.loads(kaiza("plan", "show", "PLAN-1", "--json").out)
    status, shown = approve(screen)

    assert (result["allows"], result["changed_after_approval"]) == (False, True)
    assert "+scope: {modify" in result["difference"]["diff"]
    assert status == 0
    assert '-scope: {modify: ["src/*.py"]' in shown
    assert '+scope: {modify: ["**"]' in shown
    result = json.loads(kaiza("plan", "show", "PLAN-1", "--json").out)
    assert (result["allows"], result["changed_after_approval"], result["difference"]) == (True, False, None)
    assert [one["kind"] for one in records(log)] == ["person", "plan"] * 2


def test_lost_approved_content_is_reported(kaiza, plan, screen, workspace):
    path = plan()
    approve(screen)
    for kept in (workspace / ".kaiza" / "objects").rglob("*.z"):
        kept.unlink()
    path.write_text(path.read_text() + "More.\n")
    result = json.loads(kaiza("plan", "show", "PLAN-1", "--json").out)

    assert result["difference"]["diff"] is None
    assert "no longer stored" in kaiza("plan", "show", "PLAN-1").out
    assert approve(screen)[0] == 0


def test_a_huge_plan_file_is_reported_without_reading_it(kaiza, plan):
    os.truncate(plan(), 1 << 42)
    (result,) = json.loads(kaiza("plan", "list", "--json").out)["plans"]

    assert result["status"] == "INVALID"
    assert "too-large" in kaiza("plan", "show", "PLAN-1").out
    assert "PLAN-1" in kaiza("doctor").out


@pytest.mark.parametrize("packed", [True, False])
def test_oversized_approved_content_is_not_read(kaiza, plan, screen, workspace, packed):
    path = plan()
    approve(screen)
    (kept,) = (workspace / ".kaiza" / "objects").rglob("*.z")
    bomb = kept if packed else kept.with_suffix("")
    kept.unlink()
    bomb.write_bytes(zlib.compress(bytes(1 << 26), 9) if packed else bytes(1 << 26))
    path.write_text(path.read_text() + "More.\n")
    kaiza("plan", "show", "PLAN-1")
    tracemalloc.start()
    result = json.loads(kaiza("plan", "show", "PLAN-1", "--json").out)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert result["difference"]["diff"] is None
    assert most < 1 << 24
    assert approve(screen)[0] == 0


@pytest.mark.parametrize("status", ["REJECTED", "REVOKED", "DONE"])
def test_a_rejected_revoked_or_done_plan_cannot_be_approved(kaiza, plan, status):
    before = plan(status).read_bytes()
    result = kaiza("plan", "approve", "PLAN-1")

    assert (result.status, plan(status).read_bytes()) == (1, before)


def test_an_expired_plan_cannot_be_approved(kaiza, plan):
    plan(more='expires: "2020-01-01T00:00:00Z"\n')

    assert kaiza("plan", "approve", "PLAN-1").status == 1


LEGAL = {("reject", "DRAFT"): "REJECTED", ("revoke", "APPROVED"): "REVOKED"}


@pytest.mark.parametrize("verb", ["reject", "revoke"])
@pytest.mark.parametrize("status", ["DRAFT", "APPROVED", "REJECTED", "REVOKED", "DONE"])
def test_reject_and_revoke_make_only_legal_status_changes_and_record_them(kaiza, plan, log, verb, status):
    path = plan(status)
    before = path.read_text()
    result = kaiza("plan", verb, "PLAN-1", "--as", "Ann", "--reason", "no")
    then = LEGAL.get((verb, status))
    decisions = [
        (one["kind"], one["detail"]["action"], one["detail"]["person"], one["plan_hash"]) for one in records(log)
    ]

    assert result.status == (0 if then else 1)
    assert path.read_text() == (before.replace(f"status: {status}", f"status: {then}") if then else before)
    assert decisions == ([("person", verb, "Ann", sha(path))] if then else [])


def test_a_damaged_log_stops_approvals_but_not_revocations(kaiza, plan, log):
    path = plan("APPROVED")
    log.write_bytes(b"{}\n")

    assert kaiza("plan", "approve", "PLAN-1").status == 1
    assert kaiza("plan", "revoke", "PLAN-1").status == 0
    assert "REVOKED" in path.read_text()


def test_a_symbolic_link_is_not_a_plan(kaiza, plan, workspace, tmp_path):
    path = plan()
    path.rename(tmp_path / "elsewhere.md")
    Path(path).symlink_to(tmp_path / "elsewhere.md")

    assert kaiza("plan", "approve", "PLAN-1").status == 1
    assert kaiza("plan", "new", "PLAN-1").status == 1


def test_a_plan_is_named_by_its_first_characters(kaiza, plan):
    for plan_id in ("PLAN-1", "PLAN-10", "PLAN-2-tokens"):
        plan(plan_id=plan_id)
    named = {prefix: kaiza("plan", "show", prefix, "--json") for prefix in ("PLAN-2", "PLAN-1", "plans/PLAN-2-t")}
    ambiguous = kaiza("plan", "show", "PLAN-")

    assert [json.loads(result.out)["plan_id"] for result in named.values()] == [
        "PLAN-2-tokens",
        "PLAN-1",
        "PLAN-2-tokens",
    ]
    assert (ambiguous.status, ambiguous.out) == (1, "")
    assert all(plan_id in ambiguous.err for plan_id in ("PLAN-1\n", "PLAN-10\n", "PLAN-2-tokens"))
    assert kaiza("plan", "reject", "PLAN-3").status == 1
    assert kaiza("plan", "reject", "PLAN-2", "--json").out.count("PLAN-2-tokens") == 1


def test_an_approval_by_prefix_asks_with_the_whole_id(plan, screen):
    plan(plan_id="PLAN-2-tokens")
    prompt = screen("plan", "approve", "PLAN-2")

    assert prompt.answer("no").endswith("Approve PLAN-2-tokens? [y/N] ")
    assert prompt.end() == 1
