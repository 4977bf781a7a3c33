"""Whether the log still is what this process knows of it, and what is new: the continuity of one process's view."""

from kaiza.domain.record import Body, Head, Verdict
from kaiza.store import log_file, torn_tail
from kaiza.store.anchor import Anchor
from kaiza.store.damage import Damage
from kaiza.store.follower import Follower, Tell, Torn, against, judge_rest
from kaiza.store.log_file import LogFile


class Watch:
    """Follows the log, and judges it anew wherever it does not go on from where it stood. One thread at a time."""

    def __init__(self, root: str, tell: Tell, start: Head | None, anchor: Anchor, damage: Damage) -> None:
        self._root = root
        self._tell = tell
        self._anchor = anchor
        self._damage = damage
        self.follower = Follower(tell, start)
        self.era = 0
        self.unrecorded: list[Body] = []
        """Records of what was mended, to be written before anything else."""
        self._known: Head | None = None
        """What this process saw in a log that it then lost hold of, and that must still be in there."""
        self._told: tuple[Head, int] | None = None
        """How far `tell` was told such a log, and in which era."""
        self._fresh = True
        self._was_damaged = False

    @property
    def head(self) -> Head | None:
        """The verified head, where the log is sound."""
        return self.follower.chain.head if self.follower.sound else None

    def verdict(self, file: LogFile, size: int) -> Verdict:
        """All that can be said without reading the whole log again. The lock is held."""
        self._fresh = True
        found = self.look(file, size, mend=False)
        anchored = self._anchor.read() is not None
        return found or Verdict("intact", self.follower.chain.seq, self.head, None, anchored=anchored)

    def restart(self) -> None:
        """The log is to be judged from its beginning; what was told is not told again."""
        self._remember()
        if self.follower.seen is not None and not self._was_damaged:
            self._known = self.follower.seen
        self.follower = Follower(self._tell)
        self.follower.mute = self._told is not None
        self._fresh = True

    def absent(self) -> Verdict | None:
        """There is no log: damage, where one is known to have been there, and nobody has just begun it."""
        self.restart()
        known = self._head_from_elsewhere() or self._known
        if known is not None and log_file.is_absent(self._root):
            self._found(Verdict("missing", 0, None, None, anchored=False))
        return self._damage.holds()

    def _head_from_elsewhere(self) -> Head | None:
        """What the anchor names. In another era than ours a person began a new log, and what we saw counts no more."""
        anchored = self._anchor.read()
        if anchored is not None and anchored.era != self.era:
            self._known = None
            self.era = anchored.era
        return anchored.head if anchored else None

    def look(self, file: LogFile, size: int, *, mend: bool) -> Verdict | None:
        """Follow what others appended and judge it; what is the matter with the log, if anything. The lock is held."""
        try:
            if self.goes_on(file, size):
                return None
            return self._look_closely(file, size, self._damage.holds(), mend=mend)
        except OSError as refused:
            raise log_file.failure(refused) from refused

    def goes_on(self, file: LogFile, size: int) -> bool:
        """Whether the log simply continues from where it stood; then it is followed."""
        return not self._fresh and not self._was_damaged and self.follower.goes_on(file, size)

    def _look_closely(self, file: LogFile, size: int, held: Verdict | None, *, mend: bool) -> Verdict | None:
        if held is None and self._was_damaged:
            self.restart()
            self._known, self._was_damaged = None, False
        elif not self.follower.stands_in(file):
            self.restart()
        self.follower.advance(file, size)
        trouble = self._trouble(file, size) if self.follower.sound else held
        if isinstance(trouble, Torn):
            trouble = self._torn(file, trouble, mend=mend)
        elif trouble is not None:
            self._found(trouble)
            self.follower.advance_damaged(file, size)
        if self.follower.mute:
            self._resume(file)
        self._was_damaged = self._was_damaged or held is not None
        return held or trouble

    def _resume(self, file: LogFile) -> None:
        """The log is judged; from here on it is told again. A log that a person began anew is told whole."""
        follower = self.follower
        if follower.sound and self._told is not None:
            told, era = self._told
            if against(follower.chain, file.descriptor, told) is None:
                self.follower = Follower(self._tell, told)
            elif era != self.era:
                self.follower = Follower(self._tell)
            self.follower.advance(file, follower.position)
        self.follower.mute = False

    def _trouble(self, file: LogFile, size: int) -> Verdict | Torn | None:
        chain = self.follower.chain
        behind = chain.size < size
        if not behind and not self._fresh:
            return None
        anchored = self._head_from_elsewhere()
        rest = judge_rest(chain, file.descriptor, size, anchored) if behind else None
        if isinstance(rest, Verdict):
            return rest
        found = against(chain, file.descriptor, anchored) or against(chain, file.descriptor, self._known)
        self._known, self._fresh = None, False
        return found or rest

    def _torn(self, file: LogFile, torn: Torn, *, mend: bool) -> Verdict | None:
        if not mend:
            return Verdict("torn_tail", self.follower.chain.seq, self.head, None, anchored=False)
        self.unrecorded.append(torn_tail.set_aside(self._root, file, torn))
        return None

    def _remember(self) -> None:
        """How far the log was told, before it is lost hold of."""
        seen = self.follower.seen
        if seen is not None and not self.follower.mute:
            self._told = (seen, self.era)

    def _found(self, damage: Verdict) -> None:
        self._remember()
        self._was_damaged = True
        self._damage.note(damage)
