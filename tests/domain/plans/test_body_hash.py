"""Which edits of a plan leave its body the same."""

import pytest

from kaiza.domain.plans.parser import parse

PLAN = """---
kaiza_plan: 1
plan_id: PLAN-1
title: A plan
status: DRAFT
author: ANTIGRAVITY
created: "2026-11-18T09:00:00Z"
scope: {modify: ["src/**"], create: ["docs/a.md"]}
limits: {files: 3}
---
# Why

Because.
"""


def body_hash(text):
    parsed = parse(text.encode())
    assert parsed.plan is not None, parsed.findings
    return parsed.body_hash


SAME = {
    "status": ("status: DRAFT", "status: APPROVED"),
    "approval fields": ("status: DRAFT", 'status: APPROVED\napproved_by: Ann\napproved_at: "2026-11-19T09:00:00Z"'),
    "quotes": ("title: A plan", "title: 'A plan'"),
    "a comment": ("title: A plan", "title: A plan  # mine"),
    "block style": (
        '{modify: ["src/**"], create: ["docs/a.md"]}',
        '\n  create:\n    - docs/a.md\n  modify:\n    - "src/**"',
    ),
    "order of keys": ('{modify: ["src/**"], create: ["docs/a.md"]}', '{create: ["docs/a.md"], modify: ["src/**"]}'),
    "line ends": ("\n", "\r\n"),
    "trailing blanks": ("Because.\n", "Because.  \t\n\n\n"),
    "no last line end": ("Because.\n", "Because."),
}
OTHER = {
    "scope": ("src/**", "src/*"),
    "operation": ("create: [", "delete: ["),
    "order of patterns": ('["src/**"]', '["src/**", "a"]'),
    "limit": ("files: 3", "files: 30"),
    "title": ("A plan", "Another plan"),
    "author": ("ANTIGRAVITY", "WINDSURF"),
    "expiry": ("limits:", 'expires: "2030-01-01T00:00:00Z"\nlimits:'),
    "check": ("limits:", 'phases: [{phase_id: A, verify: [["true"]]}]\nlimits:'),
    "prose": ("Because.", "because."),
    "indentation": ("Because.", "  Because."),
    "blank line": ("# Why\n", "# Why\n\n"),
    "id": ("PLAN-1", "PLAN-2"),
}


@pytest.mark.parametrize(("old", "new"), SAME.values(), ids=SAME)
def test_approval_and_formatting_keep_the_hash(old, new):
    assert PLAN.replace(old, new) != PLAN
    assert body_hash(PLAN.replace(old, new)) == body_hash(PLAN)


@pytest.mark.parametrize(("old", "new"), OTHER.values(), ids=OTHER)
def test_everything_else_changes_the_hash(old, new):
    assert body_hash(PLAN.replace(old, new)) != body_hash(PLAN)


def test_a_value_cannot_be_moved_between_head_and_text_or_between_keys():
    values = ('["docs/a.md", "b"]', '["docs/a.md,b"]', '["docs/a.md","[b]"]')

    assert len({body_hash(PLAN.replace('["docs/a.md"]', value)) for value in values}) == 3


def test_a_plan_with_errors_has_no_body_hash():
    assert parse(PLAN.replace("title", "titel").encode()).body_hash is None
