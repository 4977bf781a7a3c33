"""Whether files came with git: an editor leaves no object of its bytes, a checkout or pull always does.

Where git cannot answer, or may have converted the bytes on their way to the disk, the origin is unknown.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from hashlib import sha1, sha256

from kaiza.store import git
from kaiza.store.disk.git_directory import find_repository

_EXPANDED_ID = re.compile(rb"\$Id:[^$\n]*\$")
_CONVERTING = ("filter", "working-tree-encoding")
_LINE_ENDS = ("crlf", "eol", "text")
_ATTRIBUTES = (*_CONVERTING, *_LINE_ENDS, "ident")
_INDEX_ENTRY = re.compile(rb"([^\0]+)\0(?:  [^\n]*\n)*?  mtime: (\d+):(\d+)\n(?:  [^\n]*\n)*?  size: (\d+)\t[^\n]*\n")
_UNSET = frozenset({"unspecified", "unset"})


class Origin(StrEnum):
    """Where the bytes of a file come from."""

    GIT = "git"
    UNKNOWN = "unknown"
    """Git may have brought them: it does not answer, or may have converted them."""
    HERE = "here"
    """No object of the repository, or there is no repository."""


def find_origins(root: str, directory: str, files: Sequence[tuple[str, bytes]]) -> list[Origin]:
    """Origin of each of these contents, under its name in a directory of the workspace. Starts git."""
    origins = [_ask_repository(top, prefix, files) for top, prefix in find_repositories(root, directory)]
    worst = [next(origin for origin in Origin if origin in each) for each in zip(*origins, strict=True)]
    return worst or [Origin.HERE for _ in files]


def find_repositories(root: str, directory: str) -> list[tuple[str, str]]:
    """The repositories that may have brought a directory's files, each with the directory's path in it."""
    # `plans` may be a submodule, whose objects are not those of the repository around it.
    starts = (os.path.join(root, directory), root)  # noqa: PTH118  normal form is not wanted
    tops = dict.fromkeys(filter(None, map(find_repository, starts)))
    return [(top, os.path.relpath(os.path.realpath(starts[0]), top)) for top in tops]


def _ask_repository(top: str, prefix: str, files: Sequence[tuple[str, bytes]]) -> list[Origin]:
    if not files:
        return []
    are_objects = _find_objects(top, [list(object_names(content)) for _, content in files])
    paths = [os.path.normpath(os.path.join(prefix, name)) for name, _ in files]  # noqa: PTH118
    attributes, checked_out = _read_attributes(top, paths), _find_checked_out(top, paths)
    if are_objects is None or attributes is None or checked_out is None:
        return [Origin.UNKNOWN for _ in files]
    converted = [
        checked_out.get(path) == len(content) or _is_converted(content, names)
        for path, (_, content), names in zip(paths, files, attributes, strict=True)
    ]
    undecided = [Origin.UNKNOWN if is_converted else Origin.HERE for is_converted in converted]
    return [Origin.GIT if is_object else other for is_object, other in zip(are_objects, undecided, strict=True)]


def object_names(content: bytes) -> Iterator[str]:
    """Names that the content may have as an object: as it is, and without what a checkout may have changed."""
    unified = content.replace(b"\r\n", b"\n")
    for variant in {content, unified, _EXPANDED_ID.sub(b"$Id$", content), _EXPANDED_ID.sub(b"$Id$", unified)}:
        blob = b"blob %d\0" % len(variant) + variant
        # One of the two is the repository's format; to the other git answers "missing".
        yield sha1(blob, usedforsecurity=False).hexdigest()
        yield sha256(blob).hexdigest()


def _find_objects(top: str, names: Sequence[Sequence[str]]) -> list[bool] | None:
    """For each list of names whether one is an object; None if git does not answer."""
    asked = [name for each in names for name in each]
    result = git.run(
        top, "cat-file", "--batch-check=%(objecttype)", stdin="".join(f"{name}\n" for name in asked).encode()
    )
    if result is None or result.returncode != 0:
        return None
    answers = result.stdout.decode("utf-8", "replace").splitlines()
    if len(answers) != len(asked):
        return None
    found = {name for name, answer in zip(asked, answers, strict=True) if answer != f"{name} missing"}
    return [not found.isdisjoint(each) for each in names]


def _read_attributes(top: str, paths: Sequence[str]) -> list[frozenset[str]] | None:
    """Names of the attributes of each path that make git change bytes; None if git does not answer."""
    asked = "".join(f"{path}\0" for path in paths).encode(errors="surrogateescape")
    result = git.run(top, "check-attr", "-z", "--stdin", *_ATTRIBUTES, stdin=asked)
    if result is None or result.returncode != 0:
        return None
    values = [value.decode("utf-8", "replace") for value in result.stdout.split(b"\0")[:-1]]
    count = 3 * len(_ATTRIBUTES)
    if len(values) != count * len(paths):
        return None
    return [
        frozenset(
            name
            for name, value in zip(
                values[start + 1 : start + count : 3], values[start + 2 : start + count : 3], strict=True
            )
            if value not in _UNSET
        )
        for start in range(0, len(values), count)
    ]


def _find_checked_out(top: str, paths: Sequence[str]) -> dict[str, int] | None:
    """Sizes of the files that are as git wrote them, by size and time; None if git does not answer.

    An attribute that made git convert the bytes may be gone by now.
    """
    result = git.run(top, "ls-files", "--debug", "--", *(f":(literal){path}" for path in paths))
    if result is None or result.returncode != 0:
        return None
    found = {}
    for name, seconds, nanoseconds, size in _INDEX_ENTRY.findall(result.stdout):
        with suppress(OSError):
            status = os.lstat(os.path.join(os.fsencode(top), name))  # noqa: PTH118  may be any bytes
            written = int(seconds) * 10**9 + int(nanoseconds)
            if (status.st_mtime_ns, status.st_size) == (written, int(size)):
                found[os.fsdecode(name)] = int(size)
    return found


def _is_converted(content: bytes, attributes: frozenset[str]) -> bool:
    """Whether git may have written these bytes from an object with others."""
    if not attributes.isdisjoint(_CONVERTING):
        return True
    # Line ends and `$Id$` cannot be converted back: an object with both kinds of line ends becomes one with one kind.
    if b"\r\n" in content and not attributes.isdisjoint(_LINE_ENDS):
        return True
    return "ident" in attributes and _EXPANDED_ID.search(content) is not None
