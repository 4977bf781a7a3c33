"""Finds what an undo has to delete before it can restore a file whose place, or whose directory's place, is taken."""

from collections.abc import Collection

from kaiza.domain import errors
from kaiza.domain.paths.rel_path import RelPath
from kaiza.tools.view import FilesView


def find_obstacles(
    path: RelPath, view: FilesView, known: Collection[str], made: Collection[str]
) -> frozenset[str] | None:
    """Files that have to be deleted before a file can be created at this path; None if more is in the way.

    `known`: paths that the undo may delete. `made`: directories that Kaiza made; no other one is ever removed.
    """
    try:
        for depth in range(1, len(path.parts) + 1):
            place = RelPath(path.parts[:depth])
            with view.open_directory(place.parent) as directory:
                entry = directory.stat_entry(place.name)
            if entry is None:
                return frozenset()
            if entry.type == "file" and place != path and str(place) in known:
                return frozenset({str(place)})
            if entry.type != "directory":
                return None
        return _list_files(path, view, known, made)
    except errors.SystemError:  # a directory that must not be read, or is gone again
        return None


def _list_files(path: RelPath, view: FilesView, known: Collection[str], made: Collection[str]) -> frozenset[str] | None:
    """The files below a directory; None if something there is neither a known file nor a directory Kaiza made."""
    found: set[str] = set()
    pending = [path]
    while pending:
        place = pending.pop()
        if str(place) not in made:
            return None
        with view.open_directory(place) as directory:
            for name in directory.names(most=len(known) + len(made) + 1):
                entry, child = directory.stat_entry(name), place / name
                if entry is not None and entry.type == "directory":
                    pending.append(child)
                elif entry is not None and entry.type == "file" and str(child) in known:
                    found.add(str(child))
                else:
                    return None
    return frozenset(found)
