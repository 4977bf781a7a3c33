"""What is at hand before anything is exchanged: what a change will take away is kept, what it brings stands beside."""

import errno
import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kaiza.domain.change import Change
from kaiza.domain.paths import RelPath
from kaiza.store.byte_io import READ_NOFOLLOW, SMALL, read_all, update_hash, write_all
from kaiza.store.directories import Directories, last_name
from kaiza.store.facts import Facts, inode_at
from kaiza.store.fsync_batch import FsyncBatch
from kaiza.store.journal import Journal
from kaiza.store.objects import Objects
from kaiza.store.step import Part, Step, mismatch

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Staging:
    """Writes it; on disk once `batch` is."""

    objects: Objects
    journal: Journal
    directories: Directories
    batch: FsyncBatch
    undoes: Sequence[str] = ()
    """The changes that this one puts back, newest first."""

    def keep(self, step: Step) -> bool:
        """Keep what the step will take away, where that is small; whether it is kept."""
        if step.do not in {"swap", "take"} or step.before is None:
            return False
        fd = self._opened(step.path)
        try:
            if os.fstat(fd).st_size > SMALL:
                return False
            self.objects.keep(step.before, read_all(fd), pack=True, batch=self.batch)
        finally:
            os.close(fd)
        return True

    def bring(self, part: Part, change: Change | None) -> None:
        """Write what the step brings in beside its place."""
        step = part.step
        if step.do == "move":
            part.ours = inode_at(*part.source)
        if step.do not in {"put", "swap"} or change is None:
            return
        fd = os.open(part.temp, _CREATE, 0o600 if step.facts else 0o666, dir_fd=part.where)
        try:
            part.ours = os.fstat(fd).st_ino
            write_all(fd, self._bytes_of(change))
            self._dress(fd, step, change)
        except BaseException:
            os.close(fd)
            raise
        self.batch.add(fd)

    def _bytes_of(self, change: Change) -> Iterator[bytes]:
        """What the change brings; at its end an error where that is not what was announced."""
        if change.content is not None:
            yield from _checked([change.content], change)
        elif change.operation == "move" and change.source is not None:
            fd = self._opened(change.source)
            try:
                yield from _checked(read_all(fd), change)
            finally:
                os.close(fd)
        else:
            yield from self.objects.chunks(change.after_hash or "")

    def _dress(self, fd: int, step: Step, change: Change) -> None:
        """Give the new file the mode, owner and attributes that it is to have."""
        facts = step.facts
        for txn in self.undoes:
            facts = self._facts_before(txn, change.path) or facts
        if facts is not None:
            facts.give(fd, change.mode)
        elif change.mode is not None:
            os.fchmod(fd, change.mode)

    def _facts_before(self, txn: str, path: RelPath) -> Facts | None:
        """Tell what a file had beside its bytes before a settled change."""
        head = self.journal.finished(txn)
        for number, told in enumerate(head["steps"] if head else ()):
            step = Step.of_json(told, txn, number)
            if path == (step.source if step.do == "move" else step.path) and step.do != "put":
                return step.facts
        return None

    def _opened(self, path: RelPath) -> int:
        """A file as it stands there now; its directory may have gone away."""
        where = self.directories.held.get(path.parent)
        if where is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return os.open(last_name(path), READ_NOFOLLOW, dir_fd=where)


def _checked(content: Iterable[bytes], change: Change) -> Iterator[bytes]:
    check = hashlib.sha256()
    yield from update_hash(check, content)
    expected = change.after_hash or change.before_hash
    if check.hexdigest() != expected:
        raise mismatch(change.source or change.path, expected, check.hexdigest())
