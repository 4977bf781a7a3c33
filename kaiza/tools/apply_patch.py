"""Apply a unified diff to many files: every hunk of every file exactly where it says, or nothing at all."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kaiza.domain import errors, patch
from kaiza.domain.change import Change
from kaiza.domain.diff import Diff
from kaiza.domain.patch import FilePatch
from kaiza.domain.paths import RelPath
from kaiza.domain.scope import CREATE, MODIFY, MOVE, Wanted
from kaiza.tools import given, passage, proposal, target
from kaiza.tools.target import Standing
from kaiza.tools.view import Answer, FilesView

NAME = "apply_patch"
_EXECUTE = 0o111


@dataclass(frozen=True, slots=True)
class Request:
    """A patch, read; and every path that it names."""

    files: tuple[FilePatch, ...] = field(repr=False)
    paths: tuple[RelPath, ...]
    dry_run: bool = False


def parse(arguments: Mapping[str, Any], _root: str | None) -> Request:
    """Read the patch strictly, and have a second reader agree."""
    text = given.content("patch", arguments["patch"], arguments.get("encoding"))
    if len(text) > patch.MAX_BYTES:
        raise errors.SystemError.tool_failure(
            "INVALID_INPUT_VALUE",
            human_message="The patch is larger than 512 KiB. Send it in parts.",
            cause={"faults": [{"argument": "patch", "code": "INVALID_INPUT_VALUE", "maxBytes": patch.MAX_BYTES}]},
        )
    files = patch.parse(text)
    patch.second_opinion(text, files)
    named = tuple(path for file in files for path in (file.source, file.path) if path is not None)
    return Request(files, named, arguments.get("dry_run", False))


def wanted(request: Request, view: FilesView) -> tuple[Wanted, ...]:
    """One thing for each file; what is there is modified, also where the patch means to create it."""
    return tuple(_wanted(file, view) for file in request.files)


def run(request: Request, view: FilesView) -> Answer:
    """Propose all changes; the first file that the patch does not fit ends it."""
    _bound(sum(_foreseen(file, view) for file in request.files), view)
    changes, diffs = _worked_out(request, view)
    output: dict[str, Any] = {
        "changes": [proposal.told(change, dry_run=request.dry_run) for change in changes],
        "files": len(changes),
        "hunks": sum(len(file.hunks) for file in request.files),
        "lines_added": sum(change.lines_added for change in changes),
        "lines_removed": sum(change.lines_removed for change in changes),
        "unchanged": False,
        "dry_run": request.dry_run,
    }
    output["summary"] = _summary(output)
    if request.dry_run:
        output = proposal.with_diff(output, diffs, view)
    return Answer(output, changes)


def _worked_out(request: Request, view: FilesView) -> tuple[tuple[Change, ...], Sequence[Diff]]:
    """The changes, and as many of their diffs as an answer can hold; no file is held while the next is read."""
    changes: list[Change] = []
    diffs: list[Diff] = []
    size = room = 0
    for file in request.files:
        passage.in_time(view)
        change, there, diff = _one(file, view, with_diff=request.dry_run and room <= view.caps.response_bytes)
        size += there + len(change.content or b"")
        _bound(size, view)
        changes.append(change)
        if diff is not None:
            room += len(diff.data)
            diffs.append(diff)
    return tuple(changes), diffs


def _one(file: FilePatch, view: FilesView, *, with_diff: bool) -> tuple[Change, int, Diff | None]:
    """One change, the size of what is there, and the diff where one is wanted."""
    found, change = _proposed(file, view)
    diff = proposal.difference(found, change) if with_diff else None
    return change, found.size if found else 0, diff


def _foreseen(file: FilePatch, view: FilesView) -> int:
    """The bytes of what is there and of what is to be there instead, before anything is read."""
    there = 0 if file.operation == CREATE else target.size(file.source or file.path, view)
    if not _brings_content(file):
        return there
    added = sum(len(line) for hunk in file.hunks for line in hunk.new)
    removed = sum(len(line) for hunk in file.hunks for line in hunk.old)
    return there + max(there + added - removed, 0)


def _bound(size: int, view: FilesView) -> None:
    """CAP_EXCEEDED where the files of a patch come to more than one patch may change."""
    if size > view.caps.patched_bytes:
        raise errors.SystemError.tool_failure(
            "CAP_EXCEEDED",
            human_message="The patch's files are larger together than one patch may change. Send it in parts.",
            cause={"cap": "patched_bytes", "limit": view.caps.patched_bytes, "found": size},
        )


def _wanted(file: FilePatch, view: FilesView) -> Wanted:
    operation = file.operation
    if operation == CREATE and target.standing(file.path, view) is not None:
        return Wanted(MODIFY, file.path)
    return Wanted(operation, file.path, file.source, edited=operation == MOVE and bool(file.hunks or file.new_mode))


def _proposed(file: FilePatch, view: FilesView) -> tuple[Standing | None, Change]:
    if file.operation == "create":
        target.vacant(target.standing(file.path, view))
        return None, _change(file, None, patch.apply(file, None))
    found = target.existing(file.source or file.path, view, keep=view.caps.hashed_bytes)
    before = target.held(found, view)
    if file.hunks and file.operation != "delete":
        target.rewritable(found)
    if file.source is not None:
        target.vacant(target.standing(file.path, view))
    return found, _change(file, found, patch.apply(file, before, found.mode))


def _change(file: FilePatch, found: Standing | None, after: bytes | None) -> Change:
    return Change(
        file.path,
        file.operation,
        found.hash if found else None,
        None if after is None else hashlib.sha256(after).hexdigest(),
        len(after or b""),
        file.lines_added,
        file.lines_removed,
        _mode(file, found),
        file.source,
        after if _brings_content(file) else None,
    )


def _brings_content(file: FilePatch) -> bool:
    """Whether the change carries the file's new bytes; a deletion and a plain move do not."""
    return file.operation in {CREATE, MODIFY} or (file.operation == MOVE and bool(file.hunks))


def _mode(file: FilePatch, found: Standing | None) -> int | None:
    """The permissions afterwards, where they are not the usual ones or those that are there."""
    if file.new_mode is None:
        return None
    if found is None:
        return file.new_mode if file.new_mode & _EXECUTE else None
    readers = (found.mode & 0o444) >> 2
    return found.mode & ~_EXECUTE | (readers if file.new_mode & _EXECUTE else 0)


def _summary(output: Mapping[str, Any]) -> str:
    verb = "Would change" if output["dry_run"] else "Changed"
    count = output["files"]
    files = "1 file" if count == 1 else f"{count} files"
    return f"{verb} {files}, +{output['lines_added']} -{output['lines_removed']} lines."
