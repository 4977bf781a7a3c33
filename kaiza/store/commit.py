"""Changes happen whole or not at all: prepared, applied, and either settled or taken back."""

import errno
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field

from kaiza.domain import errors
from kaiza.domain.change import Change
from kaiza.domain.paths import RelPath
from kaiza.store import path_locks, recovery, state
from kaiza.store.check import Checker
from kaiza.store.directories import Directories, remove_empty
from kaiza.store.fsync_batch import FsyncBatch
from kaiza.store.journal import Abandoned, Entry, Journal, Line
from kaiza.store.live import Live
from kaiza.store.objects import Objects
from kaiza.store.own import Own
from kaiza.store.recovery import Announced, Fate, Recovery
from kaiza.store.refusal import refusal
from kaiza.store.staging import Staging
from kaiza.store.state_key import StateKey
from kaiza.store.step import Part, Step, mismatch
from kaiza.store.workspace import Workspace

LOCK_SECONDS = 10.0
_ANOTHER = {errno.ENOENT, errno.ELOOP, errno.ENXIO, errno.EISDIR, errno.ENOTDIR}


@dataclass(frozen=True, slots=True)
class Prepared:
    """Changes that could go ahead when they were looked at. It holds nothing and may be thrown away."""

    txn: str
    changes: tuple[Change, ...]
    steps: tuple[tuple[Step, Change | None], ...]
    """Each step, with the change whose content it brings in."""
    undoes: tuple[str, ...] = ()

    @property
    def modes(self) -> dict[str, int]:
        """The permissions of what is there before, so that they can be put back."""
        return {str(step.source or step.path): step.facts.mode for step, _ in self.steps if step.facts is not None}

    @property
    def paths(self) -> set[RelPath]:
        """Every path the changes alter."""
        return {path for change in self.changes for path in change.touched}


@dataclass(slots=True)
class Running:
    """Changes under way: what they hold, and how far they are."""

    prepared: Prepared
    directories: Directories
    held: ExitStack
    parts: list[Part] = field(default_factory=list)
    entry: Entry | None = None
    stuck: bool = False
    """Whether something could not be taken back and waits for recovery."""

    def leave(self) -> None:
        """Leave the journal to recovery."""
        if self.entry is not None:
            self.entry.leave()


