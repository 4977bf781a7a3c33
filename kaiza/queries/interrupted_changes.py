"""Changes that a crash interrupted and that no process has recovered yet, as a review and an attestation name them."""

from collections.abc import Iterable

from kaiza.domain.audit.inverse_changes import touched_paths
from kaiza.domain.audit.record import Record
from kaiza.domain.review.evidence import InterruptedChange
from kaiza.store.open_changes import find_abandoned
from kaiza.store.workspace import Workspace

__all__ = ["find_abandoned"]


def find_interrupted(workspace: Workspace, records: Iterable[Record]) -> list[InterruptedChange]:
    """Those that the records announce, and those of other calls to a file that the records are about."""
    abandoned = find_abandoned(workspace)
    if not abandoned:
        return []
    listed = [record for record in records if record.changes]
    announced = {record.request_id for record in listed}
    paths = {path for record in listed for path in touched_paths(record)}
    return [
        InterruptedChange(txn, intent.seq, str(intent.tool_name or "kaiza undo"), list(touched_paths(intent)))
        for txn, intent in abandoned.items()
        if txn in announced or not paths.isdisjoint(touched_paths(intent))
    ]
