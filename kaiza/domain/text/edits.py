"""Edits of a file's bytes: replaces exact texts, each in one place, or ranges. All edits apply, or none.

An edit that does not apply is refused with the lines nearest to its text. It is never applied to similar text.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kaiza.domain import errors
from kaiza.domain.text import lines
from kaiza.domain.text.line_diff import ChangedSpan

# Bounds of an error message.
_MAX_MATCHES = 100
_MAX_SHOWN_LINES = 40
_MAX_SHOWN_BYTES = 400
# Bounds of the search for the nearest lines, which keep it linear in the size of the file.
_MAX_PLACES = 200
_MAX_LINES = 200
_MAX_WORDS = 50
_MAX_SEARCHED_LINES = 500_000
_ASCII = 127
_WORD_SEPARATORS = bytes(
    byte if chr(byte).isalnum() or byte > _ASCII or byte == ord("_") else 0x20 for byte in range(256)
)


@dataclass(frozen=True, slots=True)
class ReplaceText:
    """Replace `old_text`, which must occur exactly once."""

    old_text: bytes
    new_text: bytes


@dataclass(frozen=True, slots=True)
class Position:
    """Line and character, both from 0. A character is a code point."""

    line: int
    character: int


@dataclass(frozen=True, slots=True)
class ReplaceRange:
    """Replace the text between two positions."""

    start: Position
    end: Position
    new_text: bytes


@dataclass(frozen=True, slots=True)
class _ResolvedEdit:
    edit: int
    start: int
    end: int
    new_text: bytes


class EditedContent(NamedTuple):
    """The new bytes, and which of them replaced which of the old ones, in order."""

    content: bytes
    replaced: Sequence[ChangedSpan]


def apply(before: bytes, edits: Sequence[ReplaceText | ReplaceRange]) -> EditedContent:
    """Apply all edits, each of them located in the original bytes."""
    resolved: list[_ResolvedEdit] = []
    for number, edit in enumerate(edits):
        if isinstance(edit, ReplaceText):
            resolved.append(_locate_text(before, number, edit))
            continue
        start, end = (_byte_offset(before, number, position) for position in (edit.start, edit.end))
        if start > end:
            raise _invalid_edit("A range ends before it starts. Swap start and end.", {"edit": number}, "range")
        resolved.append(_ResolvedEdit(number, start, end, edit.new_text))
    return _apply_in_order(before, sorted(resolved, key=lambda edit: (edit.start, edit.end)))


def _apply_in_order(before: bytes, edits: Sequence[_ResolvedEdit]) -> EditedContent:
    pieces: list[bytes] = []
    replaced: list[ChangedSpan] = []
    end, last, shift = 0, None, 0
    for edit in edits:
        if last is not None and edit.start < end:
            raise _invalid_edit(
                "Two edits overlap. Combine them into one.", {"edits": sorted((last.edit, edit.edit))}, "overlap"
            )
        if before[edit.start : edit.end] == edit.new_text:
            raise _invalid_edit("An edit changes nothing. Leave it out.", {"edit": edit.edit}, "changes_nothing")
        pieces += (before[end : edit.start], edit.new_text)
        start, shift = edit.start + shift, shift + len(edit.new_text) - (edit.end - edit.start)
        replaced.append(ChangedSpan(edit.start, edit.end, start, start + len(edit.new_text)))
        end, last = edit.end, edit
    after = b"".join((*pieces, before[end:]))
    if after == before:
        raise _invalid_edit("Together the edits change nothing. Leave them out.", {}, "changes_nothing")
    return EditedContent(after, replaced)


def _locate_text(before: bytes, number: int, edit: ReplaceText) -> _ResolvedEdit:
    if not edit.old_text:
        raise _invalid_edit(
            "An old_text is empty. Pass the text to replace, or use a range.", {"edit": number}, "empty"
        )
    at = before.find(edit.old_text)
    if at < 0:
        raise _no_match_error(before, number, edit)
    # From `at + 1`, not from the end of the match: overlapping occurrences are ambiguous too.
    if before.find(edit.old_text, at + 1) >= 0:
        raise _ambiguous_match_error(before, number, edit)
    return _ResolvedEdit(number, at, at + len(edit.old_text), edit.new_text)


def _no_match_error(before: bytes, number: int, edit: ReplaceText) -> errors.SystemError:
    # Line numbers go into the cause, which is logged; the lines themselves only into the evidence, which is not.
    place = _find_nearest(before, edit.old_text)
    cause: dict[str, object] = {"edit": number, "matches": 0, "why": "no_match"}
    if place is None:
        return _apply_error(
            "The old_text is not in the file. Read the file again and copy the text from it.", cause, edit, []
        )
    cause["why"] = "line_ending" if place.only_line_endings else "no_match"
    cause["nearest_lines"] = list(range(place.first, place.last))[:_MAX_MATCHES]
    sentence = (
        "The line endings of old_text are not those of the file. Copy the file's bytes exactly."
        if place.only_line_endings
        else "The old_text is not in the file exactly as given. Compare the nearest lines and copy their bytes exactly."
    )
    return _apply_error(sentence, cause, edit, [{"line": place.first, "text": _display_lines(place.text)}])


def _ambiguous_match_error(before: bytes, number: int, edit: ReplaceText) -> errors.SystemError:
    at, line, counted = before.find(edit.old_text), 0, 0
    matches: list[int] = []
    while at >= 0 and len(matches) < _MAX_MATCHES:
        line += before.count(b"\n", counted, at)
        matches.append(line)
        counted = at
        at = before.find(edit.old_text, at + 1)
    more = at >= 0
    cause = {"edit": number, "matches": len(matches), "more": more, "lines": matches, "why": "several_matches"}
    sentence = "The old_text occurs several times. Include more of the lines around it, or use a range."
    return _apply_error(sentence, cause, edit, [{"line": line} for line in matches])


def _byte_offset(before: bytes, number: int, position: Position) -> int:
    """Byte offset of a position; a byte that is not UTF-8 counts as one character.

    The end of a file that ends with LF counts as a line, so that text can be appended there.
    """
    beyond = {
        "edit": number,
        "line": position.line,
        "character": position.character,
        "total_lines": lines.count(before),
    }
    begin, skipped = lines.skip_lines(before, position.line)
    if skipped < position.line:
        raise _invalid_edit("A range is beyond the last line of the file. Read the file again.", beyond, "range")
    line_break = before.find(b"\n", begin)
    text = before[begin : len(before) if line_break < 0 else line_break].decode(errors="surrogateescape")
    if position.character > len(text):
        beyond["characters"] = len(text)
        raise _invalid_edit("A range is beyond the end of its line. Read the line again.", beyond, "range")
    return begin + len(text[: position.character].encode(errors="surrogateescape"))


def _invalid_edit(sentence: str, cause: Mapping[str, object], why: str) -> errors.SystemError:
    return errors.SystemError.tool_failure(
        "INVALID_INPUT_VALUE", human_message=sentence, cause={"argument": "edits", "why": why, **cause}
    )


def _apply_error(
    sentence: str, cause: Mapping[str, object], edit: ReplaceText, found: Sequence[Mapping[str, object]]
) -> errors.SystemError:
    evidence = {"edit": cause["edit"], "expected": _display_lines(edit.old_text), "found": list(found)}
    return errors.SystemError.tool_failure("PATCH_APPLY_FAILED", human_message=sentence, cause=cause, evidence=evidence)


def _display_lines(content: bytes) -> list[str]:
    shown = content.split(b"\n")[:_MAX_SHOWN_LINES]
    return [line[:_MAX_SHOWN_BYTES].decode(errors="backslashreplace") for line in shown]


@dataclass(frozen=True, slots=True)
class _NearMatch:
    """Lines from `first` to before `last` that are most like the wanted ones."""

    first: int
    last: int
    text: bytes
    only_line_endings: bool


def _find_nearest(content: bytes, wanted: bytes) -> _NearMatch | None:
    if lines.count(content) > _MAX_SEARCHED_LINES:
        return None
    have, want = content.split(b"\n"), wanted.split(b"\n")
    if not have[-1]:
        have.pop()
    while len(want) > 1 and not want[-1]:
        want.pop()
    first = _match_by_lines(have, want)
    if first is None:
        first = _match_by_words(have, want)
    if first is None:
        return None
    last = min(first + len(want), len(have))
    found = b"\n".join(have[first:last])
    stripped, wanted_stripped = (text.replace(b"\r\n", b"\n").rstrip(b"\r\n") for text in (found, wanted))
    return _NearMatch(first, last, found, only_line_endings=wanted_stripped in stripped)


def _match_by_lines(have: Sequence[bytes], want: Sequence[bytes]) -> int | None:
    """First line of the nearest place: each wanted line that occurs, apart from its indent, votes for one."""
    wanted_lines = {line.strip() for line in want[:_MAX_LINES]} - {b""}
    places: dict[bytes, list[int]] = {}
    for at, line in enumerate(have):
        stripped = line.strip()
        if stripped in wanted_lines:
            places.setdefault(stripped, []).append(at)
    votes: Counter[int] = Counter()
    for offset, line in enumerate(want[:_MAX_LINES]):
        found = places.get(line.strip(), [])
        votes.update(max(at - offset, 0) for at in found[:_MAX_PLACES])
    head = want[0].strip()
    return max(votes, key=lambda first: (votes[first], have[first].strip() == head, -first)) if votes else None


def _match_by_words(have: Sequence[bytes], want: Sequence[bytes]) -> int | None:
    """First line of the nearest place, by the line that shares most words with the longest wanted line."""
    offset = max(range(len(want)), key=lambda at: len(want[at].strip()))
    words = set(_split_words(want[offset]))
    best, most = None, 0
    for at, line in enumerate(have):
        shared = len(words.intersection(_split_words(line)))
        if shared > most:
            best, most = at, shared
    return None if best is None else max(best - offset, 0)


def _split_words(line: bytes) -> list[bytes]:
    spaced = line.translate(_WORD_SEPARATORS)
    return spaced.split(None, _MAX_WORDS)[:_MAX_WORDS]
