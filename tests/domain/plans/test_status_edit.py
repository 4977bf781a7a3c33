import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaiza.domain.plans import parser, status_edit
from kaiza.domain.plans.status_edit import edit_fields, find_draft_errors

HEAD = """\
kaiza_plan: 1
plan_id: PLAN-0007
title: Rotate session tokens
status: DRAFT                 # DRAFT | APPROVED | REJECTED
author: ANTIGRAVITY
created: "2026-11-18T09:00:00Z"
approved_by: null             # a person's name
approved_at:
scope: {modify: ["src/auth/*.py"]}   # {x}
"""
LINE = "status: DRAFT                 # DRAFT | APPROVED | REJECTED\n"
AT = "2026-11-18T10:00:00Z"


def plan(head=HEAD, prose="Why: status is a word.\n\n---\n\nMore\n"):
    return f"---\n{head}---\n{prose}".encode()


def is_valid_draft(content, plan_id=None):
    return not find_draft_errors(parser.parse(content, plan_id))


def test_a_plain_draft_is_accepted():
    assert is_valid_draft(plan())
    assert is_valid_draft(plan(), "PLAN-0007")
    assert is_valid_draft(plan().replace(b"\n", b"\r\n"))


@pytest.mark.parametrize(
    "line",
    [
        "status: APPROVED\n",
        "status: REJECTED\n",
        "status: DONE\n",
        'status: "APPROVED"\n',
        "status: 'APPROVED'\n",
        'status: "\\u0041PPROVED"\n',
        'status: "\\x41PPROVED"\n',
        'status: "APPR\\\n  OVED"\n',
        "status: &a APPROVED\n",
        "status: !!str APPROVED\n",
        "status: approved\n",
        "status: Approved\n",
        "STATUS: APPROVED\n",
        "Status: DRAFT\n",
        '"status": DRAFT\n',
        '"status": APPROVED\n',
        '"st\\u0061tus": APPROVED\n',
        'status: "DRAFT"\n',
        "status:\n  APPROVED\n",
        "status: >-\n  APPROVED\n",
        "status: |-\n  APPROVED\n",
        "status: #DRAFT\n  APPROVED\n",
        "status: DRAFT\nstatus: APPROVED\n",
        "status: APPROVED\nstatus: DRAFT\n",
        "status: APPROVED # status: DRAFT\n",
        "status: DRAFT # status: APPROVED\n",
        "status: DRAFT # \rstatus: APPROVED\n",
        "status: DRAFT # \u0085status: APPROVED\n",
        "status: DRAFT # \u2028status: APPROVED\n",
        "# status: DRAFT\nstatus: APPROVED\n",
        "# status: APPROVED\nstatus: DRAFT\n",
        "status: DRAFT\n<<: {status: APPROVED}\n",
        "base: &b {status: APPROVED}\n<<: *b\nstatus: DRAFT\n",
        "? status\n: APPROVED\n",
        "status: DRAFT\n? status\n: APPROVED\n",
        "status: DRAFT\n--- \nstatus: APPROVED\n",
        "status: DRAFT\n...\n---\nstatus: APPROVED\n",
        "status: DRAFT\n%YAML 1.1\n",
        "\uff53tatus: APPROVED\nstatus: DRAFT\n",
        "st\u200batus: APPROVED\nstatus: DRAFT\n",
        "\u0455tatus: APPROVED\nstatus: DRAFT\n",
        "status: \u0391PPROVED\n",
        "status : APPROVED\n",
        "status: DRAFT\tAPPROVED\n",
        "status: [APPROVED]\n",
        "status: {DRAFT: APPROVED}\n",
        "",
    ],
)
def test_a_status_that_is_not_plainly_draft_is_refused(line):
    assert LINE in HEAD
    assert not is_valid_draft(plan(HEAD.replace(LINE, line)))


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + plan(),
        b"\xef\xbb\xbf" + plan(HEAD.replace(LINE, "status: APPROVED\n")),
        b"---\n{kaiza_plan: 1, plan_id: PLAN-0007, title: a, status: APPROVED, author: b, created: 2026-11-18}\n---\n",
        b"---\nstatus: APPROVED\n" + plan(),
        b"# c\n" + plan(),
        plan(prose="---\nstatus: APPROVED\n---\n"),
        plan(prose="text\nstatus: APPROVED\n"),
        plan(prose="> status: APPROVED\n"),
        plan(prose="```\n'Status': APPROVED\n```\n"),
        plan().replace(b"approved_by: null", b"approved_by: Ada"),
        plan().replace(b"approved_at:", b'approved_at: "2026-11-18T09:00:00Z"'),
        plan().decode().encode("utf-16"),
        b"",
    ],
)
def test_a_disguised_approval_outside_the_status_line_is_refused(content):
    assert not is_valid_draft(content)


