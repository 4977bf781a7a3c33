"""A second reader of the same patch: it never adds a file or a line to what the first one read, it can only refuse."""

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kaiza.domain.patch import header as file_names
from kaiza.domain.patch.errors import invalid_patch
from kaiza.domain.patch.file_patch import FilePatch
from kaiza.domain.paths.rel_path import RelPath

if TYPE_CHECKING:
    from unidiff.patch import PatchedFile

_DEV_NULL = "/dev/null"
_MISREAD = " b/"
_IGNORED_PARTS = frozenset({"", "."})


def check_with_unidiff(patch: bytes, files: Sequence[FilePatch]) -> None:
    """Refuse a patch in which `unidiff` sees other files, other counts of lines or another number of hunks."""
    from unidiff.errors import UnidiffParseError  # noqa: PLC0415  # no other call pays for loading it
    from unidiff.patch import PatchSet  # noqa: PLC0415  # the same

    told = [file for file in files if file.hunks or not _is_misread(file)]
    try:
        seen = PatchSet(_lines_for_unidiff(patch, files), metadata_only=True)
    except UnidiffParseError:
        raise invalid_patch(0, "second_opinion") from None
    if len(seen) != len(told):
        raise invalid_patch(0, "second_opinion")
    for ours, theirs in zip(told, seen, strict=True):
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
    name = file_names.read_whole(theirs.encode("latin-1"), ours.line).decode(errors="surrogateescape")
    return tuple(part for part in name[2:].split("/") if part not in _IGNORED_PARTS) == path.parts


def _is_misread(file: FilePatch) -> bool:
    """`unidiff` splits a `diff --git` line at the last ` b/`, also where that is part of a name."""
    return any(_MISREAD in str(path) for path in (file.source, file.path) if path)


def _lines_for_unidiff(patch: bytes, files: Sequence[FilePatch]) -> list[str]:
    """The patch's lines; where the second reader cannot read a name's first line it gets the other two."""
    lines = io.BytesIO(patch).readlines()
    shown: list[bytes] = []
    ends = [file.line for file in files[1:]] + [len(lines)]
    for file, end in zip(files, ends, strict=True):
        body = file.hunks[0].line if file.hunks else end
        header = lines[file.line : body]
        shown += [line for line in header if line.startswith((b"--- ", b"+++ "))] if _is_misread(file) else header
        shown += lines[body:end]
    return [line.decode("latin-1") for line in shown]
