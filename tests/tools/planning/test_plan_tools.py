import hashlib
import json
import os

import pytest
from scenes import records

from kaiza.app import App
from kaiza.domain import errors
from kaiza.store.audit.log import AuditLog

HEAD = """\
---
kaiza_plan: 1
plan_id: {}
title: Title of {}
status: {}
author: ANTIGRAVITY
created: "2026-11-18T09:00:00Z"
scope: {{modify: ["src/*.py"]}}
---
Why.
"""


def text(plan_id="PLAN-1", status="DRAFT"):
    return HEAD.format(plan_id, plan_id, status)


@pytest.fixture
def root(tmp_path):
    for name in ("plans", "audit"):
        (tmp_path / "project" / name).mkdir(parents=True)
    return tmp_path / "project"


@pytest.fixture
def planner(root):
    app = App([os.path.realpath(root)])
    app.call("begin_session", {"role": "ANTIGRAVITY"})
    yield app
    app.close()


@pytest.fixture
def executor(root):
    app = App([os.path.realpath(root)])
    app.call("begin_session", {"role": "WINDSURF"})
    yield app
    app.close()


def put(root, plan_id, status="DRAFT", content=None):
    (root / "plans" / f"{plan_id}.md").write_text(content or text(plan_id, status))


def code(outcome):
    return outcome.envelope["error_code"] if outcome.envelope else None


def test_plans_are_listed_with_their_current_status(root, planner):
    put(root, "PLAN-2", "APPROVED")
    put(root, "PLAN-1", content=text("PLAN-1").replace("title", "expires: 2026-12-01T00:00:00Z\ntitle"))
    put(root, "PLAN-3", content=text("PLAN-9", "APPROVED"))

    items = planner.call("list_plans", {}).output["items"]
    assert [(item["plan_id"], item["status"], item["findings"]) for item in items] == [
        ("PLAN-1", "DRAFT", 0),
        ("PLAN-2", "APPROVED", 0),
        ("PLAN-3", "INVALID", 1),
    ]
    assert items[0]["expires"] == "2026-12-01T00:00:00.000Z"
    assert items[1]["plan_hash"] == hashlib.sha256(text("PLAN-2", "APPROVED").encode()).hexdigest()
    put(root, "PLAN-2", "REVOKED")
    assert planner.call("list_plans", {"status": "APPROVED"}).output["items"] == []


def test_malformed_entries_in_plans_do_not_stop_a_session_from_beginning(root, planner):
    put(root, "PLAN-1")
    os.truncate(root / "plans" / "PLAN-1.md", 1 << 42)
    os.mkfifo(root / "plans" / "PLAN-2.md")
    (root / "plans" / "PLAN-3.md").mkdir()
    (root / "plans" / "PLAN-4.md").symlink_to("PLAN-4.md")
    put(root, "PLAN-5")
    begun = planner.call("begin_session", {"role": "ANTIGRAVITY"}).output
    listed = planner.call("list_plans", {"session_id": begun["session_id"]}).output

    expected = [("PLAN-1", "INVALID"), ("PLAN-5", "DRAFT")]
    assert sorted((row["plan_id"], row["status"]) for row in begun["plans"]) == expected
    assert [(row["plan_id"], row["status"]) for row in listed["items"]] == expected


def test_plans_are_listed_in_pages(root, planner):
    for number in range(7):
        put(root, f"PLAN-{number}", "APPROVED" if number % 2 else "DRAFT")
    arguments = {"status": "DRAFT", "pageSize": 3}
    first = planner.call("list_plans", arguments).output
    second = planner.call("list_plans", {**arguments, "cursor": first["nextCursor"]}).output

    listed = [item["plan_id"] for item in first["items"] + second["items"]]
    assert listed == ["PLAN-0", "PLAN-2", "PLAN-4", "PLAN-6"]
    assert "nextCursor" not in second
    assert code(planner.call("list_plans", {"cursor": first["nextCursor"]})) == "CURSOR_INVALID"


def test_a_plan_is_read_with_its_hash_and_findings(root, planner):
    put(root, "PLAN-1", content=text("PLAN-1") + "ü\n")
    put(root, "PLAN-2", content=text("PLAN-1"))

    output = planner.call("read_plan", {"plan_id": "PLAN-1"}).output
    assert output["content"] == text("PLAN-1") + "ü\n"
    assert output["plan_hash"] == hashlib.sha256(output["content"].encode()).hexdigest()
    assert (output["status"], output["findings"]) == ("DRAFT", [])
    assert planner.call("read_plan", {"plan_id": "PLAN-2"}).output["findings"][0]["rule"] == "plan-id"


@pytest.mark.parametrize("plan_id", ["PLAN-9", "nope", "../audit/audit-log", "plans/PLAN-1"])
@pytest.mark.parametrize("tool", ["read_plan", "lint_plan"])
def test_a_missing_plan_is_not_found(planner, tool, plan_id):
    assert code(planner.call(tool, {"plan_id": plan_id})) == "PLAN_NOT_FOUND"


