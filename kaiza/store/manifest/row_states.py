"""States of entries as rows of the manifest describe them, and whether two are the same."""

import stat

from kaiza.domain.manifest.comparison import Difference
from kaiza.domain.manifest.report import EntryState
from kaiza.store.manifest.database import Row
from kaiza.store.manifest.tree import Stat


def state_of(row: Row) -> EntryState:
    """The state that a row describes."""
    kind = row.stat.kind
    size = row.stat.size if kind in ("file", "link") else None
    return EntryState(kind, stat.S_IMODE(row.stat.mode), size, row.hash.hex() if row.hash else None, row.lines)


def has_other_stat(one: Stat, other: Stat) -> bool:
    """Whether the content may differ. A change of the mode alone explains another change time."""
    if (one.size, one.mtime_ns, one.inode) != (other.size, other.mtime_ns, other.inode):
        return True
    return one.ctime_ns != other.ctime_ns and one.mode == other.mode


def is_equal(difference: Difference) -> bool:
    """Whether both states are the same, as far as they are known."""
    before, after = difference.before, difference.after
    if before is None or after is None:
        return before is after
    if before.kind != after.kind or before.mode != after.mode:
        return False
    if before.kind not in ("file", "link"):
        return True
    if before.hash and after.hash:
        return before.hash == after.hash
    return not difference.has_other_stat


def path_text(path: bytes) -> str:
    """The path as text. Bytes that are not UTF-8 become lone surrogates."""
    return path.decode(errors="surrogateescape")
