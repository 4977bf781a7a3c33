"""Input of the rules: all that is known of a call, read before it is judged. Rules read nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kaiza.domain import errors
from kaiza.domain.audit.projection import AuditState, Session
from kaiza.domain.finding import Finding
from kaiza.domain.paths.nested_names import NestedPath
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.plans.approval import NO_EVIDENCE, ApprovalEvidence
from kaiza.domain.plans.parser import ParsedPlan
from kaiza.domain.plans.plan import Plan
from kaiza.domain.plans.scope import RequestedOperation
from kaiza.domain.tool_card import ToolCard


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One call to be judged, with the state it is judged by."""

    card: ToolCard
    arguments: Mapping[str, Any]
    now: str
    audit_state: AuditState
    session: Session | None = None
    bound_role: str | None = None
    token_role: str | None = None
    """The only role for which the caller's token begins sessions."""
    damage: str | None = None
    """What verification found wrong with the log."""
    unverified: Mapping[str, int] | None = None
    """Progress of reading or verifying the log, if that did not end in the time that a change waits for it."""
    unread: Mapping[str, int] | None = None
    """Progress of reading the log, if the session of the call may have begun in the part that was not read yet."""
    fault: errors.SystemError | None = None
    """The error of parsing a path, held back so that session and role are judged first."""
    paths: Sequence[RelPath] = ()
    """Every path that the request names; at the result, every path that the changes touch."""
    hidden: Sequence[RelPath] = ()
    """Those of `paths` whose content may not be read."""
    nested: Sequence[NestedPath] = ()
    """Those of `paths` that control a workspace below the root, or would make one."""
    plan_id: str | None = None
    """The plan whose file, or whose approval, has the requested `plan_hash`."""
    parsed: ParsedPlan | None = None
    """That plan's file as it is now; None if there is none."""
    required_approval: str = "edit"
    """The approvals that the workspace accepts: `edit` (all), `command`, `signature`."""
    evidence: ApprovalEvidence = NO_EVIDENCE
    """Evidence for that file's approval outside the log."""
    foreign: bool = False
    """Whether the workspace came from elsewhere and was not adopted here."""
    requested_operations: Sequence[RequestedOperation] = ()
    """Operations that the request means, given the files that exist."""
    lines: int = 0
    bytes: int = 0
    """Lines and bytes that the changes add to the plan's usage."""
    exempt: bool = False
    """Whether the call only undoes changes of the same plan, so that scope, phases and limits do not apply."""
    content: Sequence[tuple[RelPath, Finding]] = ()
    """Findings of the plan's content rules in the lines that the changes add."""

    @property
    def plan(self) -> Plan | None:
        """The plan as it is now; None if it has no file, or one with errors."""
        return self.parsed.plan if self.parsed else None
