"""A unified diff read strictly: what no producer of correct diffs would write is refused, and nothing is guessed."""

import io

from kaiza.domain import paths
from kaiza.domain.patch import header as headers
from kaiza.domain.patch import hunks as bodies
from kaiza.domain.patch.entry import MAX_FILES, MAX_HUNKS, FilePatch, Hunk, Operation
from kaiza.domain.patch.header import Header
from kaiza.domain.patch.refusal import invalid, too_much
from kaiza.domain.paths import RelPath

_Entry = tuple[Header, tuple[Hunk, ...]]


def parse(patch: bytes) -> tuple[FilePatch, ...]:
    """Read a patch whole; its form is judged before its paths."""
    lines = io.BytesIO(patch).readlines()
    if not lines:
        raise invalid(0, "empty")
    if not lines[-1].endswith(b"\n"):
        raise invalid(len(lines) - 1, "cut_last_line")
    files = tuple(_file(header, hunks) for header, hunks in _entries(lines))
    _one_entry_a_path(files)
    return files


def _entries(lines: list[bytes]) -> list[_Entry]:
    entries: list[_Entry] = []
    at = hunk_count = 0
    while at < len(lines):
        header, at = headers.read(lines, at)
        hunks, at = bodies.read(lines, at)
        _changes_something(header, hunks)
        entries.append((header, hunks))
        hunk_count += len(hunks)
    if len(entries) > MAX_FILES:
        raise too_much("files", MAX_FILES, len(entries))
    if hunk_count > MAX_HUNKS:
        raise too_much("hunks", MAX_HUNKS, hunk_count)
    return entries


def _changes_something(header: Header, hunks: tuple[Hunk, ...]) -> None:
    if header.old is None and any(hunk.old for hunk in hunks):
        raise invalid(header.line, "create")
    if header.new is None and any(hunk.new for hunk in hunks):
        raise invalid(header.line, "delete")
    if hunks:
        return
    if header.paired:
        raise invalid(header.line, "header")
    if header.old == header.new and header.new_mode is None:
        raise invalid(header.line, "changes_nothing")


def _file(header: Header, hunks: tuple[Hunk, ...]) -> FilePatch:
    old, new = _path(header.old, header.line), _path(header.new, header.line)
    path = new or old or paths.ROOT
    return FilePatch(
        path=path,
        operation=_operation(header),
        source=old if header.old and header.new and header.old != header.new else None,
        old_mode=header.old_mode,
        new_mode=header.new_mode,
        hunks=hunks,
        line=header.line,
    )


def _operation(header: Header) -> Operation:
    if header.old is None:
        return "create"
    if header.new is None:
        return "delete"
    return "modify" if header.old == header.new else "move"


def _path(name: bytes | None, line: int) -> RelPath | None:
    """The path that a name spells; a name that is not UTF-8 is left for the rules of paths to refuse."""
    if name is None:
        return None
    path = paths.parse(name.decode(errors="surrogateescape"))
    if path == paths.ROOT:
        raise invalid(line, "root")
    return path


def _one_entry_a_path(files: tuple[FilePatch, ...]) -> None:
    seen: set[RelPath] = set()
    for file in files:
        for path in filter(None, (file.source, file.path)):
            if path in seen:
                raise invalid(file.line, "path_twice")
            seen.add(path)
