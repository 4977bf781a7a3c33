"""A plan's bytes become the words of its head; whatever YAML would forgive is a finding here."""

import re
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from kaiza.domain.finding import ERROR, Finding
from kaiza.domain.paths.confusables import describe_character, find_controls
from kaiza.domain.plans.plan import MAX_BYTES
from kaiza.domain.plans.yaml_tree import FILE_START, MappingNode, SourcePosition, StopParsing, YamlTree

MAX_CHARACTERS = 128 * 1024
_MAX_REPORTED = 200
"""So many characters of a kind are told; each costs a look at everything before it."""

_HIDDEN_CHARACTER = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]"
)
_LONE_RETURN = re.compile(r"\r(?!\n)")
_HEAD_KEY = re.compile(
    r"""[\s"'{,?]*(kaiza_plan|plan_id|status|scope|approved_by|approved_at)["']?\s*:""", re.IGNORECASE
)
_HOW_TO_BEGIN = (
    "Begin with ---, then a line each for kaiza_plan, plan_id, title, status, author, created and scope, then ---"
)


@dataclass(slots=True)
class FrontMatter:
    """What the bytes came to. No `root` where they cannot be read at all."""

    text: str = ""
    root: MappingNode | None = None
    findings: list[Finding] = field(default_factory=list)

    def add_error(self, place: SourcePosition, rule: str, message: str, fix: str) -> None:
        """Take in a finding that takes the plan's effect away."""
        self.findings.append(Finding(place.line, place.column, ERROR, rule, message, fix))


def parse(content: bytes) -> FrontMatter:
    """The head's words, or the findings that say why there are none."""
    head = FrontMatter()
    text = _decode_text(content, head)
    if text is None:
        return head
    head.text = text
    bounds = _find_bounds(text, head)
    if bounds is None:
        return head
    start, end = bounds
    _reject_characters(text, end, head)
    _reject_markers(text, start, end, head)
    _reject_second_head(text, end, head)
    if not head.findings:
        head.root = _parse_yaml(text, start, end, head)
    _reject_in_prose(text, end, head)
    return head


def position_at(text: str, index: int) -> SourcePosition:
    """Line and column of a character."""
    return SourcePosition(text.count("\n", 0, index), index - text.rfind("\n", 0, index) - 1, index)


def _decode_text(content: bytes, head: FrontMatter) -> str | None:
    if len(content) > MAX_BYTES:
        head.add_error(
            FILE_START, "too-large", f"The plan is larger than {MAX_BYTES} bytes", "Split it into several plans"
        )
        return None
    if content.startswith(b"\xef\xbb\xbf"):
        head.add_error(FILE_START, "bom", "The file begins with a byte order mark", "Save it as UTF-8 without one")
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as fault:
        before = content[: fault.start].decode("utf-8")
        head.add_error(position_at(before, len(before)), "encoding", "The file is not UTF-8", "Save it as UTF-8")
        return None


def _find_bounds(text: str, head: FrontMatter) -> tuple[int, int] | None:
    """From where to where the head's own lines go, without the two lines of dashes."""
    first = re.match(r"---\r?\n", text)
    if first is None:
        head.add_error(FILE_START, "head", "The file does not begin with a line ---", _HOW_TO_BEGIN)
        return None
    last = re.compile(r"^---\r?$", re.MULTILINE).search(text, first.end())
    if last is None:
        head.add_error(FILE_START, "head", "The head is not closed", "Close it with a line --- before the prose")
        return None
    if last.start() > MAX_CHARACTERS:
        head.add_error(
            FILE_START, "too-large", f"The head is longer than {MAX_CHARACTERS} characters", "Name fewer paths"
        )
        return None
    return first.end(), last.start()


def _reject_characters(text: str, end: int, head: FrontMatter) -> None:
    for found in islice(re.finditer("\t", text[:end]), _MAX_REPORTED):
        head.add_error(position_at(text, found.start()), "tab", "The head holds a tab", "Use blanks")
    for found in islice(_LONE_RETURN.finditer(text[:end]), _MAX_REPORTED):
        _reject_lone_return(position_at(text, found.start()), head)
    for found in islice(_HIDDEN_CHARACTER.finditer(text[:end]), _MAX_REPORTED):
        message = f"The head holds the character {describe_character(found[0])}"
        head.add_error(position_at(text, found.start()), "hidden-character", message, "Remove it")


def _reject_lone_return(place: SourcePosition, head: FrontMatter) -> None:
    head.add_error(place, "line-end", "A carriage return stands alone", "End lines with a line feed")


def _reject_in_prose(text: str, end: int, head: FrontMatter) -> None:
    """Whatever steers a terminal, so that the plan may be read with any program."""
    for index, character in islice(find_controls(text[end:]), _MAX_REPORTED):
        place = position_at(text, end + index)
        if character == "\r":
            _reject_lone_return(place, head)
        else:
            message = f"The text holds the character {describe_character(character)}"
            head.add_error(place, "hidden-character", message, "Remove it")


def _reject_markers(text: str, start: int, end: int, head: FrontMatter) -> None:
    for found in re.finditer(r"^(---|\.\.\.|%).*", text[start:end], re.MULTILINE):
        message = "The head holds a document marker or a directive"
        head.add_error(position_at(text, start + found.start()), "second-document", message, "Keep to one document")


def _reject_second_head(text: str, end: int, head: FrontMatter) -> None:
    """Prose may have rules of dashes; what it may not have is something that reads like another head."""
    lines = text[end:].split("\n")
    index = end
    for before, line in zip(["", *lines], lines, strict=False):
        if before.strip() in {"---", "..."} and index > end and _HEAD_KEY.match(line):
            message = "The text after the head holds a second head"
            head.add_error(position_at(text, index), "second-document", message, "Remove it; a plan has one head")
        index += len(line) + 1


def _parse_yaml(text: str, start: int, end: int, head: FrontMatter) -> MappingNode | None:
    from ruamel.yaml import YAML  # noqa: PLC0415  many times the cost of everything else here
    from ruamel.yaml.error import MarkedYAMLError, YAMLError  # noqa: PLC0415  as above

    def put(mark: Any) -> SourcePosition:
        return SourcePosition(mark.line + 1, mark.column, mark.index + start)

    try:
        events = YAML(typ="safe", pure=True).parse(text[start:end])
        return YamlTree(text, events, put, head.add_error).root()
    except MarkedYAMLError as fault:
        place = put(fault.problem_mark) if fault.problem_mark else FILE_START
        head.add_error(place, "yaml", "This is not YAML", "Write it like the example in the documentation")
    except (YAMLError, ValueError, OverflowError, IndexError, RecursionError):
        head.add_error(FILE_START, "yaml", "The head is not YAML", "Write it like the example in the documentation")
    except StopParsing:
        return None
    return None
