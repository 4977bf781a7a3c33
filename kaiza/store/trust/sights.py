"""What was seen of the plans on this machine: drafts, approvals edited here, withdrawals by editing.

Kept in `sights.json` in the state directory, shared by all processes. It is not part of the audit log: a plan that was
only looked at leaves no record.
"""

import os
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import orjson

from kaiza.domain import errors
from kaiza.domain.plans.approval import ApprovalEvidence
from kaiza.domain.plans.parser import ParsedPlan, StoredPlan
from kaiza.domain.plans.plan import APPROVED, DRAFT
from kaiza.store.disk import state_dir
from kaiza.store.disk.byte_io import file_stamp
from kaiza.store.disk.file_lock import FileLock
from kaiza.store.documents.plan_files import DIRECTORY, SUFFIX
from kaiza.store.trust.git_origin import Origin, find_origins
from kaiza.store.trust.seen_drafts import save_draft

_NAME = "sights.json"
_LOCK_NAME = "sights.lock"
_LOCK_SECONDS = 5.0
_MAX_PLANS = 10_000
_MAX_KEPT = 20
"""Drafts, and approved contents, that are remembered of one plan."""
_MAX_NOTICED = 1000
EDITED, UNSEEN = "edited", "unseen"
_FIRST_ORIGINS = {Origin.GIT: "git", Origin.UNKNOWN: "git", Origin.HERE: UNSEEN}


@dataclass(frozen=True, slots=True)
class PlanSights:
    """What was seen of one plan."""

    last: str = ""
    """Plan hash that was seen last."""
    drafts: tuple[str, ...] = ()
    """Body hashes of drafts."""
    approved: Mapping[str, str] = field(default_factory=dict)
    """Plan hashes of approved contents, each with `edited`, `git` or `unseen`: how it got here."""
    withdrawn: str | None = None
    """The ended status that a person set by editing, until `plan approve` lifts it."""

    def origin_of(self, parsed: ParsedPlan) -> str:
        """How an approved content got here."""
        # One that git was not asked about yet counts as unseen, even if its draft was seen.
        origin = self.approved.get(parsed.plan_hash)
        return EDITED if origin == UNSEEN and parsed.body_hash in self.drafts else origin or UNSEEN

    def has_news(self, parsed: ParsedPlan) -> bool:
        """Whether a sight of this content would change anything."""
        return parsed.plan_hash != self.last or self.with_sight(parsed, Origin.GIT) != self

    def with_sight(self, parsed: ParsedPlan, origin: Origin) -> "PlanSights":
        """The sights with one more, of a valid plan; `origin` is that of its bytes."""
        status = parsed.plan.status if parsed.plan else DRAFT
        seen = replace(self, last=parsed.plan_hash)
        if status == DRAFT:
            others = [body for body in self.drafts if body != parsed.body_hash]
            return replace(seen, drafts=tuple([*others, parsed.body_hash or ""][-_MAX_KEPT:]))
        if status == APPROVED:
            # The first sight decides: edited bytes may be committed afterwards.
            first = replace(self, approved={parsed.plan_hash: _FIRST_ORIGINS[origin], **self.approved})
            approved = {**self.approved, parsed.plan_hash: first.origin_of(parsed)}
            return replace(seen, approved=dict(list(approved.items())[-_MAX_KEPT:]))
        is_edit = origin is not Origin.GIT and parsed.plan_hash != self.last
        return replace(seen, withdrawn=status) if is_edit else seen


_KnownSights = tuple[tuple[int, ...] | None, Mapping[str, PlanSights]]
"""The stamp of the file and what it contained."""


