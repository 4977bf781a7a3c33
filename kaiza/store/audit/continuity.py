"""Continuity: whether the log still contains what this process has read of it, and follows on from there.

Whatever does not (another file under the path, a file that shrank, a changed last line) is read again from the
beginning and compared with the checkpoint and with what this process itself has read.
"""

from collections.abc import Callable

from kaiza.domain.audit.record import Body, LogHead, Verdict
from kaiza.store.audit import damage_mark, log_file
from kaiza.store.audit.checkpoint import Checkpoint
from kaiza.store.audit.damage_mark import DamageMark
from kaiza.store.audit.log_file import LogFile
from kaiza.store.audit.tail import (
    Follower,
    RecordCallback,
    TornTail,
    compare_with_head,
    diagnose_tail,
    find_start_near_end,
)

GapCallback = Callable[[LogHead, bool], RecordCallback]
"""Called with the head up to which records are skipped, and whether the log was not continuous there; returns the
function that gets the records after it."""
MAX_FOLLOWED_BYTES = 8 << 20
"""A longer backlog, 50 ms of reading, is skipped and left to `on_gap`."""
# From this many new bytes on, the log is followed before its lock is taken.
_FAR_BEHIND_BYTES = 1 << 16


class ContinuityCheck:
    """One process's view of the log. Not thread-safe."""

    def __init__(
        self, root: str, on_record: RecordCallback, start: LogHead | None, checkpoint: Checkpoint, mark: DamageMark
    ) -> None:
        self._root = root
        self._on_record = on_record
        self.on_gap: GapCallback | None = None
        """Called where a very long backlog is skipped; without it nothing is."""
        self._checkpoint = checkpoint
        self._damage_mark = mark
        self.follower = Follower(on_record, start)
        self.epoch = 0
        self.pending_records: list[Body] = []
        """Records of repairs, to be appended before any other."""
        self._required_head: LogHead | None = None
        """Head that this process read before it had to restart, and that the log must still contain.

        It may be newer than every checkpoint: records of reads get one only within a second.
        """
        self._delivered: tuple[LogHead, int] | None = None
        """Head up to which records were passed on before a restart, and its epoch."""
        self._needs_full_check = True
        self._was_damaged = False
        self._has_restarted = False

    @property
    def head(self) -> LogHead | None:
        """The verified head; None while the log is damaged."""
        return self.follower.chain.head if self.follower.is_sound else None

    def tail_verdict(self, file: LogFile, size: int) -> Verdict:
        """Verdict on what is new, the last known record and the checkpoint. The caller holds the lock."""
        self._needs_full_check = True
        found = self.check(file, size, repair=False)
        anchored = self._checkpoint.read() is not None
        return found or Verdict("intact", self.follower.chain.seq, self.head, None, anchored=anchored)

    def restart(self) -> None:
        """Read the log from its beginning next time. Records that were passed on are not passed on again."""
        self._remember_delivered()
        self._has_restarted = self._has_restarted or self.follower.chain.seq > 0
        if self.follower.observed_head is not None and not self._was_damaged:
            self._required_head = self.follower.observed_head
        self.follower = Follower(self._on_record)
        self.follower.silent = self._delivered is not None
        self._needs_full_check = True

    def replay(self, on_record: RecordCallback) -> None:
        """Pass every record on again, from the first, to another callback."""
        self.restart()
        self._on_record, self._delivered = on_record, None
        self.follower = Follower(on_record)

    def deliver_to(self, on_record: RecordCallback) -> None:
        """Pass the next records on to another callback, which knows all up to here."""
        self._on_record = self.follower.on_record = on_record

    def is_near_end(self, file: LogFile, size: int) -> bool:
        """Whether following to `size` reads little enough to hold the lock while doing so."""
        follower = self.follower
        if not follower.is_sound or size <= _FAR_BEHIND_BYTES:
            return True
        return abs(size - follower.position) <= _FAR_BEHIND_BYTES and follower.still_contains(file)

    def follow_backlog(self, file: LogFile) -> None:
        """Follow a long backlog without the lock, so that writers need not wait; skip a very long one."""
        size = file.size()
        if self.is_near_end(file, size):
            return
        if not self.follower.still_contains(file):
            self.restart()
        if size - self.follower.position > MAX_FOLLOWED_BYTES:
            self._skip_backlog(file, size)
        self.follower.advance(file, size)

    def _skip_backlog(self, file: LogFile, size: int) -> None:
        if self.on_gap is None:
            return
        checkpoint = self._checkpoint.read()
        known = checkpoint.head if checkpoint else None
        start = find_start_near_end(file.descriptor, size, known, MAX_FOLLOWED_BYTES)
        if start is None or start.size <= self.follower.position:
            return
        self._on_record, self._delivered = self.on_gap(start, self._has_restarted), None
        self.follower = Follower(self._on_record, start)
        self._has_restarted = False
        self._needs_full_check = True

    def check_missing(self) -> Verdict | None:
        """Damage if there is no log but one is known to have existed; else an earlier damage mark, or None."""
        self.restart()
        known = self._read_checkpoint_head() or self._required_head
        # Looked up again after the checkpoint was read: another process may just have created the log.
        if known is not None and log_file.is_absent(self._root):
            self._mark_damage(Verdict("missing", 0, None, None, anchored=False))
        return self._damage_mark.read()

    def _read_checkpoint_head(self) -> LogHead | None:
        checkpoint = self._checkpoint.read()
        if checkpoint is not None and checkpoint.epoch != self.epoch:
            # A person accepted the damage and began a new log, which need not contain what was read in the old one.
            self._required_head = None
            self.epoch = checkpoint.epoch
        return checkpoint.head if checkpoint else None

    def check(self, file: LogFile, size: int, *, repair: bool) -> Verdict | None:
        """Follow what others appended; a verdict if the log is not sound. The caller holds the lock.

        `repair` sets a torn tail aside.
        """
        try:
            if self.try_advance(file, size):
                return None
            return self._check_fully(file, size, self._damage_mark.read(), repair=repair)
        except OSError as refused:
            raise log_file.log_error(refused) from refused

    def try_advance(self, file: LogFile, size: int) -> bool:
        """Follow the log if nothing but valid lines came after the last known one; needs no lock."""
        return not self._needs_full_check and not self._was_damaged and self.follower.try_advance(file, size)

    def _check_fully(self, file: LogFile, size: int, mark: Verdict | None, *, repair: bool) -> Verdict | None:
        if mark is None and self._was_damaged:
            # A full verification or an acceptance has cleared the mark: only the checkpoint counts from here on.
            self.restart()
            self._required_head, self._was_damaged = None, False
            if size > MAX_FOLLOWED_BYTES:
                self._skip_backlog(file, size)
        elif not self.follower.still_contains(file):
            self.restart()
        self.follower.advance(file, size)
        problem = self._find_problem(file, size) if self.follower.is_sound else mark
        if isinstance(problem, TornTail) and repair:
            self.pending_records.append(damage_mark.set_aside_torn_tail(self._root, file, problem))
            problem = None
        elif isinstance(problem, TornTail):
            problem = Verdict("torn_tail", self.follower.chain.seq, self.head, None, anchored=False)
        elif problem is not None:
            self._mark_damage(problem)
            self.follower.advance_damaged(file, size)
        if self.follower.silent:
            self._resume_delivery(file)
        self._was_damaged = self._was_damaged or mark is not None
        return mark or problem

    def _resume_delivery(self, file: LogFile) -> None:
        """Pass records on again: from where delivery ended, or all of them if a person began a new log."""
        follower = self.follower
        if follower.is_sound and self._delivered is not None:
            head, epoch = self._delivered
            if compare_with_head(follower.chain, file.descriptor, head) is None:
                self.follower = Follower(self._on_record, head)
            elif epoch != self.epoch:
                self.follower = Follower(self._on_record)
            self.follower.advance(file, follower.position)
        self.follower.silent = False

    def _find_problem(self, file: LogFile, size: int) -> Verdict | TornTail | None:
        chain = self.follower.chain
        has_invalid_rest = chain.size < size
        if not has_invalid_rest and not self._needs_full_check:
            return None
        checkpoint = self._read_checkpoint_head()
        rest = diagnose_tail(chain, file.descriptor, size, checkpoint) if has_invalid_rest else None
        if isinstance(rest, Verdict):
            return rest
        # Also for a torn tail: if the checkpoint covers it, a durable record was cut off, and no crash does that.
        found = compare_with_head(chain, file.descriptor, checkpoint) or compare_with_head(
            chain, file.descriptor, self._required_head
        )
        self._required_head, self._needs_full_check = None, False
        return found or rest

    def _remember_delivered(self) -> None:
        head = self.follower.observed_head
        if head is not None and not self.follower.silent:
            self._delivered = (head, self.epoch)

    def _mark_damage(self, verdict: Verdict) -> None:
        # Before the follower leaves the sound part, where it still knows the head.
        self._remember_delivered()
        self._was_damaged = True
        self._damage_mark.save(verdict)