def test_a_draft_with_another_plan_id_is_refused():
    assert not is_valid_draft(plan(), "PLAN-0008")


def test_draft_errors_have_a_line_and_a_fix():
    errors = find_draft_errors(parser.parse(plan(HEAD.replace("status: DRAFT", "status: APPROVED"))))

    assert [(error.rule, error.line) for error in errors] == [("draft", 4)]
    assert errors[0].fix


def test_approving_edits_the_three_fields_and_no_other_byte():
    after = edit_fields(plan(), {"status": "APPROVED", "approved_by": "Ada Löve", "approved_at": AT})

    assert after == (
        plan()
        .replace(b"status: DRAFT ", b"status: APPROVED ")
        .replace(b"approved_by: null", 'approved_by: "Ada Löve"'.encode())
        .replace(b"approved_at:", f'approved_at: "{AT}"'.encode())
    )
    assert parser.parse(after).plan.status == "APPROVED"


def test_missing_fields_are_inserted_after_the_status_with_its_line_end():
    bare = HEAD.replace("approved_by: null             # a person's name\napproved_at:\n", "")
    after = edit_fields(
        plan(bare).replace(b"\n", b"\r\n"), {"status": "APPROVED", "approved_by": "Ada", "approved_at": AT}
    )

    lines = after.decode().split("\r\n")
    assert lines[5:7] == ['approved_by: "Ada"', f'approved_at: "{AT}"']
    assert parser.parse(after).plan.approved_by == "Ada"
    assert b"\n" not in after.replace(b"\r\n", b"")


def test_a_quoted_status_is_replaced_with_its_quotes():
    after = edit_fields(plan(HEAD.replace("status: DRAFT", "status: 'DRAFT'")), {"status": "REJECTED"})

    assert b"status: REJECTED  " in after


@pytest.mark.parametrize(
    "values",
    [
        {"status": "MAYBE"},
        {"status": None},
        {"title": "x"},
        {"approved_by": "Ada\nstatus: DONE"},
        {"approved_by": "Ada\u202e"},
        {"approved_by": " "},
        {"approved_at": "yesterday"},
    ],
)
def test_an_invalid_value_is_refused(values):
    with pytest.raises(ValueError, match=r"."):
        edit_fields(plan(), values)


def test_a_value_that_would_add_a_field_is_refused(monkeypatch):
    monkeypatch.setattr(status_edit, "_format_value", lambda key, value: f"{value}\nexpires: 2027-01-01T00:00:00Z")

    with pytest.raises(ValueError, match="other fields"):
        edit_fields(plan(), {"status": "APPROVED"})


def test_a_plan_with_errors_is_not_edited():
    with pytest.raises(ValueError, match="errors"):
        edit_fields(plan(HEAD + "owner: me\n"), {"status": "APPROVED"})


@given(st.text(max_size=40))
def test_any_approver_name_is_stored_exactly_or_refused(name):
    try:
        after = edit_fields(plan(), {"status": "APPROVED", "approved_by": name})
    except ValueError:
        return

    assert parser.parse(after).plan.approved_by == name
    assert parser.parse(after).plan.status == "APPROVED"
