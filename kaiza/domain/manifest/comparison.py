"""Comparison of a workspace with its manifest: each difference is explained by the log, or was made without Kaiza.

Pure: what is on the disk and in the manifest comes in as values.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kaiza.domain.manifest.recorded_changes import DEFAULT_MODE, RecordedChanges, Step
from kaiza.domain.manifest.report import MAX_LISTED, ChangeKind, EntryState, OutsideChange


@dataclass(frozen=True, slots=True)
class Difference:
    """A path that differs from the manifest, or that a record names. `before` and `after` are its two states."""

    path: str
    before: EntryState | None
    after: EntryState | None
    is_before_known: bool = True
    has_other_stat: bool = True
    """Whether size, times or inode differ. That decides where a hash is missing."""
    is_ignored: bool = False
    before_inode: int = 0
    after_inode: int = 0
    is_hidden: bool = False
    """Whether agents may not read it. Its hash is compared, and not shown."""


@dataclass(slots=True)
class Comparison:
    """The changes without Kaiza, ordered, and how many there are of both sorts."""

    changes: Sequence[OutsideChange] = ()
    outside_count: int = 0
    governed_count: int = 0


def compare(differences: Iterable[Difference], recorded: RecordedChanges) -> Comparison:
    """Compare each difference with the records. At most MAX_LISTED changes are kept; the counts are exact."""
    found: list[tuple[Difference, OutsideChange]] = []
    ignored: list[tuple[Difference, OutsideChange]] = []
    outside = governed = 0
    for difference in differences:
        if recorded.is_temporary(difference.path, difference.after):
            continue
        change = find_outside_change(difference, recorded)
        if change is None:
            governed += not difference.is_before_known or not _is_same(difference.before, difference.after)
            continue
        outside += 1
        kept = ignored if change.is_ignored else found
        if len(kept) < MAX_LISTED:
            kept.append((difference, change))
    changes = _pair_renames([*found, *ignored])
    outside -= len(found) + len(ignored) - len(changes)  # a rename is one change
    changes.sort(key=lambda change: (change.is_ignored, change.path))
    hidden = {difference.path for difference, _ in (*found, *ignored) if difference.is_hidden}
    for index, change in enumerate(changes[:MAX_LISTED]):
        if change.path in hidden or change.source in hidden:
            before, after = (state and state._replace(hash=None, lines=None) for state in (change.before, change.after))
            changes[index] = replace(change, before=before, after=after)
    return Comparison(changes[:MAX_LISTED], outside, governed)


def find_outside_change(difference: Difference, recorded: RecordedChanges) -> OutsideChange | None:
    """The change of a path that the records do not explain; None where they explain all of it."""
    if recorded.explains_document(difference.path, difference.after):
        return None
    states = [state for state in (difference.before, difference.after) if state is not None]
    if difference.path in recorded.directories and [state.kind for state in states] == ["directory"]:
        return None  # it was made or removed with its files, which have records of their own
    change = _Fold(difference).run(recorded.steps.get(difference.path, ()))
    # Written by Kaiza, and by something else after that.
    is_edited = change is not None and change.change == "created" and difference.path in recorded.documents
    return replace(change, change="modified") if change is not None and is_edited else change


class _Fold:
    """Follows one path from its state in the manifest through its recorded steps to its state now."""

    def __init__(self, difference: Difference) -> None:
        self._difference = difference
        self._possible: list[EntryState | None] = [difference.before]
        self._is_known = difference.is_before_known
        self._unexplained: OutsideChange | None = None

    def run(self, steps: Sequence[Step]) -> OutsideChange | None:
        for step in steps:
            self._take(step)
        now = self._difference.after
        if not self._is_known:
            # The steps that may have been taken begin with the second state: of the first nothing is known.
            self._possible = self._possible[1:]
        if self._find_possible(now, has_steps=bool(steps)) is None:
            return self._new_change(now, is_overwritten=False)
        return self._unexplained

    def _take(self, step: Step) -> None:
        found = self._find_possible(step.before, has_steps=True) if self._is_known else (step.before,)
        if not step.is_certain:
            if found is not None:
                self._possible.append(_inherit_mode(step.after, found[0]))
            return
        if found is None and step.may_be_earlier:
            found = self._find_possible(step.after, has_steps=True)
            if found is not None:
                self._possible = [found[0]]
                return
        if found is None:
            self._unexplained = self._new_change(step.before, is_overwritten=True)
        self._possible = [_inherit_mode(step.after, found[0] if found else step.before)]
        self._is_known = True

    def _find_possible(self, wanted: EntryState | None, *, has_steps: bool) -> tuple[EntryState | None] | None:
        """The possible state that is the wanted one; a tuple, since it may be None."""
        for state in self._possible:
            is_unread = state is not None and wanted is not None and None in (state.hash, wanted.hash)
            if _is_same(state, wanted) and not (is_unread and not has_steps and self._has_other_content(state)):
                return (state,)
        return None

    def _has_other_content(self, state: EntryState | None) -> bool:
        return state is not None and state.kind in ("file", "link") and self._difference.has_other_stat

    def _new_change(self, after: EntryState | None, *, is_overwritten: bool) -> OutsideChange:
        before = _without_default(self._possible[0]) if self._is_known else None
        after = _without_default(after)
        return OutsideChange(
            self._difference.path,
            self._change_kind(before, after),
            before=before,
            after=after,
            is_before_known=self._is_known,
            is_ignored=self._difference.is_ignored,
            is_overwritten=is_overwritten,
        )

    def _change_kind(self, before: EntryState | None, after: EntryState | None) -> ChangeKind:
        if after is None:
            return "deleted"
        if before is None:
            return "created" if self._is_known else "modified"
        if before.kind != after.kind:
            return "kind"
        if before.hash is None or after.hash is None:
            return "modified" if self._has_other_content(before) else "mode"
        return "mode" if before.hash == after.hash else "modified"


def _is_same(one: EntryState | None, other: EntryState | None) -> bool:
    """Whether both may describe the same entry. What is unknown of one matches anything."""
    if one is None or other is None:
        return one is other
    is_same_content = one.hash == other.hash or None in (one.hash, other.hash)
    is_same_mode = one.mode == other.mode or None in (one.mode, other.mode)
    if not is_same_mode and one.mode is not None and other.mode is not None and DEFAULT_MODE in (one.mode, other.mode):
        is_same_mode = not max(one.mode, other.mode) & 0o7111  # the default stands for any that is not executable
    return one.kind == other.kind and is_same_content and is_same_mode


def _without_default(state: EntryState | None) -> EntryState | None:
    return state._replace(mode=None) if state and state.mode == DEFAULT_MODE else state


def _inherit_mode(after: EntryState | None, before: EntryState | None) -> EntryState | None:
    """A changed file keeps its mode where the record names none."""
    if after is None or before is None or after.mode is not None:
        return after
    return after._replace(mode=before.mode)


def _pair_renames(found: Sequence[tuple[Difference, OutsideChange]]) -> list[OutsideChange]:
    """The changes, with each deleted and created pair that is one entry under another name as `renamed`."""
    changes = {change.path: change for _, change in found}
    deleted = [each for each in found if each[1].change == "deleted" and each[1].is_before_known]
    created = [each for each in found if each[1].change == "created" and each[1].is_before_known]
    for key in (_inode_key, _content_key):
        by_key = defaultdict(list)
        for difference, change in deleted:
            if change.path in changes and (identity := key(change.before, difference.before_inode)):
                by_key[identity].append(change)
        for difference, change in created:
            same = by_key.get(key(change.after, difference.after_inode) or ())
            if same and changes[change.path].change == "created":
                source = changes.pop(same.pop(0).path)
                changes[change.path] = replace(
                    change,
                    change="renamed",
                    source=source.path,
                    before=source.before,
                    is_ignored=source.is_ignored and change.is_ignored,
                )
    return list(changes.values())


def _inode_key(state: EntryState | None, inode: int) -> tuple[object, ...] | None:
    # An inode number is given out again as soon as a file is deleted, so the content has to be the same as well.
    return (inode, state.kind, state.size, state.hash) if state and inode else None


def _content_key(state: EntryState | None, _inode: int) -> tuple[object, ...] | None:
    return ("file", state.hash) if state and state.kind == "file" and state.hash and state.size else None
