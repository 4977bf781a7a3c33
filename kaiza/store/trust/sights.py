"""What was seen of the plans on this machine: drafts, approvals edited here, withdrawals by editing.

Kept in `sights.json` in the state directory, shared by all processes. It is not part of the audit log: a plan that was
only looked at leaves no record.
"""

import os
import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import orjson

from kaiza.domain import errors
from kaiza.domain.plans.approval import ApprovalEvidence
from kaiza.domain.plans.parser import StoredPlan
from kaiza.domain.plans.plan import APPROVED, DRAFT
from kaiza.store.disk import lock_timeouts, state_dir
from kaiza.store.disk.byte_io import file_stamp
from kaiza.store.disk.file_lock import FileLock
from kaiza.store.documents.plan_files import DIRECTORY, SUFFIX
from kaiza.store.trust.binding import read_binding
from kaiza.store.trust.git_origin import Origin, find_origins, object_names
from kaiza.store.trust.plan_arrival import LOCKED, explain_arrivals, is_taken_back
from kaiza.store.trust.plan_sights import EDITED, Circumstances, PlanSights
from kaiza.store.trust.seen_drafts import save_draft

_NAME = "sights.json"
_LOCK_NAME = "sights.lock"
_MAX_PLANS = 10_000
_MAX_NOTICED = 1000
_STATUS = re.compile(rb"""(?im)^[ \t"'{,?]*status["']?[ \t]*:([^\n]*)\n""")
_KnownSights = tuple[tuple[int, ...] | None, Mapping[str, PlanSights]]
"""The stamp of the file and what it contained."""


class Sights:
    """The sights of one workspace. Thread-safe; several processes may use one file."""

    def __init__(self, root: str, directory: Path, has_counted: Callable[[str], bool] = lambda _plan_id: False) -> None:
        self._root = root
        self._has_counted = has_counted
        """Whether the log has an approval of a plan."""
        self._directory = directory
        self._path = directory / _NAME
        self._known: _KnownSights = (None, {})
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
            if any(known.get(one.plan_id, PlanSights()).has_news(one.parsed) for one in noticed):
                self._save_sights(noticed)

    def decide(self, stored: StoredPlan) -> None:
        """Flush, and decide about this plan again if that is not kept, or was postponed."""
        self.flush()
        plan, known = stored.parsed.plan, self._load().get(stored.plan_id, PlanSights())
        is_open = known.approved.get(stored.parsed.plan_hash, LOCKED) == LOCKED
        if plan is not None and plan.status == APPROVED and is_open:
            self._noticed.append(stored)
            self.flush()

    def recall(self, stored: StoredPlan, evidence: ApprovalEvidence) -> ApprovalEvidence:
        """The evidence with what was seen of a plan. Starts no process and takes no lock."""
        sights = self._load().get(stored.plan_id, PlanSights())
        origin = sights.origin_of(stored.parsed)
        is_edited = origin == EDITED
        came_by = None if is_edited else origin
        return replace(evidence, edited_here=is_edited, came_by=came_by, withdrawn_here=sights.withdrawn)

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

    def mark_brought(self, arrived: Iterable[StoredPlan], arrival: str) -> None:
        """Let no edit of these plans count, but of those that a person has approved here by editing."""
        with self._flush_lock:
            known = self._load()
            marked = [
                one.plan_id
                for one in arrived
                if _status_of(one) == APPROVED
                and (each := known.get(one.plan_id, PlanSights())).brought is None
                and each.approved.get(one.parsed.plan_hash) != EDITED
            ]
            if marked or self._is_of_new:  # saved anew, the sights are those of a bound workspace
                self._update(
                    lambda plans: {
                        **plans,
                        **{key: replace(plans.get(key, PlanSights()), brought=arrival) for key in marked},
                    }
                )

    def forget_edits(self) -> None:
        """Forget drafts and approvals: another workspace is at this path now. What restricts stays."""
        with self._flush_lock, self._locked():
            if self._path.exists():
                self._write_plans(_keep_restrictions(self._load()))
        self._last_noticed.clear()

    def is_of_new_workspace(self) -> bool:
        """Whether the sights were saved since the workspace at this path is a new one."""
        self._load()
        return self._is_of_new

    def _save_sights(self, noticed: Sequence[StoredPlan]) -> None:
        circumstances = self._find_circumstances(noticed)
        is_saved = self._update(lambda plans: _add_sights(plans, noticed, circumstances))
        if is_saved:
            for one in noticed:
                if _status_of(one) == DRAFT:
                    save_draft(self._directory, one.plan_id, one.content)

    def _update(self, change: Callable[[Mapping[str, PlanSights]], Mapping[str, PlanSights]]) -> bool:
        """Save a change of the sights; where that fails, only this process knows of it."""
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
        # Of a draft, and of an invalid file, git is asked only where it may take an approval back.
        asked = [
            one
            for one in noticed
            if _status_of(one) not in {DRAFT, None} or one.plan_id in approved or self._had_approval(one.plan_id, known)
        ]
        files = [(one.plan_id + SUFFIX, one.content) for one in asked]
        found = find_origins(self._root, str(DIRECTORY), files) if files else ()
        origins = dict(zip(map(id, asked), found, strict=True))
        edited = {one.plan_id for one in asked if _status_of(one) == APPROVED and origins[id(one)] is Origin.HERE}
        arrivals = explain_arrivals(self._root, edited)
        return [self._describe(one, origins.get(id(one), Origin.GIT), arrivals, known) for one in noticed]

    def _had_approval(self, plan_id: str, known: Mapping[str, PlanSights]) -> bool:
        return known.get(plan_id, PlanSights()).has_approval() or self._has_counted(plan_id)

    def _describe(
        self, one: StoredPlan, origin: Origin, arrivals: Mapping[str, str], known: Mapping[str, PlanSights]
    ) -> Circumstances:
        sights = known.get(one.plan_id, PlanSights())
        if _status_of(one) == APPROVED:
            return Circumstances(origin, arrivals.get(one.plan_id), objects=tuple(object_names(one.content)))
        is_brought = origin is Origin.GIT and one.parsed.plan_hash != sights.last
        return Circumstances(
            origin,
            has_counted=self._has_counted(one.plan_id),
            is_taken_back=is_brought and is_taken_back(self._root, one.plan_id, sights.objects),
            is_ended=one.parsed.plan is None and _is_ended(one.content),
        )

    def _load(self) -> Mapping[str, PlanSights]:
        """The sights, read again if another process wrote them."""
        stamp, plans = self._known
        with suppress(OSError):
            current = file_stamp(os.stat(self._path))  # noqa: PTH116  on the path of every change
            if current != stamp:
                plans, self._is_of_new = _read_plans(self._path)
                if not self._is_of_new and self._is_new():
                    plans = _keep_restrictions(plans)  # those of an earlier workspace at this path
                self._known = (current, plans)
        return plans

    def _is_new(self) -> bool:
        return bool(self._root) and read_binding(self._root, self._directory).is_new

    def _write_plans(self, plans: Mapping[str, PlanSights]) -> None:
        members = {plan_id: asdict(each) for plan_id, each in plans.items()}
        content = {"format": 1, "new": self._is_new(), "plans": members}
        state_dir.replace_file(self._path, orjson.dumps(content))
        self._known, self._is_of_new = (file_stamp(self._path.stat()), plans), content["new"] is True

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Lock of the file, against other processes."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        lock = FileLock(os.open(self._directory / _LOCK_NAME, flags, 0o600))
        try:
            lock.acquire(lock_timeouts.SIGHTS)
            yield
        finally:
            lock.close()


