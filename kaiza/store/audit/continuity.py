"""Whether the log still is what this process knows of it, and what is new: the continuity of one process's view."""

from kaiza.domain.audit.record import Body, LogHead, Verdict
from kaiza.store.audit import damage_mark, log_file
from kaiza.store.audit.checkpoint import Checkpoint
from kaiza.store.audit.damage_mark import DamageMark
from kaiza.store.audit.log_file import LogFile
from kaiza.store.audit.tail import Follower, RecordCallback, TornTail, compare_with_head, diagnose_tail


class ContinuityCheck:
    """Follows the log, and judges it anew wherever it does not go on from where it stood. One thread at a time."""

    def __init__(
        self, root: str, tell: RecordCallback, start: LogHead | None, anchor: Checkpoint, damage: DamageMark
    ) -> None:
        self._root = root
        self._on_record = tell
        self._checkpoint = anchor
        self._damage_mark = damage
        self.follower = Follower(tell, start)
        self.epoch = 0
        self.pending_records: list[Body] = []
        """Records of what was mended, to be written before anything else."""
        self._required_head: LogHead | None = None
        """What this process saw in a log that it then lost hold of, and that must still be in there."""
        self._delivered: tuple[LogHead, int] | None = None
        """How far `tell` was told such a log, and in which era."""
        self._needs_full_check = True
        self._was_damaged = False

    @property
    def head(self) -> LogHead | None:
        """The verified head, where the log is sound."""
        return self.follower.chain.head if self.follower.is_sound else None

    def tail_verdict(self, file: LogFile, size: int) -> Verdict:
        """All that can be said without reading the whole log again. The lock is held."""
        self._needs_full_check = True
        found = self.check(file, size, mend=False)
        anchored = self._checkpoint.read() is not None
        return found or Verdict("intact", self.follower.chain.seq, self.head, None, anchored=anchored)

    def restart(self) -> None:
        """The log is to be judged from its beginning; what was told is not told again."""
        self._remember_delivered()
        if self.follower.observed_head is not None and not self._was_damaged:
            self._required_head = self.follower.observed_head
        self.follower = Follower(self._on_record)
        self.follower.silent = self._delivered is not None
        self._needs_full_check = True

    def check_missing(self) -> Verdict | None:
        """There is no log: damage, where one is known to have been there, and nobody has just begun it."""
        self.restart()
        known = self._read_checkpoint_head() or self._required_head
        if known is not None and log_file.is_absent(self._root):
            self._note_damage(Verdict("missing", 0, None, None, anchored=False))
        return self._damage_mark.read()

    def _read_checkpoint_head(self) -> LogHead | None:
        """What the anchor names. In another era than ours a person began a new log, and what we saw counts no more."""
        anchored = self._checkpoint.read()
        if anchored is not None and anchored.epoch != self.epoch:
            self._required_head = None
            self.epoch = anchored.epoch
        return anchored.head if anchored else None

    def check(self, file: LogFile, size: int, *, mend: bool) -> Verdict | None:
        """Follow what others appended and judge it; what is the matter with the log, if anything. The lock is held."""
        try:
            if self.try_advance(file, size):
                return None
            return self._check_fully(file, size, self._damage_mark.read(), mend=mend)
        except OSError as refused:
            raise log_file.log_error(refused) from refused

    def try_advance(self, file: LogFile, size: int) -> bool:
        """Whether the log simply continues from where it stood; then it is followed."""
        return not self._needs_full_check and not self._was_damaged and self.follower.try_advance(file, size)

    def _check_fully(self, file: LogFile, size: int, held: Verdict | None, *, mend: bool) -> Verdict | None:
        if held is None and self._was_damaged:
            self.restart()
            self._required_head, self._was_damaged = None, False
        elif not self.follower.still_contains(file):
            self.restart()
        self.follower.advance(file, size)
        trouble = self._find_problem(file, size) if self.follower.is_sound else held
        if isinstance(trouble, TornTail):
            trouble = self._handle_torn_tail(file, trouble, mend=mend)
        elif trouble is not None:
            self._note_damage(trouble)
            self.follower.advance_damaged(file, size)
        if self.follower.silent:
            self._resume_delivery(file)
        self._was_damaged = self._was_damaged or held is not None
        return held or trouble

    def _resume_delivery(self, file: LogFile) -> None:
        """The log is judged; from here on it is told again. A log that a person began anew is told whole."""
        follower = self.follower
        if follower.is_sound and self._delivered is not None:
            told, era = self._delivered
            if compare_with_head(follower.chain, file.descriptor, told) is None:
                self.follower = Follower(self._on_record, told)
            elif era != self.epoch:
                self.follower = Follower(self._on_record)
            self.follower.advance(file, follower.position)
        self.follower.silent = False

    def _find_problem(self, file: LogFile, size: int) -> Verdict | TornTail | None:
        chain = self.follower.chain
        behind = chain.size < size
        if not behind and not self._needs_full_check:
            return None
        anchored = self._read_checkpoint_head()
        rest = diagnose_tail(chain, file.descriptor, size, anchored) if behind else None
        if isinstance(rest, Verdict):
            return rest
        found = compare_with_head(chain, file.descriptor, anchored) or compare_with_head(
            chain, file.descriptor, self._required_head
        )
        self._required_head, self._needs_full_check = None, False
        return found or rest

    def _handle_torn_tail(self, file: LogFile, torn: TornTail, *, mend: bool) -> Verdict | None:
        if not mend:
            return Verdict("torn_tail", self.follower.chain.seq, self.head, None, anchored=False)
        self.pending_records.append(damage_mark.set_aside(self._root, file, torn))
        return None

    def _remember_delivered(self) -> None:
        """How far the log was told, before it is lost hold of."""
        seen = self.follower.observed_head
        if seen is not None and not self.follower.silent:
            self._delivered = (seen, self.epoch)

    def _note_damage(self, damage: Verdict) -> None:
        self._remember_delivered()
        self._was_damaged = True
        self._damage_mark.save(damage)
