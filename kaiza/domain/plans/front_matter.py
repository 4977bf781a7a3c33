"""Front matter of a plan: checks the bytes, then parses the YAML between the two `---` lines into a node tree.

Stricter than YAML: anything that a person could overlook or read differently is a finding. Does not interpret fields.
"""

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
"""Findings of one kind; finding the line of each scans all text before it."""

_HIDDEN_CHARACTER = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]"
)
_LONE_RETURN = re.compile(r"\r(?!\n)")
_HEAD_KEY = re.compile(
    r"""[\s"'{,?]*(kaiza_plan|plan_id|status|scope|approved_by|approved_at)["']?\s*:""", re.IGNORECASE
)
_HOW_TO_BEGIN = (
    "Begin with ---, then one line each for kaiza_plan, plan_id, title, status, author, created and scope, then ---"
)
_YAML_FIX = "Write it like the example in the documentation"


@dataclass(slots=True)
class FrontMatter:
    """Parsed front matter. `root` is None if it could not be parsed."""

    text: str = ""
    prose: str = ""
    """The text below the front matter."""
    root: MappingNode | None = None
    findings: list[Finding] = field(default_factory=list)

    def add_error(self, position: SourcePosition, rule: str, message: str, fix: str) -> None:
        """Add a finding that makes the plan invalid."""
        self.findings.append(Finding(position.line, position.column, ERROR, rule, message, fix))


def parse(content: bytes) -> FrontMatter:
    """Parse a plan's front matter."""
    head = FrontMatter()
    text = _decode_text(content, head)
    if text is None:
        return head
    head.text = text
    bounds = _find_bounds(text, head)
    if bounds is None:
        return head
    start, end = bounds
    head.prose = text[end:].partition("\n")[2]
    _reject_characters(text, end, head)
    for match in re.finditer(r"^(---|\.\.\.|%).*", text[start:end], re.MULTILINE):
        message = "The front matter contains a document marker or a directive"
        head.add_error(position_at(text, start + match.start()), "second-document", message, "Remove it")
    _reject_second_head(text, end, head)
    # The YAML library never sees characters or markers that it and an editor might read differently.
    if not head.findings:
        head.root = _parse_yaml(text, start, end, head)
    _reject_in_prose(text, end, head)
    return head


def position_at(text: str, index: int) -> SourcePosition:
    """Line and column of the character at an index."""
    return SourcePosition(text.count("\n", 0, index), index - text.rfind("\n", 0, index) - 1, index)


def _decode_text(content: bytes, head: FrontMatter) -> str | None:
    if len(content) > MAX_BYTES:
        head.add_error(
            FILE_START, "too-large", f"The file is larger than {MAX_BYTES} bytes", "Split the plan into several"
        )
        return None
    if content.startswith(b"\xef\xbb\xbf"):
        head.add_error(FILE_START, "bom", "The file begins with a byte order mark", "Save it as UTF-8 without one")
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        valid = content[: error.start].decode("utf-8")
        head.add_error(position_at(valid, len(valid)), "encoding", "The file is not UTF-8", "Save it as UTF-8")
        return None


def _find_bounds(text: str, head: FrontMatter) -> tuple[int, int] | None:
    """Start and end of the front matter, without its two `---` lines."""
    opening = re.match(r"---\r?\n", text)
    if opening is None:
        head.add_error(FILE_START, "head", "The file does not begin with a line ---", _HOW_TO_BEGIN)
        return None
    closing = re.compile(r"^---\r?$", re.MULTILINE).search(text, opening.end())
    if closing is None:
        head.add_error(FILE_START, "head", "The front matter is not closed", "Close it with a line --- before the text")
        return None
    if closing.start() > MAX_CHARACTERS:
        message = f"The front matter is longer than {MAX_CHARACTERS} characters"
        head.add_error(FILE_START, "too-large", message, "List fewer paths")
        return None
    return opening.end(), closing.start()


def _reject_characters(text: str, end: int, head: FrontMatter) -> None:
    for match in islice(re.finditer("\t", text[:end]), _MAX_REPORTED):
        head.add_error(position_at(text, match.start()), "tab", "The front matter contains a tab", "Use spaces")
    for match in islice(_LONE_RETURN.finditer(text[:end]), _MAX_REPORTED):
        _reject_lone_return(position_at(text, match.start()), head)
    for match in islice(_HIDDEN_CHARACTER.finditer(text[:end]), _MAX_REPORTED):
        message = f"The front matter contains the character {describe_character(match[0])}"
        head.add_error(position_at(text, match.start()), "hidden-character", message, "Remove it")


def _reject_lone_return(position: SourcePosition, head: FrontMatter) -> None:
    head.add_error(position, "line-end", "A carriage return without a line feed", "End lines with a line feed")


def _reject_in_prose(text: str, end: int, head: FrontMatter) -> None:
    # People read plans with cat: what a terminal shows must be the text.
    for index, character in islice(find_controls(text[end:]), _MAX_REPORTED):
        position = position_at(text, end + index)
        if character == "\r":
            _reject_lone_return(position, head)
        else:
            message = f"The text contains the character {describe_character(character)}"
            head.add_error(position, "hidden-character", message, "Remove it")


def _reject_second_head(text: str, end: int, head: FrontMatter) -> None:
    """Reject text that reads like another front matter. Lines of dashes alone are allowed."""
    lines = text[end:].split("\n")
    index = end
    for previous, line in zip(["", *lines], lines, strict=False):
        if previous.strip() in {"---", "..."} and index > end and _HEAD_KEY.match(line):
            message = "The text contains a second front matter"
            head.add_error(position_at(text, index), "second-document", message, "Remove it")
        index += len(line) + 1


def _parse_yaml(text: str, start: int, end: int, head: FrontMatter) -> MappingNode | None:
    # Imported on first use: about 80 ms, which a server without plans never pays.
    from ruamel.yaml import YAML  # noqa: PLC0415
    from ruamel.yaml.error import MarkedYAMLError, YAMLError  # noqa: PLC0415

    def to_position(mark: Any) -> SourcePosition:
        return SourcePosition(mark.line + 1, mark.column, mark.index + start)

    try:
        # Events, not load(): a loaded value no longer shows duplicate keys, anchors, quotes or positions.
        events = YAML(typ="safe", pure=True).parse(text[start:end])
        return YamlTree(text, events, to_position, head.add_error).parse_root()
    except MarkedYAMLError as error:
        position = to_position(error.problem_mark) if error.problem_mark else FILE_START
        head.add_error(position, "yaml", "This is not valid YAML", _YAML_FIX)
    except (YAMLError, ValueError, OverflowError, IndexError, RecursionError):  # ruamel raises all of these
        head.add_error(FILE_START, "yaml", "The front matter is not valid YAML", _YAML_FIX)
    except StopParsing:
        return None
    return None
