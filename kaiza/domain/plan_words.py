"""The words that say what a plan is worth: kept to DRAFT for agents, changed in place for people.

A file is never written anew from what was read: every byte but the changed words stays as it is.
"""

import json
import re
from collections.abc import Iterator, Mapping

from kaiza.domain import lint
from kaiza.domain.finding import ERROR, Finding
from kaiza.domain.plan import DRAFT, STATUSES, Plan
from kaiza.domain.words import Word

_PLAIN_DRAFT = re.compile(r"status: DRAFT *(#.*)?\r?")
_STATUS_LINE = re.compile(r"""[\s"'{,?#>*\\-]*status["'\s]*:""", re.IGNORECASE)
_WORDS = ("approved_by", "approved_at")


def draft_faults(reading: lint.Reading) -> tuple[Finding, ...]:
    """What keeps an agent from saving this as a draft; warnings do not."""
    errors = [finding for finding in reading.findings if finding.severity == ERROR]
    return tuple(errors or _more_than_draft(reading))


def _more_than_draft(reading: lint.Reading) -> Iterator[Finding]:
    plan = reading.plan
    if plan is None or plan.status != DRAFT:
        yield _not_draft(reading, "status", "The status is not DRAFT", "Write status: DRAFT; a person approves")
        return
    for word in _WORDS:
        if getattr(plan, word) is not None:
            yield _not_draft(reading, word, f"A draft has no {word}", f"Write {word}: null")
    own = reading.words["status"].place.line
    for number, line in enumerate(reading.text.split("\n")):
        if number == own and not _PLAIN_DRAFT.fullmatch(line):
            yield Finding(number, 0, ERROR, "draft", "The status is not written plainly", "Write status: DRAFT")
        elif number != own and _STATUS_LINE.match(line):
            yield Finding(number, 0, ERROR, "draft", "A second line reads like a status", "Say it in other words")
    comment = reading.text.split("\n")[own].partition("#")[2]
    if _STATUS_LINE.search(comment):
        yield Finding(own, 0, ERROR, "draft", "A comment reads like a status", "Remove the comment")


def _not_draft(reading: lint.Reading, key: str, message: str, fix: str) -> Finding:
    place = reading.words[key].place
    return Finding(place.line, place.column, ERROR, "draft", message, fix)


def change_words(content: bytes, words: Mapping[str, str | None]) -> bytes:
    """The same bytes with `status`, `approved_by` or `approved_at` said otherwise; ValueError if that cannot be.

    The result has been read again: it is the same plan but for these words.
    """
    before = lint.read(content)
    if before.plan is None:
        raise ValueError("the plan has errors")
    text = before.text
    missing = [word for word in words if word not in before.words]
    present = [word for word in words if word in before.words]
    for word in sorted(present, key=lambda name: before.words[name].place.index, reverse=True):
        text = _put(text, before.words[word], _spelled(word, words[word]))
    text = _add(text, before.words["status"].place.line, {word: _spelled(word, words[word]) for word in missing})
    after = text.encode()
    _insist(before.plan, lint.read(after).plan, words)
    return after


def _spelled(word: str, value: str | None) -> str:
    if word == "status":
        if value not in STATUSES:
            raise ValueError("not a status")
        return value
    if word not in _WORDS:
        raise ValueError("not a word that is changed in place")
    return "null" if value is None else json.dumps(value, ensure_ascii=False)


def _put(text: str, word: Word, spelled: str) -> str:
    start, end = word.place.index, word.end.index
    gap = " " if start == end and text[start - 1] == ":" else ""
    return text[:start] + gap + spelled + text[end:]


def _add(text: str, line: int, spelled: Mapping[str, str]) -> str:
    """Keys that were not there follow the status, with its line's ending."""
    lines = text.split("\n")
    ending = "\r" if lines[line].endswith("\r") else ""
    added = [f"{word}: {value}{ending}" for word, value in spelled.items()]
    return "\n".join([*lines[: line + 1], *added, *lines[line + 1 :]])


def _insist(before: Plan, after: Plan | None, words: Mapping[str, str | None]) -> None:
    if after is None:
        raise ValueError("these words cannot be written into a plan")
    said = {word: getattr(after, word) for word in words}
    if before._replace(plan_hash=after.plan_hash, **said) != after:
        raise ValueError("the words changed what else the plan says")
    if any(said[word] != value for word, value in words.items() if word != "approved_at"):
        raise ValueError("the words did not come out as they were said")
