"""Apply a unified diff to many files: every hunk of every file exactly where it says, or nothing at all."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kaiza.domain import errors, patch
from kaiza.domain.change import Change
from kaiza.domain.patch import FilePatch
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.plans.scope import CREATE, MODIFY, MOVE, RequestedOperation
from kaiza.domain.text.unified_diff import FileDiff
from kaiza.tools.changing import change_summary, target_file
from kaiza.tools.changing.target_file import TargetFile
from kaiza.tools.reading import file_reader
from kaiza.tools.view import Answer, FilesView

NAME = "apply_patch"
_EXECUTE_BITS = 0o111


@dataclass(frozen=True, slots=True)
class Request:
    """A patch, read; and every path that it names."""

    files: tuple[FilePatch, ...] = field(repr=False)
    paths: tuple[RelPath, ...]
    dry_run: bool = False


def parse(arguments: Mapping[str, Any], _root: str | None) -> Request:
    """Read the patch strictly, and have a second reader agree."""
    text = target_file.decode("patch", arguments["patch"], arguments.get("encoding"))
    if len(text) > patch.MAX_BYTES:
        raise errors.SystemError.tool_failure(
            "INVALID_INPUT_VALUE",
            human_message="The patch is larger than 512 KiB. Send it in parts.",
            cause={"faults": [{"argument": "patch", "code": "INVALID_INPUT_VALUE", "maxBytes": patch.MAX_BYTES}]},
        )
    files = patch.parse(text)
    patch.check_with_unidiff(text, files)
    named = tuple(path for file in files for path in (file.source, file.path) if path is not None)
    return Request(files, named, arguments.get("dry_run", False))


def requested_operations(request: Request, view: FilesView) -> tuple[RequestedOperation, ...]:
    """One thing for each file; what is there is modified, also where the patch means to create it."""
    return tuple(_requested_operation(file, view) for file in request.files)


def run(request: Request, view: FilesView) -> Answer:
    """Propose all changes; the first file that the patch does not fit ends it."""
    _require_within_cap(sum(_estimate_bytes(file, view) for file in request.files), view)
    changes, diffs = _apply_files(request, view)
    output: dict[str, Any] = {
        "changes": [change_summary.change_output(change, dry_run=request.dry_run) for change in changes],
        "files": len(changes),
        "hunks": sum(len(file.hunks) for file in request.files),
        "lines_added": sum(change.lines_added for change in changes),
        "lines_removed": sum(change.lines_removed for change in changes),
        "unchanged": False,
        "dry_run": request.dry_run,
    }
    output["summary"] = _build_summary(output)
    if request.dry_run:
        output = change_summary.with_diff(output, diffs, view)
    return Answer(output, changes)


def _apply_files(request: Request, view: FilesView) -> tuple[tuple[Change, ...], Sequence[FileDiff]]:
    """The changes, and as many of their diffs as an answer can hold; no file is held while the next is read."""
    changes: list[Change] = []
    diffs: list[FileDiff] = []
    size = room = 0
    for file in request.files:
        file_reader.require_time_left(view)
        change, there, diff = _apply_file(file, view, with_diff=request.dry_run and room <= view.caps.response_bytes)
        size += there + len(change.content or b"")
        _require_within_cap(size, view)
        changes.append(change)
        if diff is not None:
            room += len(diff.data)
            diffs.append(diff)
    return tuple(changes), diffs


def _apply_file(file: FilePatch, view: FilesView, *, with_diff: bool) -> tuple[Change, int, FileDiff | None]:
    """One change, the size of what is there, and the diff where one is wanted."""
    found, change = _propose_change(file, view)
    diff = change_summary.build_diff(found, change) if with_diff else None
    return change, found.size if found else 0, diff


def _estimate_bytes(file: FilePatch, view: FilesView) -> int:
    """The bytes of what is there and of what is to be there instead, before anything is read."""
    there = 0 if file.operation == CREATE else target_file.target_size(file.source or file.path, view)
    if not _has_content(file):
        return there
    added = sum(len(line) for hunk in file.hunks for line in hunk.new)
    removed = sum(len(line) for hunk in file.hunks for line in hunk.old)
    return there + max(there + added - removed, 0)


def _require_within_cap(size: int, view: FilesView) -> None:
    """CAP_EXCEEDED where the files of a patch come to more than one patch may change."""
    if size > view.caps.patched_bytes:
        raise errors.SystemError.tool_failure(
            "CAP_EXCEEDED",
            human_message="The patch's files are larger together than one patch may change. Send it in parts.",
            cause={"cap": "patched_bytes", "limit": view.caps.patched_bytes, "found": size},
        )


def _requested_operation(file: FilePatch, view: FilesView) -> RequestedOperation:
    operation = file.operation
    if operation == CREATE and target_file.read_target(file.path, view) is not None:
        return RequestedOperation(MODIFY, file.path)
    return RequestedOperation(
        operation, file.path, file.source, edited=operation == MOVE and bool(file.hunks or file.new_mode)
    )


def _propose_change(file: FilePatch, view: FilesView) -> tuple[TargetFile | None, Change]:
    if file.operation == "create":
        target_file.require_absent(target_file.read_target(file.path, view))
        return None, _new_change(file, None, patch.apply_file_patch(file, None))
    found = target_file.read_existing(file.source or file.path, view, keep=view.caps.hashed_bytes)
    before = target_file.require_content(found, view)
    if file.hunks and file.operation != "delete":
        target_file.require_writable(found)
    if file.source is not None:
        target_file.require_absent(target_file.read_target(file.path, view))
    return found, _new_change(file, found, patch.apply_file_patch(file, before, found.mode))


def _new_change(file: FilePatch, found: TargetFile | None, after: bytes | None) -> Change:
    return Change(
        file.path,
        file.operation,
        found.hash if found else None,
        None if after is None else hashlib.sha256(after).hexdigest(),
        len(after or b""),
        file.lines_added,
        file.lines_removed,
        _new_mode(file, found),
        file.source,
        after if _has_content(file) else None,
    )


def _has_content(file: FilePatch) -> bool:
    """Whether the change carries the file's new bytes; a deletion and a plain move do not."""
    return file.operation in {CREATE, MODIFY} or (file.operation == MOVE and bool(file.hunks))


def _new_mode(file: FilePatch, found: TargetFile | None) -> int | None:
    """The permissions afterwards, where they are not the usual ones or those that are there."""
    if file.new_mode is None:
        return None
    if found is None:
        return file.new_mode if file.new_mode & _EXECUTE_BITS else None
    readers = (found.mode & 0o444) >> 2
    return found.mode & ~_EXECUTE_BITS | (readers if file.new_mode & _EXECUTE_BITS else 0)


def _build_summary(output: Mapping[str, Any]) -> str:
    verb = "Would change" if output["dry_run"] else "Changed"
    count = output["files"]
    files = "1 file" if count == 1 else f"{count} files"
    return f"{verb} {files}, +{output['lines_added']} -{output['lines_removed']} lines."
