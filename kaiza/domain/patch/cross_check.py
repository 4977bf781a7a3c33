"""Cross-check of a parsed patch with the `unidiff` package. It can refuse a patch, never change how one is read."""

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kaiza.domain.patch import header
from kaiza.domain.patch.errors import invalid_patch
from kaiza.domain.patch.file_patch import FilePatch
from kaiza.domain.paths.rel_path import RelPath

if TYPE_CHECKING:
    from unidiff.patch import PatchedFile

_DEV_NULL = "/dev/null"
# `unidiff` splits a `diff --git` line at the last " b/", even inside a name.
_MISREAD = " b/"
_IGNORED_PARTS = frozenset({"", "."})


def check_with_unidiff(patch: bytes, files: Sequence[FilePatch]) -> None:
    """Refuse a patch unless `unidiff` finds the same files, operations, hunks and line counts."""
    from unidiff.errors import UnidiffParseError  # noqa: PLC0415  slow to import; only patches need it
    from unidiff.patch import PatchSet  # noqa: PLC0415  as above

    # An entry without hunks and without a readable first line has nothing left for `unidiff` to find.
    expected = [file for file in files if file.hunks or not _is_misread(file)]
    try:
        found = PatchSet(_lines_for_unidiff(patch, files), metadata_only=True)
    except UnidiffParseError:
        raise invalid_patch(0, "second_opinion") from None
    if len(found) != len(expected):
        raise invalid_patch(0, "second_opinion")
    for ours, theirs in zip(expected, found, strict=True):
        if not _is_equivalent(ours, theirs):
            raise invalid_patch(ours.line, "second_opinion")


def _is_equivalent(ours: FilePatch, theirs: "PatchedFile") -> bool:
    old = None if ours.operation == "create" else ours.source or ours.path
    new = None if ours.operation == "delete" else ours.path
    counts = (len(ours.hunks), ours.lines_added, ours.lines_removed)
    return (
        counts == (len(theirs), theirs.added, theirs.removed)
        and (_has_same_name(theirs.source_file, old, ours) or (old is None and theirs.is_added_file))
        and (_has_same_name(theirs.target_file, new, ours) or (new is None and theirs.is_removed_file))
        and not (theirs.is_binary_file or theirs.is_symlink or theirs.is_submodule)
    )


def _has_same_name(theirs: str, path: RelPath | None, ours: FilePatch) -> bool:
    if path is None:
        return theirs == _DEV_NULL
    name = header.read_whole(theirs.encode("latin-1"), ours.line).decode(errors="surrogateescape")
    return tuple(part for part in name[2:].split("/") if part not in _IGNORED_PARTS) == path.parts


def _is_misread(file: FilePatch) -> bool:
    return any(_MISREAD in str(path) for path in (file.source, file.path) if path)


def _lines_for_unidiff(patch: bytes, files: Sequence[FilePatch]) -> list[str]:
    """The patch's lines; of a header that `unidiff` would misread, only the `---` and `+++` lines."""
    lines = io.BytesIO(patch).readlines()
    shown: list[bytes] = []
    ends = [file.line for file in files[1:]] + [len(lines)]
    for file, end in zip(files, ends, strict=True):
        body = file.hunks[0].line if file.hunks else end
        head = lines[file.line : body]
        shown += [line for line in head if line.startswith((b"--- ", b"+++ "))] if _is_misread(file) else head
        shown += lines[body:end]
    return [line.decode("latin-1") for line in shown]