class Committer:
    """The one place where a user's files are altered."""

    def __init__(self, workspace: Workspace, objects: Objects, journal: Journal) -> None:
        self._workspace = workspace
        self._objects = objects
        self._journal = journal
        self._own = objects.own
        self._running: dict[str, Running] = {}
        self._live: Live | None = None
        self._turn = threading.Lock()

    @classmethod
    def of(cls, workspace: Workspace) -> "Committer":
        """Make one that keeps what it needs in the workspace's `.kaiza`, from the first change on."""
        own = Own(workspace.fd)
        return cls(workspace, Objects(own), Journal(own, StateKey(state.directory(workspace.root))))

    @property
    def live_id(self) -> str:
        """The name under which this process is known to be alive; intents name it."""
        return self._alive().id

    def is_dead(self, live_id: str) -> bool:
        """Whether the process that an intent names is gone."""
        return self._own.existing("live") is None or self._alive().is_dead(live_id)

    def prepare(self, txn: str, changes: Iterable[Change], *, undoes: Sequence[str] = ()) -> Prepared:
        """Check everything that can be foreseen; nothing is written and nothing is held when this returns."""
        listed = tuple(changes)
        with ExitStack() as held:
            directories = Directories(self._workspace)
            held.callback(directories.close)
            steps = Checker(self._workspace, self._objects, directories, txn).steps(listed)
        return Prepared(txn, listed, steps, tuple(undoes))

    def apply(self, prepared: Prepared) -> None:
        """Make the changes; they are on disk, all of them, when this returns. If it raises, files are as before.

        The intent has to be on disk before: recovery sets a journal aside that the log does not bear out.
        """
        with ExitStack() as held:
            running = Running(prepared, Directories(self._workspace), held)
            held.callback(running.directories.close)
            try:
                self._go(running)
            except BaseException as error:
                left = self._take_back(running)
                if running.stuck:
                    raise _stuck(left) from error
                if isinstance(error, OSError):
                    raise _failed(error, prepared) from error
                raise
            running.held = held.pop_all()
            self._running[prepared.txn] = running

    def take_back(self, prepared: Prepared) -> list[dict[str, str]]:
        """Undo changes that were applied and not settled; what could not be taken back is listed with the reason."""
        running = self._running.pop(prepared.txn, None)
        if running is None:
            return []
        with running.held:
            return self._take_back(running)

    def settle(self, txn: str) -> None:
        """Let applied changes stand: keep what they replaced, leave no temporary, and let others have their turn.

        What cannot be cleared away now is left to recovery; the changes stand all the same.
        """
        running = self._running.pop(txn, None)
        if running is None:
            return
        with running.held:
            try:
                self._let_stand(running)
            except (OSError, errors.SystemError):
                running.leave()

    def recover(self, announced: Callable[[str], Announced | None], first: Sequence[str] = ()) -> list[Recovery]:
        """Finish or take back what dead processes left half-done, as far as the log announced it.

        What living ones have under way is left alone. `announced` says what the log has of a change; the journals
        named in `first` are looked at before all others, the last first. A journal that is not ours is left where it
        is, one that is none, or that the log does not bear out, is set aside: neither is acted on, and neither raises.
        """
        found = []
        for journal in self._journal.abandoned(first):
            try:
                recovered = self._recover(journal, announced)
            except (OSError, errors.SystemError) as error:
                recovered = _left(journal, type(error).__name__)
            finally:
                if journal.entry is not None:
                    journal.entry.leave()
            if recovered is not None:
                found.append(recovered)
        return found

    def _recover(self, journal: Abandoned, announced: Callable[[str], Announced | None]) -> Recovery | None:
        """Bring one journal's change to its end; None where its writer lives."""
        if journal.origin in ("foreign", "unreadable"):
            return _left(journal, journal.origin)
        if journal.entry is None or not journal.lines:
            return self._set_aside(journal, "malformed")
        said = announced(journal.name)
        live = said.live if said is not None else str(journal.lines[0].get("live", ""))
        if (said is None or said.is_open) and not self.is_dead(live):
            return None
        if said is None:
            return self._set_aside(journal, "not_announced")
        if said.is_taken_back:  # an older copy of it was put back: since then the files may have changed the same way
            return self._set_aside(journal, "taken_back_before")
        try:
            plan = recovery.JournaledSteps.of_lines(journal.lines, journal.name)
        except ValueError:
            return self._set_aside(journal, "malformed")
        if not plan.is_announced_by(said.changes) or plan.touches_protected():
            return self._set_aside(journal, "not_as_announced")
        fate = _fate(journal.lines, recorded=said.is_made)
        return recovery.recover(self._workspace, self._objects, journal.entry, plan, LOCK_SECONDS, fate)

    def _set_aside(self, journal: Abandoned, why: str) -> Recovery:
        moved = self._journal.set_aside(journal.name)
        if moved is None:
            return _left(journal, why)
        return Recovery(journal.name, "set_aside", (), ({"path": moved, "reason": why},))

    def sweep(self, txn: str, paths: Iterable[RelPath]) -> int:
        """Clear away temporaries of a change whose journal the power took; the intent names where they may be."""
        if self._journal.knows(txn):
            return 0
        return sum(
            recovery.sweep(self._workspace, self._objects, txn, parent) for parent in {path.parent for path in paths}
        )

    def close(self) -> None:
        """Be gone; changes not settled are left to recovery."""
        if self._live is not None:
            self._live.close()
        self._own.close()

    def _alive(self) -> Live:
        with self._turn:
            if self._live is None:
                self._live = Live(self._own)
            return self._live

    def _go(self, running: Running) -> None:
        prepared = running.prepared
        running.held.enter_context(path_locks.hold(self._own, prepared.paths, LOCK_SECONDS))
        for path in sorted(prepared.paths):
            running.directories.need_or_make(path.parent)
        head = {
            "steps": [step.as_json() for step, _ in prepared.steps],
            "made": [path.parts for path in running.directories.missing],
        }
        entry = running.entry = self._journal.begin(prepared.txn, self.live_id, head)
        with closing(FsyncBatch(len(prepared.steps), self._workspace.fd)) as batch:
            staging = Staging(self._objects, self._journal, running.directories, batch, prepared.undoes)
            kept = [staging.keep(step) for step, _ in prepared.steps]
            running.directories.make()
            for (step, change), is_kept in zip(prepared.steps, kept, strict=True):
                running.parts.append(Part(step, running.directories, self._objects, kept=is_kept))
                staging.bring(running.parts[-1], change)
            entry.note({"staged": [part.ours for part in running.parts]})
            entry.join(batch)
            batch.sync()
        for part in running.parts:
            part.perform()
        running.directories.sync({part.step.path.parent for part in running.parts} | _sources(running.parts))
        entry.commit()

    def _let_stand(self, running: Running) -> None:
        for part in running.parts:
            part.settle()
        self._journal.remember_made([str(path) for path in running.directories.made])
        if running.prepared.undoes:
            self._prune(running)
        if running.entry is not None:
            running.entry.finish()

    def _take_back(self, running: Running) -> list[dict[str, str]]:
        """Undo what was done, newest first; the journal goes only when nothing is left to do."""
        if running.entry is None:
            return []
        with suppress(OSError):
            running.entry.take_back()
        left, whole = recovery.undo(running.parts, running.directories)
        running.stuck = not whole
        if whole:
            with suppress(OSError):  # a journal of nothing is taken back once more by whoever finds it
                running.entry.drop()
        else:
            running.entry.leave()
        return left

    def _prune(self, running: Running) -> None:
        """Remove directories that Kaiza made and that an undo left empty."""
        made = self._journal.made()
        for step, _ in running.prepared.steps:
            path = (step.source or step.path).parent
            while path.parts and str(path) in made:
                above = Directories(self._workspace)
                try:
                    if not above.need(path.parent) or not remove_empty(above.held[path.parent], path):
                        break
                finally:
                    above.close()
                path = path.parent


