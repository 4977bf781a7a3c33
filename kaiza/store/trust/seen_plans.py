"""What was seen of the plans on this machine: drafts, approvals edited here, withdrawals by editing.

Kept in `sights.json` in the state directory, shared by all processes. It is not part of the audit log: looking at a
plan leaves no record. The text of the last draft of each plan is kept beside it, to show people how a plan that came
approved differs from it.
"""

import os
import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from kaiza.domain import errors
from kaiza.domain.plans.approval import ApprovalEvidence
from kaiza.domain.plans.parser import StoredPlan
from kaiza.domain.plans.plan import APPROVED, DRAFT, MAX_BYTES, MAX_SAVED_PLANS, is_plan_id
from kaiza.store.disk import lock_timeouts, small_files
from kaiza.store.disk.byte_io import file_stamp
from kaiza.store.disk.state_dir import StateFile
from kaiza.store.documents.plan_files import DIRECTORY, SUFFIX
from kaiza.store.trust.binding import read_binding
from kaiza.store.trust.git_origin import Origin, find_origins, object_names
from kaiza.store.trust.git_plans import LOCKED, is_taken_back, trace_approvals
from kaiza.store.trust.seen_plan import EDITED, Circumstances, SeenPlan

_FILE = StateFile("sights.json")
_LOCK_NAME = "sights.lock"
_DRAFTS = "drafts"
_MAX_PLANS = 10_000
_MAX_NOTICED = 1000
_STATUS = re.compile(rb"""(?im)^[ \t"'{,?]*status["']?[ \t]*:([^\n]*)\n""")
_KnownPlans = tuple[tuple[int, ...] | None, Mapping[str, SeenPlan]]
"""The stamp of the file and what it contained."""