def _status_of(stored: StoredPlan) -> str | None:
    return stored.parsed.plan.status if stored.parsed.plan else None


def _is_ended(content: bytes) -> bool:
    """Whether a file has a whole line with a status, and none that says APPROVED; an editor may be writing it."""
    statuses = _STATUS.findall(content.replace(b"\0", b"").replace(b"\r", b"\n"))
    return bool(statuses) and not any(APPROVED.encode() in status.upper() for status in statuses)


def _add_sights(
    plans: Mapping[str, PlanSights], noticed: Sequence[StoredPlan], circumstances: Sequence[Circumstances]
) -> Mapping[str, PlanSights]:
    """The sights with those noticed, in order; the plans noticed last come last."""
    result = dict(plans)
    for one, at in zip(noticed, circumstances, strict=True):
        result[one.plan_id] = result.pop(one.plan_id, PlanSights()).with_sight(one.parsed, at)
    # What restricts is never forgotten: without it, an approval would count again.
    oldest = [plan_id for plan_id, sights in result.items() if not sights.withdrawn and not sights.brought]
    for plan_id in oldest[: max(0, len(result) - _MAX_PLANS)]:
        del result[plan_id]
    return result


def _read_plans(path: Path) -> tuple[Mapping[str, PlanSights], bool]:
    """The sights in the file, none if it is malformed; and whether they are of a new workspace."""
    try:
        document = orjson.loads(state_dir.read_file(path))
        plans = {plan_id: _read_sights(each) for plan_id, each in document["plans"].items()}
        return plans, document.get("new") is True
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}, False


def _keep_restrictions(plans: Mapping[str, PlanSights]) -> Mapping[str, PlanSights]:
    return {key: PlanSights(withdrawn=each.withdrawn, brought=each.brought) for key, each in plans.items()}


def _read_sights(members: Mapping[str, Any]) -> PlanSights:
    texts = {name: tuple(members[name]) for name in ("drafts", "objects")}
    return PlanSights(**{**members, **texts})