def test_a_text_or_a_saved_plan_is_linted(root, planner):
    put(root, "PLAN-1")

    assert planner.call("lint_plan", {"plan_id": "PLAN-1"}).output["valid"]
    assert planner.call("lint_plan", {"content": text()}).output["valid"]
    output = planner.call("lint_plan", {"content": text().replace("status", "Status")}).output
    assert not output["valid"]
    assert {"key-spelling", "missing-key"} == {finding["rule"] for finding in output["findings"]}
    assert code(planner.call("lint_plan", {})) == "MISSING_REQUIRED_FIELD"
    assert code(planner.call("lint_plan", {"content": "a", "plan_id": "PLAN-1"})) == "INVALID_INPUT_VALUE"


@pytest.mark.rows("S2-36")
def test_a_plan_with_very_many_findings_is_summarized_by_those_listed(root, planner):
    content = "---\n" + "".join(f"key_{number}: 1\n" for number in range(500)) + "---\n"
    put(root, "PLAN-1", content=content)
    outputs = [planner.call(tool, {"plan_id": "PLAN-1"}).output for tool in ("read_plan", "lint_plan")]

    assert all(50 < len(output["findings"]) < 200 for output in outputs)
    assert all("200 findings or more." in output["summary"] for output in outputs)
    assert all(output["truncated"] for output in outputs)
    assert all(len(json.dumps(output)) <= 32 * 1024 for output in outputs)


def test_a_draft_is_saved_byte_for_byte_and_recorded(root, planner):
    output = planner.call("save_plan", {"plan_id": "PLAN-1", "content": text()}).output

    assert (root / "plans" / "PLAN-1.md").read_bytes() == text().encode()
    assert output["path"] == "plans/PLAN-1.md"
    assert output["plan_hash"] == hashlib.sha256(text().encode()).hexdigest()
    assert records(root)[-1]["tool_name"] == "save_plan"
    assert records(root)[-1]["outcome"] == "ok"
    assert "Why." not in json.dumps(records(root))


SPELLINGS = [
    "APPROVED",
    '"APPROVED"',
    "'APPROVED'",
    '"\\u0041PPROVED"',
    "&a APPROVED",
    "!!str APPROVED",
    "approved",
    ">-\n  APPROVED",
    "DRAFT\nstatus: APPROVED",
    "DRAFT\n<<: {status: APPROVED}",
    "DRAFT\n---\nstatus: APPROVED",
    "DRAFT # status: APPROVED",
    "#DRAFT\n  APPROVED",
    "DRAFT\nStatus: APPROVED",
    "DRAFT\n? status\n: APPROVED",
    "REVOKED",
]


@pytest.mark.parametrize("status", SPELLINGS)
def test_no_spelling_of_an_approved_status_can_be_saved_and_attempts_are_recorded(root, planner, status):
    outcome = planner.call("save_plan", {"plan_id": "PLAN-1", "content": text(status=status)})

    assert code(outcome) == "PLAN_ENFORCEMENT_FAILED"
    assert os.listdir(root / "plans") == []
    assert records(root)[-1]["error_code"] == "PLAN_ENFORCEMENT_FAILED"


@pytest.mark.parametrize(
    "content",
    [
        "\ufeff" + text(status="APPROVED"),
        "\ufeff" + text(),
        "---\n{kaiza_plan: 1, plan_id: PLAN-1, title: t, status: APPROVED, author: a, created: x, scope: {}}\n---\n",
        text() + "\n---\nstatus: APPROVED\n---\n",
        text().replace("author", "approved_by: Ada\nauthor"),
        text("PLAN-2"),
        text().replace("\n", "\n\t", 3),
        text() + "\ud800",
        "",
    ],
)
def test_only_a_valid_draft_is_saved(root, planner, content):
    assert code(planner.call("save_plan", {"plan_id": "PLAN-1", "content": content})) == "PLAN_ENFORCEMENT_FAILED"
    assert os.listdir(root / "plans") == []


REPAINT = "\x1b[2J\x1b[H---\r\nWhat it allows: docs/x.md\n"


@pytest.mark.parametrize("prose", [REPAINT, "a\rb", "\x9b2J", "\x00", "txet \u202e", "\U000e0041"])
def test_a_plan_with_terminal_control_characters_is_refused_with_their_position(root, planner, prose):
    outcome = planner.call("save_plan", {"plan_id": "PLAN-1", "content": text() + prose})
    linted = planner.call("lint_plan", {"content": text() + prose}).output

    assert code(outcome) == "PLAN_ENFORCEMENT_FAILED"
    assert os.listdir(root / "plans") == []
    assert not linted["valid"]
    assert (linted["findings"][0]["severity"], linted["findings"][0]["line"]) == ("error", 10)
    assert outcome.envelope["cause"]["findings"][0]["line"] == 10


