"""In-place edits of a plan's status and approval fields, and the check that an agent's plan is a plain draft.

A plan file is never regenerated from parsed values: a person approved its bytes, so all others stay as they are.
"""

import json
import re
from collections.abc import Iterator, Mapping

from kaiza.domain.finding import ERROR, Finding
from kaiza.domain.plans import parser
from kaiza.domain.plans.plan import DRAFT, STATUSES, Plan

_PLAIN_DRAFT = re.compile(r"status: DRAFT *(#.*)?\r?")
_STATUS_LINE = re.compile(r"""[\s"'{,?#>*\\-]*status["'\s]*:""", re.IGNORECASE)
_APPROVAL_KEYS = ("approved_by", "approved_at")


def find_draft_errors(parsed: parser.ParsedPlan) -> tuple[Finding, ...]:
    """Errors that prevent an agent from saving the plan as a draft. Warnings are allowed."""
    errors = [finding for finding in parsed.findings if finding.severity == ERROR]
    return tuple(errors or _draft_violations(parsed))


def _draft_violations(parsed: parser.ParsedPlan) -> Iterator[Finding]:
    plan = parsed.plan
    if plan is None or plan.status != DRAFT:
        yield _draft_finding(
            parsed, "status", "The status is not DRAFT", "Write status: DRAFT; only a person can approve"
        )
        return
    for key in _APPROVAL_KEYS:
        if getattr(plan, key) is not None:
            yield _draft_finding(parsed, key, f"A draft must not have {key}", f"Write {key}: null")
    # The person who reviews must not take another line or a comment for the status.
    lines = parsed.text.split("\n")
    status_line = parsed.scalars["status"].position.line
    for number, line in enumerate(lines):
        if number == status_line and not _PLAIN_DRAFT.fullmatch(line):
            yield Finding(number, 0, ERROR, "draft", "The status line is not plain", "Write status: DRAFT")
        elif number != status_line and _STATUS_LINE.match(line):
            yield Finding(number, 0, ERROR, "draft", "Another line looks like a status", "Reword or remove it")
    if _STATUS_LINE.search(lines[status_line].partition("#")[2]):
        yield Finding(status_line, 0, ERROR, "draft", "A comment looks like a status", "Remove the comment")


def _draft_finding(parsed: parser.ParsedPlan, key: str, message: str, fix: str) -> Finding:
    position = parsed.scalars[key].position
    return Finding(position.line, position.column, ERROR, "draft", message, fix)


def edit_fields(content: bytes, values: Mapping[str, str | None]) -> bytes:
    """Set `status`, `approved_by` or `approved_at` and leave all other bytes as they are.

    The result is parsed again; ValueError unless it is the same plan except for these fields.
    """
    before = parser.parse(content)
    if before.plan is None:
        raise ValueError("the plan has errors")
    text = before.text
    missing = [key for key in values if key not in before.scalars]
    present = [key for key in values if key in before.scalars]
    # From the end, so that earlier positions stay valid.
    for key in sorted(present, key=lambda name: before.scalars[name].position.index, reverse=True):
        start, end = before.scalars[key].position.index, before.scalars[key].end.index
        gap = " " if start == end and text[start - 1] == ":" else ""
        text = text[:start] + gap + _format_value(key, values[key]) + text[end:]
    # Missing keys go below the status, with the ending of its line.
    lines, line = text.split("\n"), before.scalars["status"].position.line
    ending = "\r" if lines[line].endswith("\r") else ""
    added = [f"{key}: {_format_value(key, values[key])}{ending}" for key in missing]
    after = "\n".join([*lines[: line + 1], *added, *lines[line + 1 :]]).encode()
    _require_same_plan(before.plan, parser.parse(after).plan, values)
    return after


def _format_value(key: str, value: str | None) -> str:
    if key == "status":
        if value not in STATUSES:
            raise ValueError("not a status")
        return value
    if key not in _APPROVAL_KEYS:
        raise ValueError("not a field that can be edited in place")
    return "null" if value is None else json.dumps(value, ensure_ascii=False)


def _require_same_plan(before: Plan, after: Plan | None, values: Mapping[str, str | None]) -> None:
    """ValueError if a value that was written changed anything else, for example by adding a line."""
    if after is None:
        raise ValueError("the values cannot be written into a plan")
    written = {key: getattr(after, key) for key in values}
    if before._replace(plan_hash=after.plan_hash, **written) != after:
        raise ValueError("the edit changed other fields of the plan")
    # approved_at is normalised to UTC when it is parsed.
    if any(written[key] != value for key, value in values.items() if key != "approved_at"):
        raise ValueError("the values were not written as given")
