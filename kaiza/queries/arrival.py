"""What came with a workspace from elsewhere: its records, where they were written, and its plans."""

from collections import Counter
from itertools import islice
from typing import Any

from kaiza.queries.plan_review import list_plans
from kaiza.queries.workspace_status import list_unadopted
from kaiza.store.audit.reader import read_records
from kaiza.store.audit.verification.verify import NO_RECORDS, verdict_output, verify_log
from kaiza.store.workspace import Workspace

_MAX_ROOTS = 5
_MAX_READ = 10_000


def describe_arrival(workspace: Workspace) -> dict[str, Any]:
    """What `kaiza adopt --show --json` prints. Verifies the whole log."""
    # Without a record or a mark there is no log to verify, and none is missed.
    has_log = workspace.log.head is not None or workspace.damage() is not None
    plans = list_plans(workspace)
    state, head = workspace.audit_state, workspace.log.head
    return {
        "workspace": workspace.root,
        "standing": workspace.binding.standing.value,
        "records": head.seq if head else 0,
        "roots": _earlier_roots(workspace),
        "plans": dict(sorted(Counter(plan["status"].lower() for plan in plans).items())),
        "approved": [plan["plan_id"] for plan in plans if plan["status"] == "APPROVED"],
        "settings": list_unadopted(workspace),
        "journals": _count_journals(workspace),
        "frozen": state.frozen is not None,
        "locked": sorted(state.locks),
        "withdrawn": sorted(state.withdrawn),
        "log": verdict_output(verify_log(workspace.root) if has_log else NO_RECORDS),
    }


def _count_journals(workspace: Workspace) -> int:
    """Number of journals of unfinished changes; 0 where they cannot be read, and so none is used."""
    try:
        return workspace.count_journals()
    except OSError:
        return 0


def _earlier_roots(workspace: Workspace) -> list[str]:
    """Other roots that the newest records name, the latest first."""
    roots: dict[str, None] = {}
    for record in islice(read_records(workspace.root, reverse=True), _MAX_READ):
        root = record.workspace_root
        if isinstance(root, str) and root != workspace.root:
            roots[root] = None
        if len(roots) == _MAX_ROOTS:
            break
    return list(roots)
