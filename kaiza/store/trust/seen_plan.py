"""What was seen of one plan, and what a further look at its file adds to that."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kaiza.domain.plans.parser import ParsedPlan
from kaiza.domain.plans.plan import APPROVED, DRAFT, REVOKED
from kaiza.store.trust.git_origin import Origin
from kaiza.store.trust.git_plans import GIT, LOCKED

_MAX_KEPT = 20
"""Drafts, and approved contents, that are remembered of one plan."""
_MAX_OBJECTS = 80
EDITED, UNSEEN = "edited", "unseen"


class Circumstances(NamedTuple):
    """What git and the log say of a plan's file when it is looked at."""

    origin: Origin = Origin.HERE
    came_by: str | None = None
    """How an approval came that is no edit of a person, though git does not know its bytes."""
    has_counted: bool = False
    """Whether the log has an approval of the plan."""
    is_taken_back: bool = False
    """Whether HEAD's history of the file has bytes that were approved, or git never had them."""
    objects: Sequence[str] = ()
    """Names that the content would have as an object of git."""
    is_ended: bool = False
    """Whether an invalid file has a status, and another one than APPROVED."""


@dataclass(frozen=True, slots=True)
class SeenPlan:
    """What was seen of one plan."""

    last: str = ""
    """Plan hash that was seen last."""
    drafts: tuple[str, ...] = ()
    """Body hashes of drafts."""
    approved: Mapping[str, str] = field(default_factory=dict)
    """Plan hashes of approved contents, each with `edited`, `unseen`, `locked`, or why no edit can have made it."""
    withdrawn: str | None = None
    """The status with which an edit or a commit took the approval back, until `plan approve` lifts it."""
    brought: str | None = None
    """Why no edit of this plan counts until a person approves it by command: how an approval of it arrived."""
    objects: tuple[str, ...] = ()
    """Names that approved contents would have as objects of git."""

    def origin_of(self, parsed: ParsedPlan) -> str:
        """How an approved content got here."""
        # One that git was not asked about yet counts as unseen, even if its draft was seen.
        origin = self.approved.get(parsed.plan_hash)
        if origin == EDITED:
            return EDITED
        return self.brought or origin or UNSEEN

    def would_change(self, parsed: ParsedPlan) -> bool:
        """Whether seeing this content would add anything."""
        return parsed.plan_hash != self.last or self.after_seeing(parsed, Circumstances()) != self

    def after_seeing(self, parsed: ParsedPlan, at: Circumstances) -> "SeenPlan":
        """What is known after seeing this content."""
        if parsed.plan is None:
            # Looked at only where there is an approval. A person who withdraws it need not write valid YAML.
            is_change = at.origin is not Origin.GIT or at.is_taken_back
            is_withdrawn = at.is_ended and is_change and parsed.plan_hash != self.last
            return replace(self, last=parsed.plan_hash, withdrawn=REVOKED if is_withdrawn else self.withdrawn)
        status = parsed.plan.status
        if status == APPROVED:
            return self._with_approval(parsed, at)
        seen = replace(self, last=parsed.plan_hash)
        if status == DRAFT:
            others = [body for body in self.drafts if body != parsed.body_hash]
            seen = replace(seen, drafts=tuple([*others, parsed.body_hash or ""][-_MAX_KEPT:]))
        is_edit = at.origin is not Origin.GIT and parsed.plan_hash != self.last
        if status == DRAFT and not (at.has_counted or self.has_approval()):
            return seen  # nothing to withdraw
        return replace(seen, withdrawn=status) if is_edit or at.is_taken_back else seen

    def has_approval(self) -> bool:
        """Whether there was an approval that a draft set by a person takes back."""
        return self.brought is not None or EDITED in self.approved.values()

    def _with_approval(self, parsed: ParsedPlan, at: Circumstances) -> "SeenPlan":
        # What counted once goes on counting: edited bytes may be committed afterwards.
        is_decided = self.approved.get(parsed.plan_hash) == EDITED
        came_by = None if is_decided else GIT if at.origin is not Origin.HERE else at.came_by
        is_postponed = came_by == LOCKED
        seen = replace(self, last=parsed.plan_hash, brought=self.brought or (None if is_postponed else came_by))
        seen = replace(seen, objects=tuple(dict.fromkeys([*self.objects, *at.objects]))[-_MAX_OBJECTS:])
        is_edited = is_decided or (seen.brought is None and not is_postponed and parsed.body_hash in self.drafts)
        origin = EDITED if is_edited else seen.brought or (LOCKED if is_postponed else UNSEEN)
        approved = {**self.approved, parsed.plan_hash: origin}
        return replace(seen, approved=dict(list(approved.items())[-_MAX_KEPT:]))
