"""Tool `apply_patch`: apply a unified diff to several files, every hunk exactly at its line, or nothing at all."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kaiza.domain import errors, patch
from kaiza.domain.change import Change
from kaiza.domain.paging.list_cut import cut_lists
from kaiza.domain.patch import FilePatch
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.plans.scope import CREATE, DELETE, MODIFY, MOVE, RequestedOperation
from kaiza.domain.text.unified_diff import FileDiff
from kaiza.tools.changing import change_summary, target_file
from kaiza.tools.changing.target_file import TargetFile
from kaiza.tools.reading import file_reader
from kaiza.tools.view import Answer, WorkspaceView

_EXECUTE_BITS = 0o111


@dataclass(frozen=True, slots=True)
class Request:
    """A parsed patch and every path that it names."""

    files: tuple[FilePatch, ...] = field(repr=False)
    paths: tuple[RelPath, ...]
    dry_run: bool = False


def parse(arguments: Mapping[str, Any], _root: str | None) -> Request:
    """Parse the patch strictly."""
    text = target_file.decode("patch", arguments["patch"], arguments.get("encoding"))
    if len(text) > patch.MAX_BYTES:
        raise errors.SystemError.tool_failure(
            "INVALID_INPUT_VALUE",
            human_message="The patch is larger than 512 KiB. Send it in parts.",
            cause={"faults": [{"argument": "patch", "code": "INVALID_INPUT_VALUE", "maxBytes": patch.MAX_BYTES}]},
        )
    files = patch.parse(text)
    # An independent parser must find the same files and lines, so that an ambiguous patch cannot hide one of them.
    patch.check_with_unidiff(text, files)
    paths = tuple(path for file in files for path in (file.source, file.path) if path is not None)
    return Request(files, paths, arguments.get("dry_run", False))


def requested_operations(request: Request, view: WorkspaceView) -> tuple[RequestedOperation, ...]:
    """One operation for each file. A creation where a file exists is judged as its modification."""
    operations = []
    for file in request.files:
        if file.operation == CREATE and target_file.read_target(file.path, view) is not None:
            operations.append(RequestedOperation(MODIFY, file.path))
        else:
            edited = file.operation == MOVE and bool(file.hunks or file.new_mode)
            operations.append(RequestedOperation(file.operation, file.path, file.source, edited))
    return tuple(operations)


def run(request: Request, view: WorkspaceView) -> Answer:
    """Propose all changes, or fail at the first file that the patch does not fit."""
    dry_run = request.dry_run
    # By the sizes first: a patch that names too much is refused before any file is read.
    _require_within_cap(sum(_estimate_bytes(file, view) for file in request.files), view)
    changes: list[Change] = []
    diffs: list[FileDiff] = []
    size = diff_size = 0
    for file in request.files:
        file_reader.require_time_left(view)
        # As many diffs as an answer can hold.
        with_diff = dry_run and diff_size <= view.caps.answer_bytes
        change, old_size, diff = _apply_file(file, view, with_diff=with_diff)
        size += old_size + len(change.content or b"")
        _require_within_cap(size, view)  # again, by the bytes read: a file may have grown since its size was taken
        changes.append(change)
        if diff is not None:
            diff_size += len(diff.data)
            diffs.append(diff)
    added, removed = (sum(getattr(change, name) for change in changes) for name in ("lines_added", "lines_removed"))
    files = "1 file" if len(changes) == 1 else f"{len(changes)} files"
    output: dict[str, Any] = {
        "changes": [change_summary.change_output(change, dry_run=dry_run) for change in changes],
        "files": len(changes),
        "hunks": sum(len(file.hunks) for file in request.files),
        "lines_added": added,
        "lines_removed": removed,
        "unchanged": False,
        "dry_run": dry_run,
        "summary": f"{'Would change' if dry_run else 'Changed'} {files}, +{added} -{removed} lines.",
    }
    output = cut_lists(output, view.caps, "Some are not listed: read_audit_log has all, once they are made.")
    return Answer(change_summary.with_diff(output, diffs, view) if dry_run else output, tuple(changes))


def _estimate_bytes(file: FilePatch, view: WorkspaceView) -> int:
    """Bytes of the old and the new content together, from sizes alone."""
    old_size = 0 if file.operation == CREATE else target_file.target_size(file.source or file.path, view)
    if not _has_content(file):
        return old_size
    added = sum(len(line) for hunk in file.hunks for line in hunk.new)
    removed = sum(len(line) for hunk in file.hunks for line in hunk.old)
    return old_size + max(old_size + added - removed, 0)


def _require_within_cap(size: int, view: WorkspaceView) -> None:
    """Raise CAP_EXCEEDED if the files of a patch are larger together than one patch may change."""
    if size > view.caps.patched_bytes:
        raise errors.SystemError.tool_failure(
            "CAP_EXCEEDED",
            human_message="The patch's files are larger together than one patch may change. Send it in parts.",
            cause={"cap": "patched_bytes", "limit": view.caps.patched_bytes, "found": size},
        )


def _apply_file(file: FilePatch, view: WorkspaceView, *, with_diff: bool) -> tuple[Change, int, FileDiff | None]:
    """One change, the size of the file that it replaces, and its diff if asked for.

    Of the old contents, only this one is in memory.
    """
    target, before = None, None
    if file.operation != CREATE:
        target = target_file.read_existing(file.source or file.path, view, keep=view.caps.hashed_bytes)
        before = target_file.require_content(target, view)
        if file.hunks and file.operation != DELETE:
            target_file.require_writable(target)
    if file.operation in {CREATE, MOVE}:
        target_file.require_absent(target_file.read_target(file.path, view))
    after = patch.apply_file_patch(file, before, target.mode if target else None)
    change = Change(
        file.path,
        file.operation,
        target.hash if target else None,
        None if after is None else hashlib.sha256(after).hexdigest(),
        len(after or b""),
        file.lines_added,
        file.lines_removed,
        _choose_mode(file, target),
        file.source,
        after if _has_content(file) else None,
    )
    diff = change_summary.build_diff(target, change) if with_diff else None
    return change, target.size if target else 0, diff


def _has_content(file: FilePatch) -> bool:
    """Whether the change carries new bytes; a deletion and a plain move do not."""
    return file.operation in {CREATE, MODIFY} or (file.operation == MOVE and bool(file.hunks))


def _choose_mode(file: FilePatch, target: TargetFile | None) -> int | None:
    """The file's new permissions; None to keep the old ones, or the default for a new file."""
    if file.new_mode is None:
        return None
    if target is None:
        return file.new_mode if file.new_mode & _EXECUTE_BITS else None
    readers = (target.mode & 0o444) >> 2  # as chmod +x under a umask: those who may read may execute
    return target.mode & ~_EXECUTE_BITS | (readers if file.new_mode & _EXECUTE_BITS else 0)