def test_an_approved_plan_with_terminal_control_characters_is_invalid(root, executor):
    content = text(status="APPROVED") + REPAINT
    put(root, "PLAN-1", content=content)
    arguments = {"path": "src/a.py", "content": "x\n", "plan_hash": hashlib.sha256(content.encode()).hexdigest()}

    assert executor.call("list_plans", {}).output["items"][0]["status"] == "INVALID"
    assert code(executor.call("write_file", arguments)) == "PLAN_ENFORCEMENT_FAILED"
    assert not (root / "src").exists()


def test_a_draft_with_flags_emoji_joiners_and_crlf_is_saved(root, planner):
    flag = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
    content = f"{text()}{flag} \u2764\ufe0f \u0645\u06cc\u200c\u062e\n".replace("\n", "\r\n")

    assert planner.call("save_plan", {"plan_id": "PLAN-1", "content": content}).output["findings"] == []


@pytest.mark.parametrize(
    ("rule", "scope"),
    [
        ("long-line", '{modify: ["src/a.py"], create: [' + " " * 200 + '"src/b.py"]}'),
        ("far-apart", "\n  modify: [src/a.py]\n" + "  # a comment\n" * 11 + "  create: [src/b.py]"),
        ("comment-beside", "\n  modify: ['src/**']  # only docs/"),
    ],
)
def test_a_scope_that_is_hard_to_read_is_saved_with_a_warning(planner, rule, scope):
    content = text().replace('{modify: ["src/*.py"]}', scope)
    saved = planner.call("save_plan", {"plan_id": "PLAN-1", "content": content}).output["findings"]

    assert [(finding["rule"], finding["severity"]) for finding in saved] == [(rule, "warning")]
    assert planner.call("lint_plan", {"content": content}).output["findings"] == saved


def test_an_existing_plan_is_never_overwritten(root, planner):
    put(root, "PLAN-1", "APPROVED")

    outcome = planner.call("save_plan", {"plan_id": "PLAN-1", "content": text()})
    assert code(outcome) == "FILE_ALREADY_EXISTS"
    assert (root / "plans" / "PLAN-1.md").read_text() == text(status="APPROVED")


@pytest.mark.parametrize(
    ("plan_id", "expected"),
    [
        ("../x", "INVALID_INPUT_FORMAT"),
        ("plans/PLAN-1", "INVALID_INPUT_FORMAT"),
        ("PLAN-1.md", "INVALID_INPUT_FORMAT"),
        ("plan-1", "INVALID_INPUT_FORMAT"),
        (".kaiza", "INVALID_INPUT_FORMAT"),
        ("PLAN-1\n", "INVALID_INPUT_FORMAT"),
        ("P" * 65, "INVALID_INPUT_VALUE"),
    ],
)
def test_an_invalid_plan_id_is_refused(root, planner, plan_id, expected):
    assert code(planner.call("save_plan", {"plan_id": plan_id, "content": text()})) == expected
    assert os.listdir(root / "plans") == []


def test_the_executor_saves_drafts_unless_it_is_locked(root, executor):
    before = executor.call("save_plan", {"plan_id": "PLAN-1", "content": text()}).envelope
    outside = {"path": "../out.py", "content": "x", "plan_hash": "0" * 64}
    locked = code(executor.call("write_file", outside))

    assert before is None
    assert locked == "PATH_TRAVERSAL_BLOCKED"
    assert code(executor.call("save_plan", {"plan_id": "PLAN-2", "content": text()})) == "SESSION_LOCKED"
    assert os.listdir(root / "plans") == ["PLAN-1.md"]


def test_a_plan_whose_record_cannot_be_written_is_deleted_again(root, planner, monkeypatch):
    def fail(_log, _body, **_options):
        assert os.listdir(root / "plans") == ["PLAN-1.md"]
        raise errors.SystemError.tool_failure("AUDIT_LOG_FAILED")

    monkeypatch.setattr(AuditLog, "append", fail)

    assert code(planner.call("save_plan", {"plan_id": "PLAN-1", "content": text()})) == "AUDIT_LOG_FAILED"
    assert os.listdir(root / "plans") == []


def test_no_plan_is_saved_above_the_cap(root, planner, monkeypatch):
    monkeypatch.setattr("kaiza.tools.planning.save_plan.MAX_SAVED_PLANS", 2)
    for plan_id in ("PLAN-1", "PLAN-2"):
        planner.call("save_plan", {"plan_id": plan_id, "content": text(plan_id)})

    assert code(planner.call("save_plan", {"plan_id": "PLAN-3", "content": text("PLAN-3")})) == "CAP_EXCEEDED"


def test_no_tool_approves_unlocks_thaws_or_grants(planner):
    forbidden = ("approve", "unlock", "thaw", "grant", "freeze")

    assert planner._handlers
    assert not [name for name in planner._handlers if any(word in name for word in forbidden)]