class Sights:
    """The sights of one workspace. Thread-safe; several processes may use one file."""

    def __init__(self, root: str, directory: Path) -> None:
        self._root = root
        self._directory = directory
        self._path = directory / _NAME
        self._known: _KnownSights = (None, {})
        self._noticed: deque[StoredPlan] = deque()
        self._last_noticed: dict[str, str] = {}
        self._flush_lock = threading.Lock()

    def notice(self, stored: StoredPlan) -> None:
        """Note a plan's file as it was read; `flush` saves it. Cheap if it is as it was noticed last."""
        parsed = stored.parsed
        if parsed.plan is None or self._last_noticed.get(stored.plan_id) == parsed.plan_hash:
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
            if any(known.get(one.plan_id, PlanSights()).has_news(one.parsed) for one in noticed):
                self._save_sights(noticed)

    def decide(self, stored: StoredPlan) -> None:
        """Flush, and decide about this plan again if what was decided is no longer kept."""
        self.flush()
        plan, known = stored.parsed.plan, self._load().get(stored.plan_id, PlanSights())
        if plan is not None and plan.status == APPROVED and stored.parsed.plan_hash not in known.approved:
            self._noticed.append(stored)
            self.flush()

    def recall(self, stored: StoredPlan, evidence: ApprovalEvidence) -> ApprovalEvidence:
        """The evidence with what was seen of a plan. Starts no process and takes no lock."""
        sights = self._load().get(stored.plan_id, PlanSights())
        origin = sights.origin_of(stored.parsed)
        is_edited = origin == EDITED
        came_by = None if is_edited else origin
        return replace(evidence, edited_here=is_edited, came_by=came_by, withdrawn_here=sights.withdrawn)

    def lift_withdrawal(self, plan_id: str) -> None:
        """Forget that a plan was withdrawn by editing: a person has approved it again."""
        with self._flush_lock, self._locked():
            plans = self._load()
            if plan_id in plans:
                self._write_plans({**plans, plan_id: replace(plans[plan_id], withdrawn=None)})

    def forget_approvals(self) -> None:
        """Forget which approvals count: the workspace was replaced by another one at its path. Drafts stay."""
        with self._flush_lock, self._locked():
            plans = self._load()
            if plans:
                self._write_plans({plan_id: replace(each, approved={}) for plan_id, each in plans.items()})

    def _save_sights(self, noticed: Sequence[StoredPlan]) -> None:
        origins = self._find_origins(noticed)
        try:
            with self._locked():
                self._write_plans(_add_sights(self._load(), noticed, origins))
                for one in filter(_is_draft, noticed):
                    save_draft(self._directory, one.plan_id, one.content)
        except (OSError, errors.SystemError):
            # This process still knows. Another one has not seen the drafts and approves nothing by them.
            self._known = (self._known[0], _add_sights(self._known[1], noticed, origins))

    def _find_origins(self, noticed: Sequence[StoredPlan]) -> Sequence[Origin]:
        # Git is asked about the bytes of an approval, never about those of a draft.
        files = [(one.plan_id + SUFFIX, one.content) for one in noticed if not _is_draft(one)]
        found = iter(find_origins(self._root, str(DIRECTORY), files) if files else ())
        return [Origin.GIT if _is_draft(one) else next(found) for one in noticed]

    def _load(self) -> Mapping[str, PlanSights]:
        """The sights, read again if another process wrote them."""
        stamp, plans = self._known
        with suppress(OSError):
            current = file_stamp(os.stat(self._path))  # noqa: PTH116  on the path of every change
            if current != stamp:
                plans = _read_plans(self._path)
                self._known = (current, plans)
        return plans

    def _write_plans(self, plans: Mapping[str, PlanSights]) -> None:
        content = {"format": 1, "plans": {plan_id: asdict(each) for plan_id, each in plans.items()}}
        state_dir.replace_file(self._path, orjson.dumps(content))
        self._known = (file_stamp(self._path.stat()), plans)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Lock of the file, against other processes."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        lock = FileLock(os.open(self._directory / _LOCK_NAME, flags, 0o600))
        try:
            lock.acquire(_LOCK_SECONDS)
            yield
        finally:
            lock.close()


def _is_draft(stored: StoredPlan) -> bool:
    return stored.parsed.plan is not None and stored.parsed.plan.status == DRAFT


def _add_sights(
    plans: Mapping[str, PlanSights], noticed: Sequence[StoredPlan], origins: Sequence[Origin]
) -> Mapping[str, PlanSights]:
    """The sights with those noticed, in order; the plans noticed last come last."""
    result = dict(plans)
    for one, origin in zip(noticed, origins, strict=True):
        result[one.plan_id] = result.pop(one.plan_id, PlanSights()).with_sight(one.parsed, origin)
    # A withdrawal is never forgotten: without it, an older approval would count again.
    oldest = [plan_id for plan_id, sights in result.items() if not sights.withdrawn]
    for plan_id in oldest[: max(0, len(result) - _MAX_PLANS)]:
        del result[plan_id]
    return result


def _read_plans(path: Path) -> Mapping[str, PlanSights]:
    """The sights in the file; none if it is malformed."""
    try:
        members = orjson.loads(path.read_bytes())["plans"]
        return {plan_id: PlanSights(**{**each, "drafts": tuple(each["drafts"])}) for plan_id, each in members.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}