class SeenPlans:
    """What was seen of the plans of one workspace. Thread-safe; several processes may use one file."""

    def __init__(self, root: str, directory: Path, has_counted: Callable[[str], bool] = lambda _plan_id: False) -> None:
        self._root = root
        self._has_counted = has_counted
        """Whether the log has an approval of a plan."""
        self._directory = directory
        self._path = _FILE.path_in(directory)
        self._known: _KnownPlans = (None, {})
        self._noticed: deque[StoredPlan] = deque()
        self._last_noticed: dict[str, str] = {}
        self._is_of_new = False
        self._withdrawn: tuple[object, Mapping[str, str]] = (None, {})
        self._flush_lock = threading.Lock()

    def notice(self, stored: StoredPlan) -> None:
        """Note a plan's file as it was read; `flush` saves it. Cheap if it is as it was noticed last."""
        parsed = stored.parsed
        if self._last_noticed.get(stored.plan_id) == parsed.plan_hash:
            return
        if len(self._noticed) < _MAX_NOTICED:
            self._last_noticed[stored.plan_id] = parsed.plan_hash
            self._noticed.append(stored)

    def flush(self) -> None:
        """Decide about everything noticed, and save it. Asks git about contents seen for the first time."""
        # Held while git runs, so that a caller that needs a decision waits for it. `recall` does not take it.
        with self._flush_lock:
            noticed = [self._noticed.popleft() for _ in range(len(self._noticed))]
            known = self._load() if noticed else {}
            noticed = [one for one in noticed if one.parsed.plan or self._had_approval(one.plan_id, known)]
            if any(known.get(one.plan_id, SeenPlan()).would_change(one.parsed) for one in noticed):
                self._save_seen(noticed)

    def decide(self, stored: StoredPlan) -> None:
        """Flush, and decide about this plan again if that is not kept, or was postponed."""
        self.flush()
        plan, known = stored.parsed.plan, self._load().get(stored.plan_id, SeenPlan())
        is_open = known.approved.get(stored.parsed.plan_hash, LOCKED) == LOCKED
        if plan is not None and plan.status == APPROVED and is_open:
            self._noticed.append(stored)
            self.flush()

    def recall(self, stored: StoredPlan, evidence: ApprovalEvidence) -> ApprovalEvidence:
        """The evidence with what was seen of a plan. Starts no process and takes no lock."""
        seen = self._load().get(stored.plan_id, SeenPlan())
        origin = seen.origin_of(stored.parsed)
        is_edited = origin == EDITED
        came_by = None if is_edited else origin
        return replace(evidence, edited_here=is_edited, came_by=came_by, withdrawn_here=seen.withdrawn)

    def list_withdrawn(self) -> Mapping[str, str]:
        """The plans that were withdrawn by editing, each with the status and the hash of the file that said so."""
        plans = self._load()
        if plans is not self._withdrawn[0]:
            self._withdrawn = (plans, {key: each.withdrawn for key, each in plans.items() if each.withdrawn})
        return self._withdrawn[1]

    def lift_withdrawal(self, plan_id: str) -> None:
        """Forget that a plan was withdrawn by editing: a person has approved it again."""
        with self._flush_lock, self._locked():
            plans = self._load()
            if plan_id in plans:
                self._write_plans({**plans, plan_id: replace(plans[plan_id], withdrawn=None)})

    def mark_brought(self, plans: Iterable[StoredPlan], came_by: str) -> None:
        """Let no edit of these plans count, except where a person has approved one here by editing."""
        with self._flush_lock:
            known = self._load()
            marked = [
                one.plan_id
                for one in plans
                if _status_of(one) == APPROVED
                and (each := known.get(one.plan_id, SeenPlan())).brought is None
                and each.approved.get(one.parsed.plan_hash) != EDITED
            ]
            if marked or self._is_of_new:  # saved anew, the file is that of a bound workspace
                self._update(
                    lambda seen: {
                        **seen,
                        **{key: replace(seen.get(key, SeenPlan()), brought=came_by) for key in marked},
                    }
                )

    def forget_edits(self) -> None:
        """Forget drafts and approvals: another workspace is at this path now. What restricts stays."""
        with self._flush_lock, self._locked():
            if os.path.exists(self._path):  # noqa: PTH110  as text
                self._write_plans(_keep_restrictions(self._load()))
        self._last_noticed.clear()

    def is_of_new_workspace(self) -> bool:
        """Whether the file was saved since the workspace at this path is a new one."""
        self._load()
        return self._is_of_new

    def _save_seen(self, noticed: Sequence[StoredPlan]) -> None:
        circumstances = self._find_circumstances(noticed)
        is_saved = self._update(lambda plans: _add_seen(plans, noticed, circumstances))
        if is_saved:
            for one in noticed:
                if _status_of(one) == DRAFT:
                    _save_draft(self._directory, one.plan_id, one.content)

    def _update(self, change: Callable[[Mapping[str, SeenPlan]], Mapping[str, SeenPlan]]) -> bool:
        """Save a change; if that fails, only this process knows of it."""
        try:
            with self._locked():
                self._write_plans(change(self._load()))
        except (OSError, errors.SystemError):
            self._known = (self._known[0], change(self._known[1]))
            return False
        return True

    def _find_circumstances(self, noticed: Sequence[StoredPlan]) -> Sequence[Circumstances]:
        """What git and the log say of the contents, asked in as few questions as possible."""
        known = self._load()
        approved = {one.plan_id for one in noticed if _status_of(one) == APPROVED}
        # For a draft or an invalid file git is asked only where it may take an approval back.
        asked = [
            one
            for one in noticed
            if _status_of(one) not in {DRAFT, None} or one.plan_id in approved or self._had_approval(one.plan_id, known)
        ]
        files = [(one.plan_id + SUFFIX, one.content) for one in asked]
        found = find_origins(self._root, str(DIRECTORY), files) if files else ()
        origins = dict(zip(map(id, asked), found, strict=True))
        edited = {one.plan_id for one in asked if _status_of(one) == APPROVED and origins[id(one)] is Origin.HERE}
        came_by = trace_approvals(self._root, edited)
        return [self._describe(one, origins.get(id(one), Origin.GIT), came_by, known) for one in noticed]

    def _had_approval(self, plan_id: str, known: Mapping[str, SeenPlan]) -> bool:
        return known.get(plan_id, SeenPlan()).has_approval() or self._has_counted(plan_id)

    def _describe(
        self, one: StoredPlan, origin: Origin, came_by: Mapping[str, str], known: Mapping[str, SeenPlan]
    ) -> Circumstances:
        seen = known.get(one.plan_id, SeenPlan())
        if _status_of(one) == APPROVED:
            return Circumstances(origin, came_by.get(one.plan_id), objects=tuple(object_names(one.content)))
        is_brought = origin is Origin.GIT and one.parsed.plan_hash != seen.last
        # Whole lines only: an editor may be writing the file.
        statuses = _STATUS.findall(one.content.replace(b"\0", b"").replace(b"\r", b"\n"))
        says_approved = any(APPROVED.encode() in status.upper() for status in statuses)
        return Circumstances(
            origin,
            has_counted=self._has_counted(one.plan_id),
            is_taken_back=is_brought and is_taken_back(self._root, one.plan_id, seen.objects),
            is_ended=one.parsed.plan is None and bool(statuses) and not says_approved,
        )

    def _load(self) -> Mapping[str, SeenPlan]:
        """What was seen, read again if another process wrote it."""
        stamp, plans = self._known
        with suppress(OSError):
            current = file_stamp(os.stat(self._path))  # noqa: PTH116  on the path of every change
            if current != stamp:
                plans, self._is_of_new = self._read_plans()
                if not self._is_of_new and self._is_new():
                    plans = _keep_restrictions(plans)  # those of an earlier workspace at this path
                self._known = (current, plans)
        return plans

    def _is_new(self) -> bool:
        return bool(self._root) and read_binding(self._root, self._directory).is_new

    def _write_plans(self, plans: Mapping[str, SeenPlan]) -> None:
        members = {plan_id: asdict(each) for plan_id, each in plans.items()}
        is_new = self._is_new()
        # A withdrawal that a power cut takes back would let an approval count again.
        _FILE.replace(self._directory, {"new": is_new, "plans": members}, durable=True)
        self._known, self._is_of_new = (file_stamp(os.stat(self._path)), plans), is_new  # noqa: PTH116  as text

    def _locked(self) -> AbstractContextManager[None]:
        """Lock of the file, against other processes."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return small_files.hold_lock(self._directory / _LOCK_NAME, lock_timeouts.SEEN_PLANS)

    def _read_plans(self) -> tuple[Mapping[str, SeenPlan], bool]:
        """What is in the file, nothing if it is damaged; and whether it is of a new workspace."""
        try:
            return _FILE.load(self._directory, _parse) or ({}, False)
        except ValueError:
            return {}, False


def load_draft(state_path: Path, plan_id: str) -> bytes | None:
    """Text of the draft of a plan that was seen last; None if there is none. Only shown to people."""
    if is_plan_id(plan_id):
        with suppress(OSError):
            return small_files.read(state_path / _DRAFTS / (plan_id + SUFFIX), MAX_BYTES)
    return None


def _save_draft(state_path: Path, plan_id: str, content: bytes) -> None:
    """Keep a draft in place of an older one, if there is room: at most as many as agents may save."""
    directory = state_path / _DRAFTS
    with suppress(OSError):
        directory.mkdir(mode=0o700, exist_ok=True)
        path = directory / (plan_id + SUFFIX)
        if path.exists() or len(os.listdir(directory)) < MAX_SAVED_PLANS:  # noqa: PTH208  names, not paths
            # The text is only shown, and a damaged one shows as a difference.
            small_files.replace(path, content, durable=False)


def _status_of(stored: StoredPlan) -> str | None:
    return stored.parsed.plan.status if stored.parsed.plan else None


def _add_seen(
    plans: Mapping[str, SeenPlan], noticed: Sequence[StoredPlan], circumstances: Sequence[Circumstances]
) -> Mapping[str, SeenPlan]:
    """The plans with what was noticed added, in order; those noticed last come last."""
    result = dict(plans)
    for one, at in zip(noticed, circumstances, strict=True):
        result[one.plan_id] = result.pop(one.plan_id, SeenPlan()).after_seeing(one.parsed, at)
    # What restricts is never forgotten: without it, an approval would count again.
    oldest = [plan_id for plan_id, seen in result.items() if not seen.withdrawn and not seen.brought]
    for plan_id in oldest[: max(0, len(result) - _MAX_PLANS)]:
        del result[plan_id]
    return result


def _parse(document: dict[str, Any]) -> tuple[Mapping[str, SeenPlan], bool]:
    plans = {
        plan_id: SeenPlan(**{**each, "drafts": tuple(each["drafts"]), "objects": tuple(each["objects"])})
        for plan_id, each in document["plans"].items()
    }
    return plans, document["new"] is True


def _keep_restrictions(plans: Mapping[str, SeenPlan]) -> Mapping[str, SeenPlan]:
    return {key: SeenPlan(withdrawn=each.withdrawn, brought=each.brought) for key, each in plans.items()}
