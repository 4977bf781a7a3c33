"""After a crash: what was committed is finished, what was not is taken back, what somebody changed since is left."""

import errno
import os
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Literal

from kaiza.domain import errors
from kaiza.domain.paths import RelPath
from kaiza.store import path_locks
from kaiza.store.directories import Directories, last_name
from kaiza.store.facts import inode_at
from kaiza.store.journal import Entry, Line
from kaiza.store.objects import Objects
from kaiza.store.rename import BACKUP
from kaiza.store.step import Part, Step, keep_away
from kaiza.store.workspace import Workspace

Result = Literal["applied", "not_applied", "taken_back", "unknown"]
Fate = Literal["recorded", "committed", "taken_back"]
"""What is to become of a change: its outcome was recorded, it was only committed, or neither."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """What was found of one change and what was done about it."""

    txn: str
    result: Result
    paths: tuple[RelPath, ...]
    left: tuple[dict[str, str], ...] = ()
    """Paths that were not touched, with the reason."""


def undo(parts: Sequence[Part], directories: Directories) -> tuple[list[dict[str, str]], bool]:
    """Take back what was done, newest first; what stays is listed, and whether nothing is left to do is told."""
    left: list[dict[str, str]] = []
    whole = True
    for part in reversed(parts):
        try:
            why = part.take_back() if part.done else None
            part.clear()
        except (OSError, errors.SystemError) as error:
            whole, why = False, type(error).__name__
        if why:
            left.append({"path": str(part.step.path), "reason": why})
    try:
        directories.unmake()
    except OSError:
        whole = False
    return left, whole


def recover(
    workspace: Workspace, objects: Objects, entry: Entry, lines: Sequence[Line], seconds: float, fate: Fate
) -> Recovery:
    """Bring one abandoned change to its end; its journal goes when there is nothing left to do."""
    if not lines:
        entry.drop()
        return Recovery(entry.txn, "not_applied", ())
    steps = [Step.of_json(told) for told in lines[0]["steps"]]
    paths = tuple(step.path for step in steps)
    with ExitStack() as held:
        held.enter_context(path_locks.hold(objects.own, paths, seconds))
        directories = Directories(workspace)
        held.callback(directories.close)
        parts, lost = _parts(steps, lines, directories, objects)
        if fate == "taken_back":
            result, left = _abort(parts, directories, entry, lines)
        else:
            result, left = _finish(parts, entry, fate)
    left += [{"path": str(path), "reason": "directory_is_gone"} for path in lost]
    return Recovery(entry.txn, "unknown" if left else result, paths, tuple(left))


def sweep(workspace: Workspace, objects: Objects, txn: str, parent: RelPath) -> int:
    """Take away what was staged for a change in one directory and never came to its place; its content is kept."""
    directories = Directories(workspace)
    try:
        if not directories.need(parent):
            return 0
        where = directories.held[parent]
        found = [name for name in os.listdir(where) if name.startswith(f".kaiza-{txn}-")]  # noqa: PTH208 (of a descriptor)
        for name in found:
            keep_away(objects, where, name.encode())
        return len(found)
    finally:
        directories.close()


def _parts(
    steps: Sequence[Step], lines: Sequence[Line], directories: Directories, objects: Objects
) -> tuple[list[Part], list[RelPath]]:
    """Find out how far each step came; steps whose directory is gone came to nothing that could be mended."""
    staged = next((line["staged"] for line in lines if "staged" in line), None)
    made = {RelPath(tuple(told)) for told in lines[0]["made"]}
    parts, lost = [], []
    for number, step in enumerate(steps):
        if not _there(step, directories):
            if staged is not None and not _is_back(step, staged[number], made, directories):
                lost.append(step.path)
            continue
        part = Part(step, directories, objects, staged[number] if staged else None)
        _tidy(part)
        part.done = staged is not None and _was_done(part)
        parts.append(part)
    return parts, lost


def _there(step: Step, directories: Directories) -> bool:
    places = [step.path.parent] + ([step.source.parent] if step.do == "move" and step.source else [])
    try:
        return all(directories.need(place) for place in places)
    except OSError as error:
        if error.errno in {errno.ENOTDIR, errno.ELOOP}:
            return False
        raise


def _is_back(step: Step, ours: int | None, made: set[RelPath], directories: Directories) -> bool:
    """Whether a step's directory is gone because taking back had come so far."""
    if step.path.parent not in made:
        return False
    if step.do != "move" or step.source is None:
        return True
    above = step.source.parent
    return directories.need(above) and inode_at(directories.held[above], last_name(step.source)) == ours


def _tidy(part: Part) -> None:
    """Finish a portable rename that was cut in two."""
    backup = part.temp + BACKUP
    if inode_at(part.where, backup) is not None:
        if inode_at(part.where, part.temp) is None:
            os.rename(backup, part.temp, src_dir_fd=part.where, dst_dir_fd=part.where)
        else:
            os.unlink(backup, dir_fd=part.where)
    at_temp = inode_at(part.where, part.temp)
    if part.step.do in {"put", "take"} and at_temp is not None and at_temp == inode_at(part.where, part.name):
        os.unlink(part.temp, dir_fd=part.where)
    at_source = inode_at(*part.source) if part.step.do == "move" else None
    if at_source is not None and at_source == inode_at(part.where, part.name):
        os.unlink(part.name, dir_fd=part.where)


def _was_done(part: Part) -> bool:
    at_temp = inode_at(part.where, part.temp)
    if part.step.do == "take":
        return at_temp is not None
    if part.step.do == "swap":
        return at_temp is not None and at_temp != part.ours
    return inode_at(part.where, part.name) == part.ours and part.ours is not None


def _abort(
    parts: Sequence[Part], directories: Directories, entry: Entry, lines: Sequence[Line]
) -> tuple[Result, list[dict[str, str]]]:
    acted = any(part.done for part in parts)
    for told in lines[0]["made"]:
        path = RelPath(tuple(told))
        with suppress(OSError):
            if directories.need(path) and directories.need(path.parent):
                directories.made.append(path)
    left, whole = undo(parts, directories)
    if whole:
        entry.drop()
    else:
        entry.leave()
    return ("taken_back" if acted else "not_applied"), left


def _finish(parts: Sequence[Part], entry: Entry, fate: Fate) -> tuple[Result, list[dict[str, str]]]:
    """Clear away what is left of it. What was recorded may have been undone since: a move is then not made again."""
    left: list[dict[str, str]] = []
    whole = True
    for part in parts:
        try:
            again = fate == "committed" or part.step.do != "move"
            if again and not part.done and _is_still_before(part):
                part.perform()
            part.settle()
        except (OSError, errors.SystemError) as error:
            whole = False
            left.append({"path": str(part.step.path), "reason": type(error).__name__})
    if whole:
        entry.finish()
    else:
        entry.leave()
    return "applied", left


def _is_still_before(part: Part) -> bool:
    """Whether the disk forgot a committed step, as it may when the power goes."""
    if part.step.do in {"put", "swap"}:
        return inode_at(part.where, part.temp) == part.ours and part.ours is not None
    if part.step.do == "take":
        return False
    return inode_at(*part.source) == part.ours
