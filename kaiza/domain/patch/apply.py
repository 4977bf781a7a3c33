"""Applies a parsed patch to a file's bytes. Hunks must match at their exact line: there is no fuzz and no offset."""

import io
from collections.abc import Mapping

from kaiza.domain import errors
from kaiza.domain.patch.file_patch import FilePatch, Hunk

EXECUTE_BIT = 0o100

_SENTENCES = {
    "lines": "The file's lines are not those that the patch expects. Read the file again and make a new patch.",
    "line_ending": "The line endings of the file and the patch differ. Make the patch from the file's exact bytes.",
    "end_of_file": "The hunk ends without context, but the file has more lines. Make the patch with context lines.",
    "whole_file": "The patch deletes the file but does not list all of its lines. Use delete_file instead.",
    "mode": "The file's execute bit is not the one that the patch expects. Make a new patch from the file.",
}
# Bounds of an error's evidence.
_MAX_SHOWN_LINES = 20
_MAX_SHOWN_BYTES = 400
_MAX_ELSEWHERE = 5
_STRIDE = 1 << 8


def apply_file_patch(file_patch: FilePatch, before: bytes | None, mode: int | None = None) -> bytes | None:
    """Apply a patch to a file's content; None is a file that does not exist."""
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
    """Finds line offsets in ascending order, without a list of all lines."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        # The last line that was found, and its offset.
        self._number = self._at = 0

    def offset(self, number: int) -> int:
        """Offset of a line, from 0, or the end of the content. Must not be less than in earlier calls."""
        while self._number < number and self._at < len(self.content):
            end = self._at + _STRIDE
            line_breaks = self.content.count(b"\n", self._at, end)
            if self._number + line_breaks < number:
                self._number, self._at = self._number + line_breaks, end
            else:
                self._number, self._at = self._number + 1, self.content.find(b"\n", self._at) + 1
        return min(self._at, len(self.content))

    @property
    def total(self) -> int:
        """Number of lines, including a last one without LF."""
        return self.content.count(b"\n") + (self.content[-1:] not in (b"", b"\n"))


def _check_presence(file_patch: FilePatch, before: bytes | None) -> None:
    if file_patch.operation == "create":
        if before is not None:
            raise errors.SystemError.tool_failure(
                "FILE_ALREADY_EXISTS",
                human_message="The patch creates a file that exists already. Make a patch that modifies it.",
                cause={"path": str(file_patch.path)},
            )
    elif before is None:
        raise errors.SystemError.tool_failure(
            "FILE_NOT_FOUND",
            human_message="The patch is for a file that does not exist. Find it with find_files.",
            cause={"path": str(file_patch.source or file_patch.path)},
        )


def _check_hunk(file_patch: FilePatch, number: int, lines: _LineIndex, span: slice) -> None:
    hunk = file_patch.hunks[number - 1]
    end = hunk.start + len(hunk.old)
    if lines.content[span] != b"".join(hunk.old):
        raise _mismatch_error(file_patch, number, lines, span)
    # A new last line without LF would be joined with the next line of the file.
    lacks_newline = hunk.new and not hunk.new[-1].endswith(b"\n")
    if (hunk.ends_file or lacks_newline) and end != lines.total:
        rest = io.BytesIO(lines.content[span.stop : lines.offset(end + _MAX_SHOWN_LINES)])
        evidence = {"expected": [], "found": _display_lines(rest.readlines())}
        raise _apply_error(file_patch, "end_of_file", {"hunk": number, "patch_line": hunk.line, "line": end}, evidence)


def _mismatch_error(file_patch: FilePatch, number: int, lines: _LineIndex, span: slice) -> errors.SystemError:
    hunk = file_patch.hunks[number - 1]
    found = io.BytesIO(lines.content[span]).readlines()
    first = next(
        (at for at, (ours, theirs) in enumerate(zip(hunk.old, found, strict=False)) if ours != theirs), len(found)
    )
    position = {
        "hunk": number,
        "patch_line": hunk.line,
        "line": hunk.start + first,
        "total_lines": lines.total,
        "fits_at": _find_elsewhere(hunk, lines.content),
    }
    shown = slice(first, first + _MAX_SHOWN_LINES)
    evidence = {"expected": _display_lines(hunk.old[shown]), "found": _display_lines(found[shown])}
    expected, ours = ([line.rstrip(b"\r\n") for line in each] for each in (hunk.old, found))
    return _apply_error(file_patch, "line_ending" if expected == ours else "lines", position, evidence)


def _find_elsewhere(hunk: Hunk, content: bytes) -> list[int]:
    """Lines where the hunk's old lines occur. Reported only: a hunk is never applied at another line than its own."""
    content, block = b"\n" + content, b"\n" + b"".join(hunk.old)
    found_at: list[int] = []
    at = content.find(block)
    while at >= 0 and len(found_at) < _MAX_ELSEWHERE:
        found_at.append(content.count(b"\n", 0, at))
        at = content.find(block, at + 1)
    return found_at


def _apply_error(
    file_patch: FilePatch,
    reason: str,
    position: Mapping[str, object] | None = None,
    evidence: Mapping[str, object] | None = None,
) -> errors.SystemError:
    # The cause is logged, so it holds numbers only; lines of the file go into the evidence, which is not.
    path = str(file_patch.source or file_patch.path)
    return errors.SystemError.tool_failure(
        "PATCH_APPLY_FAILED",
        human_message=_SENTENCES[reason],
        cause={"path": path, "why": reason, **(position or {})},
        evidence=None if evidence is None else {"path": path, **(position or {}), **evidence},
    )


def _display_lines(lines: tuple[bytes, ...] | list[bytes]) -> list[str]:
    return [line[:_MAX_SHOWN_BYTES].decode(errors="backslashreplace") for line in lines]
