"""Settle an interrupted change whose journal belongs to a state directory that is gone."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.clock import current_timestamp
from kaiza.domain.refusal import RefusedError
from kaiza.queries.workspaces import Progress, verify_whole_log
from kaiza.store.crash_recovery import ForeignChange, find_foreign_changes, settle_foreign_change
from kaiza.store.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change, what the log says of it, and how its files are now."""

    change: ForeignChange

    @property
    def path(self) -> str:
        """The change's journal."""
        return f".kaiza/journal/{self.change.journal.name}"


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of the change."""

    report: Mapping[str, Any]


def propose(workspace: Workspace, progress: Progress) -> Iterator[Proposal]:
    """The changes of other state directories, each locked until the next is asked for. Refused on a damaged log."""
    verify_whole_log(workspace, progress)
    return (Proposal(change) for change in find_foreign_changes(workspace))


def decide(workspace: Workspace, proposal: Proposal, person: str) -> Decision:
    """Set the journal aside, then record the change as its files say. Refused if its writer may be alive."""
    if proposal.change.is_in_use:
        raise RefusedError(
            f"{proposal.path} is of a change that may be in progress: its process is alive, or of another account. "
            "End it first."
        )
    # The files are looked at again: the person had time to change them.
    report = settle_foreign_change(workspace, proposal.change, current_timestamp(), person)
    if report["result"] == "left":
        raise RefusedError(
            f"{proposal.path} cannot be moved to .kaiza/set-aside/. Check the permissions of .kaiza, then run this "
            "again."
        )
    return Decision(report)
