"""Recovery after a crash: what was committed is finished, what was not is taken back.

What was changed since is left alone. A journal says how far a change came; what the change was, the log says: a journal
whose steps are not those of an intent in the log is never acted on.
"""

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any, Literal

from kaiza.domain import canonical, errors
from kaiza.domain.paths import RelPath
from kaiza.domain.protected_names import is_control_plane
from kaiza.store import path_locks
from kaiza.store.directories import Directories, last_name
from kaiza.store.facts import inode_at, look
from kaiza.store.journal import Entry, Line
from kaiza.store.objects import Objects
from kaiza.store.rename import BACKUP
from kaiza.store.step import CHANGED_SINCE, Part, Step, keep_away
from kaiza.store.workspace import Workspace

Result = Literal["applied", "not_applied", "taken_back", "unknown", "set_aside", "left"]
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


@dataclass(frozen=True, slots=True)
class Announced:
    """What the log says of a change: the intent's changes, who made it, and what its outcome was, if there is one."""

    changes: Sequence[Mapping[str, Any]]
    live: str
    is_open: bool
    is_made: bool
    """Whether an outcome is recorded that says the change was made."""
    is_taken_back: bool = False
    """Whether a recovery is recorded after which nothing of it is left."""


@dataclass(frozen=True, slots=True)
class JournaledSteps:
    """What a journal says is to be done: the steps, the directories made for them, and how far it came."""

    steps: tuple[Step, ...]
    made: tuple[RelPath, ...]
    staged: Sequence[int | None] | None
    """The identities of the files that the steps bring in; None where the change did not come that far."""

    @classmethod
    def of_lines(cls, lines: Sequence[Line], txn: str) -> "JournaledSteps":
        """Read them from a journal's lines. ValueError where the lines do not say such a thing."""
        head = lines[0]
        try:
            steps = tuple(Step.of_json(one, txn, number) for number, one in enumerate(head["steps"]))
            made = tuple(RelPath(tuple(map(str, parts))) for parts in head["made"])
        except (KeyError, TypeError) as fault:
            raise ValueError("not the first line of a journal") from fault
        above = {place for step in steps for place in _places_above(step.path)}
        if not above.issuperset(made):
            raise ValueError("a directory that no step needs")
        staged = next((line["staged"] for line in lines if "staged" in line), None)
        return cls(steps, made, staged if isinstance(staged, list) and len(staged) == len(steps) else None)

    @property
    def paths(self) -> tuple[RelPath, ...]:
        """Every path that the steps touch."""
        return tuple(path for step in self.steps for path in (step.path, step.source) if path is not None)

    def is_announced_by(self, changes: Sequence[Mapping[str, Any]]) -> bool:
        """Whether the steps are those of an intent's changes: the same operations, paths and hashes, in order."""
        left = [_outline(step) for step in self.steps]
        for change in changes:
            expected = next((one for one in _outlines(change) if left[: len(one)] == one), None)
            if expected is None:
                return False
            del left[: len(expected)]
        return not left

    def touches_protected(self) -> bool:
        """Whether a path belongs to what governs the agent; no change that was judged has such a path."""
        return any(is_control_plane(path) for path in self.paths)


Outline = tuple[str, str, str | None, str | None, str | None]
"""A step as an intent can tell it: what is done, the path, the source, the hash before and after."""


def _outline(step: Step) -> Outline:
    source = None if step.source is None else _as_recorded(step.source)
    return (step.do, _as_recorded(step.path), source, step.before, step.after)


def _outlines(change: Mapping[str, Any]) -> Iterator[list[Outline]]:
    """The ways in which a recorded change is made, each as its steps."""
    path, source, before, after = (change[name] for name in ("path", "source", "before_hash", "after_hash"))
    if change["operation"] == "create":
        yield [("put", path, None, None, after)]
    elif change["operation"] == "modify":
        yield [("swap", path, None, before, after)]
    elif change["operation"] == "delete":
        yield [("take", path, None, before, None)]
    elif change["operation"] == "move":
        if after in (None, before):
            yield [("move", path, source, before, None)]
        yield [("put", path, source, before, after or before), ("take", source, None, before, None)]


def _as_recorded(path: RelPath) -> str:
    """A path as records spell it, where bytes that are not UTF-8 are escaped."""
    spelled, _ = canonical.tellable({"path": str(path)})
    return str(spelled["path"])


def _places_above(path: RelPath) -> Iterator[RelPath]:
    while path.parts:
        path = path.parent
        yield path


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
    workspace: Workspace,
    objects: Objects,
    entry: Entry,
    plan: JournaledSteps,
    seconds: float,
    fate: Fate,
) -> Recovery:
    """Bring one abandoned change to its end; its journal goes when there is nothing left to do."""
    paths = tuple(step.path for step in plan.steps)
    with ExitStack() as held:
        held.enter_context(path_locks.hold(objects.own, paths, seconds))
        directories = Directories(workspace)
        held.callback(directories.close)
        parts, lost = _parts(plan, directories, objects, fate)
        if fate == "taken_back":
            result, left = _abort(parts, directories, entry, plan.made)
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
    plan: JournaledSteps, directories: Directories, objects: Objects, fate: Fate
) -> tuple[list[Part], list[RelPath]]:
    """Find out how far each step came; steps whose directory is gone came to nothing that could be mended."""
    made, staged = set(plan.made), plan.staged
    parts, lost = [], []
    for number, step in enumerate(plan.steps):
        if not _there(step, directories):
            if staged is not None and not _is_back(step, staged[number], made, directories):
                lost.append(step.path)
            continue
        part = Part(step, directories, objects, staged[number] if staged else None)
        _tidy(part)
        if step.do == "move" and fate != "recorded":  # what is recorded was a whole move: a second link is the user's
            _tidy_move(part)
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


def _tidy_move(part: Part) -> None:
    """Finish a portable rename from one path to the other that was cut in two."""
    at_source = inode_at(*part.source)
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
    parts: Sequence[Part], directories: Directories, entry: Entry, made: Sequence[RelPath]
) -> tuple[Result, list[dict[str, str]]]:
    acted = any(part.done for part in parts)
    for path in made:
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
                if _is_as_announced(part):
                    part.perform()
                else:
                    left.append({"path": str(part.step.path), "reason": CHANGED_SINCE})
            part.settle()
        except (OSError, errors.SystemError) as error:
            whole = False
            left.append({"path": str(part.step.path), "reason": type(error).__name__})
    if whole:
        entry.finish()
    else:
        entry.leave()
    return "applied", left


def _is_as_announced(part: Part) -> bool:
    """Whether what stands ready for a path still has the content that was announced for it."""
    if part.step.do not in {"put", "swap"}:
        return True
    seen = look(part.where, part.temp)
    return seen is not None and seen.digest == part.step.after


def _is_still_before(part: Part) -> bool:
    """Whether the disk forgot a committed step, as it may when the power goes."""
    if part.step.do in {"put", "swap"}:
        return inode_at(part.where, part.temp) == part.ours and part.ours is not None
    if part.step.do == "take":
        return False
    return inode_at(*part.source) == part.ours
