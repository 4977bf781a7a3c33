"""That the log was found damaged, kept until a full verification is intact or a person accepts it."""

import os
from pathlib import Path

import orjson

from kaiza.domain.audit.record import ChainFault, LogHead, Verdict
from kaiza.store.disk import state_dir

_HARMLESS_VERDICTS = frozenset({"intact", "torn_tail"})


def is_damage(verdict: str) -> bool:
    """Any verdict but `intact` and a torn tail."""
    return verdict not in _HARMLESS_VERDICTS


class DamageMark:
    """What the state directory says about a workspace's log; what cannot be kept there holds for this process."""

    def __init__(self, place: Path) -> None:
        self._path = place / "damage.json"
        self._name = os.fsencode(self._path)
        self._in_memory: Verdict | None = None

    def save(self, verdict: Verdict) -> None:
        """The damage is remembered when this returns; an earlier finding stays."""
        if self.read() is not None:
            return
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            state_dir.replace_file(self._path, orjson.dumps(verdict))
        except OSError:
            self._in_memory = verdict

    def read(self) -> Verdict | None:
        """The finding that holds, or None. What cannot be read counts as damage."""
        if not os.access(self._name, os.F_OK):
            return self._in_memory
        try:
            told = orjson.loads(self._path.read_bytes())
            head = LogHead(**told["head"]) if told["head"] else None
            fault = ChainFault(**told["first_fault"]) if told["first_fault"] else None
            return Verdict(told["verdict"], told["records"], head, fault, anchored=told["anchored"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, OSError):
            return Verdict("broken", 0, None, None, anchored=False)

    def clear(self) -> None:
        """The damage is forgotten."""
        self._in_memory = None
        self._path.unlink(missing_ok=True)
