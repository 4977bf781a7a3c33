"""The words that say what a plan is worth: kept to DRAFT for agents, changed in place for people.

A file is never written anew from what was read: every byte but the changed words stays as it is.
"""

import json
import re
from collections.abc import Iterator, Mapping

from kaiza.domain.finding import ERROR, Finding
from kaiza.domain.plans import parser
from kaiza.domain.plans.plan import DRAFT, STATUSES, Plan
from kaiza.domain.plans.yaml_tree import ScalarNode

_PLAIN_DRAFT = re.compile(r"status: DRAFT *(#.*)?\r?")
_STATUS_LINE = re.compile(r"""[\s"'{,?#>*\\-]*status["'\s]*:""", re.IGNORECASE)
_APPROVAL_KEYS = ("approved_by", "approved_at")


def find_draft_errors(reading: parser.ParsedPlan) -> tuple[Finding, ...]:
    """What keeps an agent from saving this as a draft; warnings do not."""
    errors = [finding for finding in reading.findings if finding.severity == ERROR]
    return tuple(errors or _draft_violations(reading))


def _draft_violations(reading: parser.ParsedPlan) -> Iterator[Finding]:
    plan = reading.plan
    if plan is None or plan.status != DRAFT:
        yield _draft_finding(reading, "status", "The status is not DRAFT", "Write status: DRAFT; a person approves")
        return
    for word in _APPROVAL_KEYS:
        if getattr(plan, word) is not None:
            yield _draft_finding(reading, word, f"A draft has no {word}", f"Write {word}: null")
    own = reading.scalars["status"].position.line
    for number, line in enumerate(reading.text.split("\n")):
        if number == own and not _PLAIN_DRAFT.fullmatch(line):
            yield Finding(number, 0, ERROR, "draft", "The status is not written plainly", "Write status: DRAFT")
        elif number != own and _STATUS_LINE.match(line):
            yield Finding(number, 0, ERROR, "draft", "A second line reads like a status", "Say it in other words")
    comment = reading.text.split("\n")[own].partition("#")[2]
    if _STATUS_LINE.search(comment):
        yield Finding(own, 0, ERROR, "draft", "A comment reads like a status", "Remove the comment")


def _draft_finding(reading: parser.ParsedPlan, key: str, message: str, fix: str) -> Finding:
    place = reading.scalars[key].position
    return Finding(place.line, place.column, ERROR, "draft", message, fix)


def edit_fields(content: bytes, words: Mapping[str, str | None]) -> bytes:
    """The same bytes with `status`, `approved_by` or `approved_at` said otherwise; ValueError if that cannot be.

    The result has been read again: it is the same plan but for these words.
    """
    before = parser.parse(content)
    if before.plan is None:
        raise ValueError("the plan has errors")
    text = before.text
    missing = [word for word in words if word not in before.scalars]
    present = [word for word in words if word in before.scalars]
    for word in sorted(present, key=lambda name: before.scalars[name].position.index, reverse=True):
        text = _replace_scalar(text, before.scalars[word], _format_value(word, words[word]))
    text = _insert_keys(
        text, before.scalars["status"].position.line, {word: _format_value(word, words[word]) for word in missing}
    )
    after = text.encode()
    _require_same_plan(before.plan, parser.parse(after).plan, words)
    return after


def _format_value(word: str, value: str | None) -> str:
    if word == "status":
        if value not in STATUSES:
            raise ValueError("not a status")
        return value
    if word not in _APPROVAL_KEYS:
        raise ValueError("not a word that is changed in place")
    return "null" if value is None else json.dumps(value, ensure_ascii=False)


def _replace_scalar(text: str, word: ScalarNode, spelled: str) -> str:
    start, end = word.position.index, word.end.index
    gap = " " if start == end and text[start - 1] == ":" else ""
    return text[:start] + gap + spelled + text[end:]


def _insert_keys(text: str, line: int, spelled: Mapping[str, str]) -> str:
    """Keys that were not there follow the status, with its line's ending."""
    lines = text.split("\n")
    ending = "\r" if lines[line].endswith("\r") else ""
    added = [f"{word}: {value}{ending}" for word, value in spelled.items()]
    return "\n".join([*lines[: line + 1], *added, *lines[line + 1 :]])


def _require_same_plan(before: Plan, after: Plan | None, words: Mapping[str, str | None]) -> None:
    if after is None:
        raise ValueError("these words cannot be written into a plan")
    said = {word: getattr(after, word) for word in words}
    if before._replace(plan_hash=after.plan_hash, **said) != after:
        raise ValueError("the words changed what else the plan says")
    if any(said[word] != value for word, value in words.items() if word != "approved_at"):
        raise ValueError("the words did not come out as they were said")
