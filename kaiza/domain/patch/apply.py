"""A parsed patch laid on a file's bytes: each hunk exactly where it says, each old line byte for byte."""

import io
from collections.abc import Mapping
from typing import Literal

from kaiza.domain import errors
from kaiza.domain.patch.file_patch import FilePatch, Hunk

EXECUTE_BIT = 0o100

_FailureReason = Literal["lines", "line_ending", "end_of_file", "whole_file", "mode"]

_SENTENCES: dict[_FailureReason, str] = {
    "lines": "The file's lines are not what the patch expects. Read the file again and make the patch anew.",
    "line_ending": "The file's lines end otherwise than the patch's. Make the patch from the file's own bytes.",
    "end_of_file": "The hunk has no context after its change, but the file goes on. Make the patch with context.",
    "whole_file": "The patch deletes the file but does not name all of its lines. Use delete_file.",
    "mode": "The file's execute bit is not what the patch expects. Read the file again and make the patch anew.",
}
_MAX_SHOWN_LINES = 20
_MAX_SHOWN_BYTES = 400
_MAX_ELSEWHERE = 5
_STRIDE = 1 << 8


def apply_file_patch(file_patch: FilePatch, before: bytes | None, mode: int | None = None) -> bytes | None:
    """Give the file's bytes as they are afterwards; None is a file that is not there."""
    _check_presence(file_patch, before)
    if mode is not None and file_patch.old_mode is not None and (mode ^ file_patch.old_mode) & EXECUTE_BIT:
        raise _apply_error(file_patch, "mode")
    content = memoryview(before or b"")
    lines = _LineIndex(before or b"")
    after: list[bytes | memoryview] = []
    end = 0
    for number, hunk in enumerate(file_patch.hunks, 1):
        start = lines.offset(hunk.start)
        after += (content[end:start], *hunk.new)
        end = lines.offset(hunk.start + len(hunk.old))
        _check_hunk(file_patch, number, lines, slice(start, end))
    after.append(content[end:])
    if file_patch.operation == "delete":
        if any(after):
            raise _apply_error(file_patch, "whole_file")
        return None
    return b"".join(after)


class _LineIndex:
    """Where the lines of a content begin, looked for from one place on to the next; never a list of them all."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self._number = self._at = 0

    def offset(self, number: int) -> int:
        """Where a line begins, from 0; the end of the content where there are fewer. Never one before the last."""
        while self._number < number and self._at < len(self.content):
            end = self._at + _STRIDE
            passed = self.content.count(b"\n", self._at, end)
            if self._number + passed < number:
                self._number, self._at = self._number + passed, end
            else:
                self._number, self._at = self._number + 1, self.content.find(b"\n", self._at) + 1
        return min(self._at, len(self.content))

    @property
    def total(self) -> int:
        """How many there are; a last one without its line feed counts."""
        return self.content.count(b"\n") + (self.content[-1:] not in (b"", b"\n"))


def _check_presence(file_patch: FilePatch, before: bytes | None) -> None:
    if file_patch.operation == "create":
        if before is not None:
            raise errors.SystemError.tool_failure(
                "FILE_ALREADY_EXISTS",
                human_message="The patch creates a file that is there already. Make a patch that modifies it.",
                cause={"path": str(file_patch.path)},
            )
    elif before is None:
        raise errors.SystemError.tool_failure(
            "FILE_NOT_FOUND",
            human_message="The patch is for a file that is not there. Look for it with find_files.",
            cause={"path": str(file_patch.source or file_patch.path)},
        )


def _check_hunk(file_patch: FilePatch, number: int, lines: _LineIndex, place: slice) -> None:
    hunk = file_patch.hunks[number - 1]
    end = hunk.start + len(hunk.old)
    if lines.content[place] != b"".join(hunk.old):
        raise _mismatch_error(file_patch, number, lines, place)
    unfinished = hunk.new and not hunk.new[-1].endswith(b"\n")
    if (hunk.ends_file or unfinished) and end != lines.total:
        rest = io.BytesIO(lines.content[place.stop : lines.offset(end + _MAX_SHOWN_LINES)])
        evidence = {"expected": [], "found": _display_lines(rest.readlines())}
        raise _apply_error(file_patch, "end_of_file", {"hunk": number, "patch_line": hunk.line, "line": end}, evidence)


def _mismatch_error(file_patch: FilePatch, number: int, lines: _LineIndex, place: slice) -> errors.SystemError:
    hunk = file_patch.hunks[number - 1]
    found = io.BytesIO(lines.content[place]).readlines()
    first = next(
        (at for at, (ours, theirs) in enumerate(zip(hunk.old, found, strict=False)) if ours != theirs), len(found)
    )
    where = {
        "hunk": number,
        "patch_line": hunk.line,
        "line": hunk.start + first,
        "total_lines": lines.total,
        "fits_at": _find_elsewhere(hunk, lines.content),
    }
    shown = slice(first, first + _MAX_SHOWN_LINES)
    evidence = {"expected": _display_lines(hunk.old[shown]), "found": _display_lines(found[shown])}
    return _apply_error(
        file_patch, "line_ending" if _is_line_ending_mismatch(hunk, found) else "lines", where, evidence
    )


def _is_line_ending_mismatch(hunk: Hunk, found: list[bytes]) -> bool:
    return [line.rstrip(b"\r\n") for line in hunk.old] == [line.rstrip(b"\r\n") for line in found]


def _find_elsewhere(hunk: Hunk, content: bytes) -> list[int]:
    """Where else the hunk's old lines stand, as far as a few places; told, never used."""
    content, block = b"\n" + content, b"\n" + b"".join(hunk.old)
    places: list[int] = []
    at = content.find(block)
    while at >= 0 and len(places) < _MAX_ELSEWHERE:
        places.append(content.count(b"\n", 0, at))
        at = content.find(block, at + 1)
    return places


def _apply_error(
    file_patch: FilePatch,
    why: _FailureReason,
    place: Mapping[str, object] | None = None,
    evidence: Mapping[str, object] | None = None,
) -> errors.SystemError:
    path = str(file_patch.source or file_patch.path)
    return errors.SystemError.tool_failure(
        "PATCH_APPLY_FAILED",
        human_message=_SENTENCES[why],
        cause={"path": path, "why": why, **(place or {})},
        evidence=None if evidence is None else {"path": path, **(place or {}), **evidence},
    )


def _display_lines(lines: tuple[bytes, ...] | list[bytes]) -> list[str]:
    return [line[:_MAX_SHOWN_BYTES].decode(errors="backslashreplace") for line in lines]