def _fate(lines: Sequence[Line], *, recorded: bool) -> Fate:
    """What is to become of an abandoned change; that it is being taken back outweighs the record."""
    if any("taken_back" in line for line in lines):
        return "taken_back"
    if recorded:
        return "recorded"
    return "committed" if any("committed" in line for line in lines) else "taken_back"


def _left(journal: Abandoned, why: str) -> Recovery:
    """A journal that stays where it is, with the reason."""
    return Recovery(journal.name, "left", (), ({"path": f".kaiza/journal/{journal.name}", "reason": why},))


def _sources(parts: Sequence[Part]) -> set[RelPath]:
    return {part.step.source.parent for part in parts if part.step.do == "move" and part.step.source is not None}


def _failed(error: OSError, prepared: Prepared) -> errors.SystemError:
    path = prepared.changes[0].path if len(prepared.changes) == 1 else RelPath(())
    if error.errno in _ANOTHER:
        return mismatch(path, None, None)
    return refusal(error, path, missing="FILE_WRITE_FAILED", otherwise="FILE_WRITE_FAILED")


def _stuck(left: Sequence[Mapping[str, str]]) -> errors.SystemError:
    return errors.SystemError.tool_failure(
        "FILE_WRITE_FAILED",
        human_message="The change failed and could not be taken back whole. The next session recovers it.",
        cause={"left": list(left)},
    )
