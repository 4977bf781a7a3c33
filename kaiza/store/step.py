"""One step of a change: files trade places or names, what comes out is looked at, and all of it can be taken back."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, get_args

from kaiza.domain import errors
from kaiza.domain.paths import RelPath
from kaiza.store import rename
from kaiza.store.directories import Directories, last_name
from kaiza.store.facts import NOTHING, Facts, Seen, inode_at, look
from kaiza.store.objects import Objects

Do = Literal["put", "swap", "take", "move"]
_DOINGS: tuple[Do, ...] = get_args(Do)
MOST_RIVALS = 1000
CHANGED_SINCE = "changed_since"


@dataclass(frozen=True, slots=True)
class Step:
    """Put a new file, swap it for the old one, take a file away, or move it; as a journal tells it."""

    do: Do
    path: RelPath
    temp: str
    before: str | None = None
    after: str | None = None
    source: RelPath | None = None
    facts: Facts | None = None

    @classmethod
    def of_json(cls, told: Mapping[str, Any], txn: str, number: int) -> "Step":
        """Read it from a journal; the temporary name is worked out, not read. ValueError where it is no step."""
        try:
            source, facts = told["source"], told["facts"]
            return cls(
                _DOINGS[_DOINGS.index(told["do"])],
                _path_of(told["path"]),
                temporary_name(txn, number),
                _text_of(told["before"]),
                _text_of(told["after"]),
                None if source is None else _path_of(source),
                None if facts is None else Facts.of_json(facts),
            )
        except (KeyError, TypeError, AttributeError) as fault:
            raise ValueError("not a step") from fault

    def as_json(self) -> Mapping[str, Any]:
        """Write it for a journal."""
        return {
            "do": self.do,
            "path": self.path.parts,
            "before": self.before,
            "after": self.after,
            "source": None if self.source is None else self.source.parts,
            "facts": None if self.facts is None else self.facts.as_json(),
        }


def temporary_name(txn: str, number: int) -> str:
    """Name beside a path that only one step of one change uses."""
    return f".kaiza-{txn}-{number}"


def _path_of(told: object) -> RelPath:
    """The path whose names a journal lists; the root is none that a step could change."""
    if not isinstance(told, list) or not told or not all(isinstance(part, str) for part in told):
        raise ValueError("not a path")
    return RelPath(tuple(told))


def _text_of(told: object) -> str | None:
    if told is not None and not isinstance(told, str):
        raise ValueError("not a text")
    return told


@dataclass(slots=True)
class Part:
    """A step under way, in directories held by descriptor."""

    step: Step
    directories: Directories
    objects: Objects
    ours: int | None = None
    """The identity of the file that this step brings in: the staged one, or the moved one."""
    done: bool = False
    kept: bool = False
    """Whether what the step takes away is kept, whole and durable."""
    out: Seen | None = None
    """What came out when the step was done."""

    @property
    def where(self) -> int:
        """Where the path's last name stands."""
        return self.directories.held[self.step.path.parent]

    @property
    def name(self) -> bytes:
        """The path's last name."""
        return last_name(self.step.path)

    @property
    def temp(self) -> bytes:
        """The name beside it that only this step uses."""
        return self.step.temp.encode()

    @property
    def source(self) -> tuple[int, bytes]:
        """Where a moved file stood, and the last name it had."""
        source = self.step.source or self.step.path
        return self.directories.held[source.parent], last_name(source)

    def perform(self) -> None:
        """Do the step; HASH_MISMATCH where what came out is not what was expected."""
        try:
            if self.step.do == "swap":
                rename.exchange(self.where, self.temp, self.name)
            elif self.step.do == "take":
                rename.put(self.where, self.name, self.where, self.temp)
            elif self.step.do == "put":
                rename.put(self.where, self.temp, self.where, self.name)
            else:
                rename.put(*self.source, self.where, self.name)
        except FileExistsError as error:
            raise _exists(self.step.path) from error
        self.done = True
        if self.step.do == "put":
            return
        self.out = look(self.where, self._came_out(), lone=True)
        if self._is_expected(self.out):
            return
        if self.step.do == "move":
            self.done = False
            rename.put(self.where, self.name, *self.source)
        raise mismatch(self.step.source or self.step.path, self.step.before, None)

    def take_back(self) -> str | None:
        """Undo the step where the file still is what the step left; else say why it stays."""
        self.done = False
        if self.step.do == "take":
            return self._put_back()
        if inode_at(self.where, self.name) != self.ours:
            return self._give_up()
        seen = look(self.where, self.name)
        if self.step.do == "move":
            return self._move_back(seen)
        if seen is None or seen.digest != self.step.after:
            return self._give_up()
        return self._swap_back() if self.step.do == "swap" else self._take_out()

    def clear(self) -> None:
        """Leave no temporary: ours goes, anybody else's content is kept first."""
        found = inode_at(self.where, self.temp)
        if found is None:
            return
        if self.step.do in {"put", "swap"} and (self.ours is None or found == self.ours):
            os.unlink(self.temp, dir_fd=self.where)
        else:
            self._keep_away()

    def settle(self) -> None:
        """Keep what the step replaced, and leave no temporary."""
        if self.done and self.kept:
            os.unlink(self.temp, dir_fd=self.where)
        elif inode_at(self.where, self.temp) is not None:
            self._keep_away()

    def _came_out(self) -> bytes:
        return self.name if self.step.do == "move" else self.temp

    def _is_expected(self, seen: Seen | None) -> bool:
        return (
            seen is not None
            and seen.links == 1
            and seen.digest == self.step.before
            and (self.step.facts is None or seen.facts == self.step.facts)
        )

    def _put_back(self) -> str | None:
        try:
            rename.put(self.where, self.temp, self.where, self.name)
        except FileExistsError:
            return self._give_up()
        return None

    def _move_back(self, seen: Seen | None) -> str | None:
        if seen is None or seen.digest != self.step.before:
            return CHANGED_SINCE
        try:
            rename.put(self.where, self.name, *self.source)
        except FileExistsError:
            return CHANGED_SINCE
        return None

    def _swap_back(self) -> str | None:
        """Exchange until nothing newer than ours is taken away from anybody; ours is ours only with our content."""
        known = {(self.ours, self.step.after)}
        original = inode_at(self.where, self.temp)
        for _ in range(MOST_RIVALS):
            known.add(self._at_temp())
            rename.exchange(self.where, self.temp, self.name)
            if self._at_temp() in known:
                break
        kept = inode_at(self.where, self.name) == original
        if self._at_temp() == (self.ours, self.step.after):
            os.unlink(self.temp, dir_fd=self.where)
        else:
            self._keep_away()
        return None if kept else CHANGED_SINCE

    def _take_out(self) -> str | None:
        rename.put(self.where, self.name, self.where, self.temp)
        if self._at_temp() == (self.ours, self.step.after):
            os.unlink(self.temp, dir_fd=self.where)
            return None
        return self._put_back() or CHANGED_SINCE

    def _at_temp(self) -> tuple[int | None, str | None]:
        """Tell apart what stands at the temporary name: by identity and content."""
        seen = look(self.where, self.temp)
        return (inode_at(self.where, self.temp), None) if seen is None else (seen.inode, seen.digest)

    def _give_up(self) -> str:
        self.settle()
        return CHANGED_SINCE

    def _keep_away(self) -> None:
        """Keep whatever stands at the temporary name under its hash, and free the name."""
        out = self.out
        known = {out.stamp: out.digest} if out is not None and out.alone else NOTHING
        with suppress(FileNotFoundError):
            keep_away(self.objects, self.where, self.temp, known)


def keep_away(objects: Objects, where: int, name: bytes, known: Mapping[tuple[int, ...], str] = NOTHING) -> None:
    """Keep what stands at a name under its hash, if it has a content, and free the name."""
    seen = look(where, name, known)
    if seen is None:
        os.unlink(name, dir_fd=where)
    else:
        objects.take_over(seen.digest, where, name)


def mismatch(path: RelPath, expected: str | None, current: str | None) -> errors.SystemError:
    """Say that a file is not what a change was made for."""
    cause: dict[str, object] = {"path": str(path), "expected_hash": expected}
    if current is not None:
        cause["current_hash"] = current
    return errors.SystemError.tool_failure(
        "HASH_MISMATCH", human_message="The file is not what was expected. Read it again.", cause=cause
    )


def _exists(path: RelPath) -> errors.SystemError:
    return errors.SystemError.tool_failure(
        "FILE_ALREADY_EXISTS",
        human_message="Something is there already. Read it, then replace it with its hash.",
        cause={"path": str(path)},
    )
