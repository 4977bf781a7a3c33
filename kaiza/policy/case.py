"""Everything a rule may look at, gathered before it is asked. Rules look at nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kaiza.domain import errors
from kaiza.domain.audit.projection import AuditState, Session
from kaiza.domain.finding import Finding
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.plans.parser import ParsedPlan
from kaiza.domain.plans.scope import RequestedOperation
from kaiza.domain.tool_card import ToolCard


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One call before the law."""

    card: ToolCard
    arguments: Mapping[str, Any]
    now: str
    audit_state: AuditState
    session: Session | None = None
    bound_role: str | None = None
    damage: str | None = None
    unverified: Mapping[str, int] | None = None
    """How far the verification of the whole log has come, where a change did not wait for its end."""
    fault: errors.SystemError | None = None
    """What was wrong with a path the caller named, held back until the paths' turn."""
    paths: Sequence[RelPath] = ()
    """Every path the request names, as asked."""
    hidden: Sequence[RelPath] = ()
    """Those of them whose content nobody may read."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    plan_id: str | None = None
    """The plan that the asked hash, or the approval that sealed it, belongs to."""
    parsed: ParsedPlan | None = None
    """That plan's file as it is now; None where it is gone."""
    by_command: bool = False
    """Whether only an approval by command counts."""
    requested_operations: Sequence[RequestedOperation] = ()
    """What would happen to which file, judged by the files that are there."""
    lines: int = 0
    bytes: int = 0
    """What the result adds to the plan's use."""
    exempt: bool = False
    """Whether its changes only put back what the plan allowed and counted: its scope, phases and limits do not hold."""
    content: Sequence[tuple[RelPath, Finding]] = ()
    """What the content rules found in what is added, for the rules that the plan sets to refuse."""
