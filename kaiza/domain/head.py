"""A plan's bytes become the words of its head; whatever YAML would forgive is a finding here."""

import re
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from kaiza.domain.finding import ERROR, Finding
from kaiza.domain.lookalike import control_characters, name_of
from kaiza.domain.plan import MAX_BYTES
from kaiza.domain.words import START, Enough, Keys, Place, Tree

MAX_HEAD = 128 * 1024
_MOST_TOLD = 200
"""So many characters of a kind are told; each costs a look at everything before it."""

_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]"
)
_LONE_RETURN = re.compile(r"\r(?!\n)")
_HEAD_KEY = re.compile(
    r"""[\s"'{,?]*(kaiza_plan|plan_id|status|scope|approved_by|approved_at)["']?\s*:""", re.IGNORECASE
)
_BEGIN = "Begin with ---, then a line each for kaiza_plan, plan_id, title, status, author, created and scope, then ---"


@dataclass(slots=True)
class Head:
    """What the bytes came to. No `root` where they cannot be read at all."""

    text: str = ""
    root: Keys | None = None
    findings: list[Finding] = field(default_factory=list)

    def report(self, place: Place, rule: str, message: str, fix: str) -> None:
        """Take in a finding that takes the plan's effect away."""
        self.findings.append(Finding(place.line, place.column, ERROR, rule, message, fix))


def read(content: bytes) -> Head:
    """The head's words, or the findings that say why there are none."""
    head = Head()
    text = _decoded(content, head)
    if text is None:
        return head
    head.text = text
    bounds = _bounds(text, head)
    if bounds is None:
        return head
    start, end = bounds
    _refuse_characters(text, end, head)
    _refuse_markers(text, start, end, head)
    _refuse_second_head(text, end, head)
    if not head.findings:
        head.root = _parsed(text, start, end, head)
    _refuse_in_prose(text, end, head)
    return head


def place_of(text: str, index: int) -> Place:
    """Line and column of a character."""
    return Place(text.count("\n", 0, index), index - text.rfind("\n", 0, index) - 1, index)


def _decoded(content: bytes, head: Head) -> str | None:
    if len(content) > MAX_BYTES:
        head.report(START, "too-large", f"The plan is larger than {MAX_BYTES} bytes", "Split it into several plans")
        return None
    if content.startswith(b"\xef\xbb\xbf"):
        head.report(START, "bom", "The file begins with a byte order mark", "Save it as UTF-8 without one")
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as fault:
        before = content[: fault.start].decode("utf-8")
        head.report(place_of(before, len(before)), "encoding", "The file is not UTF-8", "Save it as UTF-8")
        return None


def _bounds(text: str, head: Head) -> tuple[int, int] | None:
    """From where to where the head's own lines go, without the two lines of dashes."""
    first = re.match(r"---\r?\n", text)
    if first is None:
        head.report(START, "head", "The file does not begin with a line ---", _BEGIN)
        return None
    last = re.compile(r"^---\r?$", re.MULTILINE).search(text, first.end())
    if last is None:
        head.report(START, "head", "The head is not closed", "Close it with a line --- before the prose")
        return None
    if last.start() > MAX_HEAD:
        head.report(START, "too-large", f"The head is longer than {MAX_HEAD} characters", "Name fewer paths")
        return None
    return first.end(), last.start()


def _refuse_characters(text: str, end: int, head: Head) -> None:
    for found in islice(re.finditer("\t", text[:end]), _MOST_TOLD):
        head.report(place_of(text, found.start()), "tab", "The head holds a tab", "Use blanks")
    for found in islice(_LONE_RETURN.finditer(text[:end]), _MOST_TOLD):
        _refuse_return(place_of(text, found.start()), head)
    for found in islice(_HIDDEN.finditer(text[:end]), _MOST_TOLD):
        message = f"The head holds the character {name_of(found[0])}"
        head.report(place_of(text, found.start()), "hidden-character", message, "Remove it")


def _refuse_return(place: Place, head: Head) -> None:
    head.report(place, "line-end", "A carriage return stands alone", "End lines with a line feed")


def _refuse_in_prose(text: str, end: int, head: Head) -> None:
    """Whatever steers a terminal, so that the plan may be read with any program."""
    for index, character in islice(control_characters(text[end:]), _MOST_TOLD):
        place = place_of(text, end + index)
        if character == "\r":
            _refuse_return(place, head)
        else:
            message = f"The text holds the character {name_of(character)}"
            head.report(place, "hidden-character", message, "Remove it")


def _refuse_markers(text: str, start: int, end: int, head: Head) -> None:
    for found in re.finditer(r"^(---|\.\.\.|%).*", text[start:end], re.MULTILINE):
        message = "The head holds a document marker or a directive"
        head.report(place_of(text, start + found.start()), "second-document", message, "Keep to one document")


def _refuse_second_head(text: str, end: int, head: Head) -> None:
    """Prose may have rules of dashes; what it may not have is something that reads like another head."""
    lines = text[end:].split("\n")
    index = end
    for before, line in zip(["", *lines], lines, strict=False):
        if before.strip() in {"---", "..."} and index > end and _HEAD_KEY.match(line):
            message = "The text after the head holds a second head"
            head.report(place_of(text, index), "second-document", message, "Remove it; a plan has one head")
        index += len(line) + 1


def _parsed(text: str, start: int, end: int, head: Head) -> Keys | None:
    from ruamel.yaml import YAML  # noqa: PLC0415  many times the cost of everything else here
    from ruamel.yaml.error import MarkedYAMLError, YAMLError  # noqa: PLC0415  as above

    def put(mark: Any) -> Place:
        return Place(mark.line + 1, mark.column, mark.index + start)

    try:
        events = YAML(typ="safe", pure=True).parse(text[start:end])
        return Tree(text, events, put, head.report).root()
    except MarkedYAMLError as fault:
        place = put(fault.problem_mark) if fault.problem_mark else START
        head.report(place, "yaml", "This is not YAML", "Write it like the example in the documentation")
    except (YAMLError, ValueError, OverflowError, IndexError, RecursionError):
        head.report(START, "yaml", "The head is not YAML", "Write it like the example in the documentation")
    except Enough:
        return None
    return None
