"""Edits to a file's bytes: each names the one place it means in the original, and touches nothing else."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kaiza.domain import errors
from kaiza.domain.text import lines

_MAX_PLACES = 200
_MAX_LINES = 200
_MAX_WORDS = 50
_ASCII = 127


@dataclass(frozen=True, slots=True)
class NearMatch:
    """Lines `first` to `last` (outside) come nearest; `only_endings`: they differ in CR alone."""

    first: int
    last: int
    text: bytes
    only_line_endings: bool


def find_nearest(content: bytes, wanted: bytes) -> NearMatch | None:
    """The place that is most like the wanted lines, if anything is alike."""
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
    return NearMatch(first, last, found, only_line_endings=_strip_line_endings(wanted) in _strip_line_endings(found))


def _strip_line_endings(text: bytes) -> bytes:
    return text.replace(b"\r\n", b"\n").rstrip(b"\r\n")


def _match_by_lines(have: Sequence[bytes], want: Sequence[bytes]) -> int | None:
    """Each line found again, blanks at its ends aside, votes for where the first one would stand."""
    asked = {line.strip() for line in want[:_MAX_LINES]} - {b""}
    places: dict[bytes, list[int]] = {}
    for at, line in enumerate(have):
        bare = line.strip()
        if bare in asked:
            places.setdefault(bare, []).append(at)
    votes: Counter[int] = Counter()
    for offset, line in enumerate(want[:_MAX_LINES]):
        found = places.get(line.strip(), [])
        votes.update(max(at - offset, 0) for at in found[:_MAX_PLACES])
    head = want[0].strip()
    return max(votes, key=lambda first: (votes[first], have[first].strip() == head, -first)) if votes else None


def _match_by_words(have: Sequence[bytes], want: Sequence[bytes]) -> int | None:
    """The line that shares most words with the longest wanted one."""
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


_WORD_SEPARATORS = bytes(
    byte if chr(byte).isalnum() or byte > _ASCII or byte == ord("_") else 0x20 for byte in range(256)
)


_MAX_MATCHES = 100
_MAX_SHOWN_LINES = 40
_MAX_SHOWN_BYTES = 400


@dataclass(frozen=True, slots=True)
class ReplaceText:
    """Put `new_text` where `old_text` stands, which must be in exactly one place."""

    old_text: bytes
    new_text: bytes


@dataclass(frozen=True, slots=True)
class Position:
    """A line and a character of it, both from 0; characters are code points."""

    line: int
    character: int


@dataclass(frozen=True, slots=True)
class ReplaceRange:
    """Put `new_text` between two positions."""

    start: Position
    end: Position
    new_text: bytes


@dataclass(frozen=True, slots=True)
class _ResolvedEdit:
    edit: int
    start: int
    end: int
    new_text: bytes


def apply(before: bytes, edits: Sequence[ReplaceText | ReplaceRange]) -> bytes:
    """Give the bytes after all edits, each of which was found in the original; all or none."""
    starts = _line_starts(before) if any(isinstance(edit, ReplaceRange) for edit in edits) else []
    cuts = [
        _locate_text(before, number, edit)
        if isinstance(edit, ReplaceText)
        else _locate_range(before, starts, number, edit)
        for number, edit in enumerate(edits)
    ]
    return _join_edits(before, sorted(cuts, key=lambda cut: (cut.start, cut.end)))


def _join_edits(before: bytes, cuts: Sequence[_ResolvedEdit]) -> bytes:
    pieces: list[bytes] = []
    end, last = 0, None
    for cut in cuts:
        if last is not None and cut.start < end:
            raise _invalid_edit(
                "Two edits overlap. Put them into one.", {"edits": sorted((last.edit, cut.edit))}, "overlap"
            )
        if before[cut.start : cut.end] == cut.new_text:
            raise _invalid_edit("An edit changes nothing. Leave it out.", {"edit": cut.edit}, "changes_nothing")
        pieces += (before[end : cut.start], cut.new_text)
        end, last = cut.end, cut
    after = b"".join((*pieces, before[end:]))
    if after == before:
        raise _invalid_edit("The edits together change nothing. Leave them out.", {}, "changes_nothing")
    return after


def _locate_text(before: bytes, number: int, edit: ReplaceText) -> _ResolvedEdit:
    if not edit.old_text:
        raise _invalid_edit(
            "An old_text is empty. Name the text to replace, or use a range.", {"edit": number}, "empty"
        )
    at = before.find(edit.old_text)
    if at < 0:
        raise _no_match_error(before, number, edit)
    if before.find(edit.old_text, at + 1) >= 0:
        raise _ambiguous_match_error(before, number, edit)
    return _ResolvedEdit(number, at, at + len(edit.old_text), edit.new_text)


def _no_match_error(before: bytes, number: int, edit: ReplaceText) -> errors.SystemError:
    """Tell which lines come nearest; what stands in them goes to the client alone."""
    place = find_nearest(before, edit.old_text)
    cause: dict[str, object] = {"edit": number, "matches": 0, "why": "no_match"}
    if place is None:
        return _apply_error("The old_text is not in the file. Read the file again.", cause, edit, [])
    cause["why"] = "line_ending" if place.only_line_endings else "no_match"
    cause["nearest_lines"] = list(range(place.first, place.last))[:_MAX_MATCHES]
    sentence = (
        "The old_text's lines end otherwise than the file's. Copy its bytes exactly."
        if place.only_line_endings
        else "The old_text is not in the file as it is given. Look at the nearest lines and copy its bytes exactly."
    )
    return _apply_error(sentence, cause, edit, [{"line": place.first, "text": _display_lines(place.text)}])


def _ambiguous_match_error(before: bytes, number: int, edit: ReplaceText) -> errors.SystemError:
    """Tell the lines of all matches; overlapping ones count."""
    at, line, begun = before.find(edit.old_text), 0, 0
    matches: list[int] = []
    while at >= 0 and len(matches) < _MAX_MATCHES:
        line += before.count(b"\n", begun, at)
        matches.append(line)
        begun = at
        at = before.find(edit.old_text, at + 1)
    more = at >= 0
    cause = {"edit": number, "matches": len(matches), "more": more, "lines": matches, "why": "several_matches"}
    sentence = "The old_text is in several places. Take more of the lines around it, or use a range."
    return _apply_error(sentence, cause, edit, [{"line": line} for line in matches])


def _locate_range(before: bytes, starts: Sequence[int], number: int, edit: ReplaceRange) -> _ResolvedEdit:
    start, end = (_byte_offset(before, starts, number, position) for position in (edit.start, edit.end))
    if start > end:
        raise _invalid_edit("A range ends before it starts. Swap its ends.", {"edit": number}, "range")
    return _ResolvedEdit(number, start, end, edit.new_text)


def _line_starts(before: bytes) -> list[int]:
    """Where each line begins; a last line that ends with LF is followed by an empty one, where text can be put."""
    starts, at = [0], before.find(b"\n")
    while at >= 0:
        starts.append(at + 1)
        at = before.find(b"\n", at + 1)
    return starts


def _byte_offset(before: bytes, starts: Sequence[int], number: int, position: Position) -> int:
    """The byte at a position; a character is a code point, or a byte that is no part of one."""
    beyond = {
        "edit": number,
        "line": position.line,
        "character": position.character,
        "total_lines": lines.count(before),
    }
    if position.line >= len(starts):
        raise _invalid_edit("A range goes beyond the file's last line. Read the file again.", beyond, "range")
    begin = starts[position.line]
    end = starts[position.line + 1] - 1 if position.line + 1 < len(starts) else len(before)
    text = before[begin:end].decode(errors="surrogateescape")
    if position.character > len(text):
        beyond["characters"] = len(text)
        raise _invalid_edit("A range goes beyond the end of its line. Read the line again.", beyond, "range")
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
