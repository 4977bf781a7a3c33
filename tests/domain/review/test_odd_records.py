"""A log from elsewhere may hold anything: no record makes a review fail."""

import pytest

from kaiza.domain.audit import record
from kaiza.domain.plans.plan import PlanUsage
from kaiza.domain.review.evidence import CurrentFile, PlanEvidence, ReviewEvidence
from kaiza.domain.review.report import ReviewSelection, ReviewSource
from kaiza.domain.review.report_builder import build_report
from kaiza.queries.review_records import is_usable

SOURCE = ReviewSource("/w", "w", "0.1.0", "2026-11-18T10:00:00.000Z", 3, "0" * 64, "intact", is_anchored=True)
ODD = [
    None,
    "",
    "x",
    "\x1b[2J",
    0,
    -1,
    7,
    2**60,
    1.5,
    True,
    [],
    ["x"],
    [None],
    [[1]],
    {},
    {"x": 1},
    {"x": None},
    {"": []},
]
CHANGE = {
    "path": "src/a.py",
    "source": None,
    "operation": "modify",
    "before_hash": "1" * 64,
    "after_hash": "2" * 64,
    "size": 1,
    "lines_added": 1,
    "lines_removed": 0,
    "mode": None,
}
DETAIL = ("modes", "undone", "left", "how", "approved_by", "person", "action", "unlocked", "escaped", "result", "path")
ARGUMENTS = ("path", "paths", "source", "destination", "uri", "plan_id", "dry_run")
CAUSE = ("path", "rule", "findings", "operation")


class NoContents:
    """Every content is the same text."""

    def read_content(self, _digest):
        return b"x\n"

    def read_earlier(self, _path, _digest):
        return None

    def is_hidden(self, _path):
        return False

    def read_current(self, _path):
        return CurrentFile("3" * 64, 0o644, b"y\n", 2)


def of_kind(kind, **members):
    given = {"tool_name": "write_file", "role": "WINDSURF", "arguments": {"path": "src/a.py"}, "request_id": "r"}
    given |= {"session_id": "s", "plan_id": "PLAN-1", "plan_hash": "0" * 64, "timestamp": "2026-11-18T09:00:00.000Z"}
    body = record.new_body("call", **given)
    return {**body, "kind": kind, "detail": {}, "prev_hash": "0" * 64, "entry_hash": "0" * 64, **members}


BASES = [
    of_kind("call", outcome="ok", changes=[CHANGE]),
    of_kind("call", outcome="error", error_code="PLAN_SCOPE_VIOLATION", cause={}),
    of_kind("call", outcome="error", error_code="POLICY_VIOLATION", tool_name="save_plan", cause={}),
    of_kind("call", outcome="ok", tool_name="write_report"),
    of_kind("plan"),
    of_kind("person", outcome="ok", changes=[CHANGE], detail={"action": "undo", "undone": ["r"]}),
    of_kind("person", outcome="ok", detail={"action": "approve", "person": "Ada"}),
    of_kind("recovery", changes=[CHANGE], detail={"result": "unknown", "left": [{"path": "src/a.py"}]}),
]


def variants(base):
    for odd in ODD:
        yield from ({**base, name: odd} for name in record.FIELDS if name != "seq")
        yield from ({**base, "detail": {**base["detail"], name: odd}} for name in DETAIL)
        yield from ({**base, "arguments": {name: odd}} for name in ARGUMENTS)
        yield from ({**base, "cause": {name: odd}} for name in CAUSE)
        yield from ({**base, "changes": [{**CHANGE, name: odd}]} for name in CHANGE)


@pytest.mark.parametrize("base", BASES, ids=lambda base: f"{base['kind']}-{base['tool_name']}")
def test_no_record_that_is_read_makes_a_review_fail(base):
    reviewed = 0
    for odd in variants(base):
        first, second = record.Record({**BASES[0], "seq": 1}), record.Record({**odd, "seq": 2})
        if not is_usable(second):
            continue
        reviewed += 1
        plan = PlanEvidence("PLAN-1", None, PlanUsage(), seal=second if second.kind == "plan" else None)
        for selected, context in (([first, second], []), ([first], [second])):
            evidence = ReviewEvidence(ReviewSelection("session", "s"), SOURCE, selected, context, plans=[plan])
            report = build_report(evidence, NoContents())

            assert report.verdict.counts.records == len(selected)

    assert reviewed > 300
