"""Strict parser of unified diffs. What git diff and diff -u never write is refused; nothing is repaired or guessed."""

import io

from kaiza.domain.patch.errors import cap_exceeded, invalid_patch
from kaiza.domain.patch.file_patch import MAX_FILES, MAX_HUNKS, FilePatch, Hunk, PatchOperation
from kaiza.domain.patch.header import FileHeader, parse_header
from kaiza.domain.patch.hunks import parse_hunks
from kaiza.domain.paths import rel_path
from kaiza.domain.paths.rel_path import RelPath


def parse(patch: bytes) -> tuple[FilePatch, ...]:
    """Parse a patch. Errors of form are reported before errors of paths."""
    lines = io.BytesIO(patch).readlines()
    if not lines:
        raise invalid_patch(0, "empty")
    # A cut patch may still be well-formed, and would then change less than was meant.
    if not lines[-1].endswith(b"\n"):
        raise invalid_patch(len(lines) - 1, "cut_last_line")
    files = tuple(_build_file_patch(header, hunks) for header, hunks in _parse_entries(lines))
    seen: set[RelPath] = set()
    for file in files:
        for path in filter(None, (file.source, file.path)):
            if path in seen:
                raise invalid_patch(file.line, "path_twice")
            seen.add(path)
    return files


def _parse_entries(lines: list[bytes]) -> list[tuple[FileHeader, tuple[Hunk, ...]]]:
    entries: list[tuple[FileHeader, tuple[Hunk, ...]]] = []
    at = hunk_count = 0
    while at < len(lines):
        header, at = parse_header(lines, at)
        hunks, at = parse_hunks(lines, at)
        _require_change(header, hunks)
        entries.append((header, hunks))
        hunk_count += len(hunks)
    if len(entries) > MAX_FILES:
        raise cap_exceeded("files", MAX_FILES, len(entries))
    if hunk_count > MAX_HUNKS:
        raise cap_exceeded("hunks", MAX_HUNKS, hunk_count)
    return entries


def _require_change(header: FileHeader, hunks: tuple[Hunk, ...]) -> None:
    if header.old is None and any(hunk.old for hunk in hunks):
        raise invalid_patch(header.line, "create")
    if header.new is None and any(hunk.new for hunk in hunks):
        raise invalid_patch(header.line, "delete")
    if hunks:
        return
    if header.paired:
        raise invalid_patch(header.line, "header")
    if header.old == header.new and header.new_mode is None:
        raise invalid_patch(header.line, "changes_nothing")


def _build_file_patch(header: FileHeader, hunks: tuple[Hunk, ...]) -> FilePatch:
    old, new = _parse_path(header.old, header.line), _parse_path(header.new, header.line)
    operation: PatchOperation = "modify" if header.old == header.new else "move"
    if header.old is None:
        operation = "create"
    elif header.new is None:
        operation = "delete"
    return FilePatch(
        path=new or old or rel_path.ROOT,
        operation=operation,
        source=old if operation == "move" else None,
        old_mode=header.old_mode,
        new_mode=header.new_mode,
        hunks=hunks,
        line=header.line,
    )


def _parse_path(name: bytes | None, line: int) -> RelPath | None:
    """Parse a name as a path, which also refuses names that are not UTF-8."""
    if name is None:
        return None
    path = rel_path.parse(name.decode(errors="surrogateescape"))
    if path == rel_path.ROOT:
        raise invalid_patch(line, "root")
    return path
