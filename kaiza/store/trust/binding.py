"""Binding of a workspace to this machine's state directory: new, bound or foreign.

Reading writes nothing; `establish` writes the identity before the first record. Device and inode numbers are not
looked at, because they change with every restore.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from kaiza.clock import current_timestamp
from kaiza.domain.audit.record import Body, new_body
from kaiza.store.audit import log_file
from kaiza.store.audit.checkpoint import Checkpoint
from kaiza.store.audit.snapshot import is_head_in_log
from kaiza.store.disk.state_key import StateKey
from kaiza.store.trust import identity
from kaiza.store.trust.identity import KnownWorkspace


class Standing(StrEnum):
    """Whether the workspace's own files may give authority here."""

    NEW = "new"
    BOUND = "bound"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True)
class Binding:
    """Standing of a workspace, and the log's records that may only restrict."""

    standing: Standing = Standing.BOUND
    adopted_seq: int = 0
    """Records up to this number were written elsewhere: of them only restrictions count."""
    lacks_id: bool = False
    """Whether only the log shows that the workspace belongs here."""

    @property
    def is_foreign(self) -> bool:
        """Whether the workspace came from elsewhere and was not adopted on this machine."""
        return self.standing is Standing.FOREIGN

    @property
    def is_new(self) -> bool:
        """Whether nothing has been recorded in the workspace."""
        return self.standing is Standing.NEW

    @property
    def restricted_seq(self) -> int:
        """Number up to which records may only restrict; -1 for all of them."""
        return -1 if self.is_foreign else self.adopted_seq


_FOREIGN = Binding(Standing.FOREIGN)


def read_binding(root: str, state_path: Path) -> Binding:
    """The binding as the files are now. What cannot be read makes the workspace foreign."""
    try:
        return _decide(root, state_path)
    except OSError:
        return _FOREIGN


def establish(root: str, state_path: Path, found: Binding, key: StateKey) -> Sequence[Body]:
    """Write the identity that a binding lacks, and return the records to append first.

    The caller holds the lock on the identity. AUDIT_LOG_FAILED if the identity cannot be written.
    """
    try:
        if found.is_new:
            return _bind_new(root, state_path, key)
        if found.is_foreign:
            # From now on the checkpoints of this machine are no evidence that it set up the workspace.
            if identity.read_known(state_path) is None:
                identity.write_known(state_path, KnownWorkspace(None, root, current_timestamp()))
            return ()
        return _bind_again(root, state_path) if found.lacks_id else _carry_over(root, state_path, key)
    except OSError as refused:
        sentence = "The workspace's id could not be written. Check the state directory and .kaiza/, then try again."
        raise log_file.log_error(refused, sentence) from refused


def describe_establishment(body: Body) -> str:
    """What a record of `establish` means, in one sentence."""
    detail = body["detail"]
    if detail["result"] == "workspace_bound":
        return "The workspace's id was written anew: its log continues what this machine knows."
    head = detail["old_head"]
    count = head["seq"] if head else 0
    what = f" with a log of {count} {'record' if count == 1 else 'records'}" if count else ""
    return f"Another workspace{what} was at this path before. What was known of it is retired; what it forbids holds."


def adopt(root: str, state_path: Path, adopted_seq: int) -> None:
    """Bind a foreign workspace by a person's decision: records up to this number may only restrict.

    A valid id in the workspace is kept. The caller holds the lock on the identity.
    """
    workspace_id = identity.read_local_id(root) or identity.new_id()
    identity.write_local_id(root, workspace_id)
    identity.write_known(state_path, KnownWorkspace(workspace_id, root, current_timestamp(), adopted_seq))


def forget_adopted_records(state_path: Path) -> None:
    """After the acceptance of a damaged log: its records are no longer in the log."""
    known = identity.read_known(state_path)
    if known is not None and known.workspace_id is not None:
        identity.write_known(state_path, replace(known, adopted_seq=0))


def _decide(root: str, state_path: Path) -> Binding:
    local_id, known = identity.read_local_id(root), identity.read_known(state_path)
    if local_id is None and identity.is_blank(root):
        return Binding(Standing.NEW)
    if known is None or known.workspace_id is None:
        return _FOREIGN
    if local_id == known.workspace_id:
        return Binding(adopted_seq=known.adopted_seq)
    if local_id is None:
        # The id was deleted. The workspace is still ours if its log contains the last head that this machine knows.
        checkpoint = Checkpoint(state_path).read()
        if checkpoint is not None and is_head_in_log(log_file.path_of(root), checkpoint.head):
            return Binding(adopted_seq=known.adopted_seq, lacks_id=True)
    return _FOREIGN


def _bind_new(root: str, state_path: Path, key: StateKey) -> Sequence[Body]:
    from kaiza.store.trust import retired_state  # noqa: PLC0415  once in the life of a workspace

    retired_state.retire(state_path)
    workspace_id = identity.new_id()
    identity.write_known(state_path, KnownWorkspace(workspace_id, root, current_timestamp()))
    identity.write_local_id(root, workspace_id)
    return _carry_over(root, state_path, key)


def _carry_over(root: str, state_path: Path, key: StateKey) -> Sequence[Body]:
    """Records that carry the restrictions of a retired state into a new log; after a crash, those that it lacks."""
    from kaiza.store.trust import retired_state  # noqa: PLC0415  as above

    carried = retired_state.count_carried(root)
    if carried is None:
        return ()
    details = list(retired_state.collect_restrictions(state_path, key))[carried:]
    return [
        new_body("recovery", timestamp=current_timestamp(), workspace_root=root, outcome="ok", detail=detail)
        for detail in details
    ]


def _bind_again(root: str, state_path: Path) -> Sequence[Body]:
    known = identity.read_known(state_path)
    if known is not None and known.workspace_id is not None:
        # Where `.kaiza` cannot be written the log alone still shows that the workspace belongs here.
        with suppress(OSError):
            identity.write_local_id(root, known.workspace_id)
    detail = {"result": "workspace_bound", "from": "log"}
    return [new_body("recovery", timestamp=current_timestamp(), workspace_root=root, outcome="ok", detail=detail)]
