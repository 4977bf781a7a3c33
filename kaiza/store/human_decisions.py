"""What a person decides is a record of kind `person`, durable before it takes effect."""

from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

from kaiza.domain import errors
from kaiza.domain.audit.record import Body, new_body
from kaiza.domain.plans.plan import MAX_BYTES, Plan
from kaiza.store.disk.fsync_batch import FsyncBatch
from kaiza.store.workspace import Workspace

Precondition = Callable[[], None]


def current_timestamp() -> str:
    """The time as records tell it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def catch_up(ground: Workspace) -> None:
    """What every process recorded so far is known when this returns."""
    if ground.is_recording():
        ground.log.catch_up()


def record_decision(
    ground: Workspace, action: str, person: str, check: Precondition | None = None, **members: Any
) -> Mapping[str, Any]:
    """The word is on disk when this returns. `check` is asked under the log's lock; what it raises, nothing is written.

    `members` are the record's own, `detail` more of what it tells.
    """
    detail = {"action": action, "person": person, **members.pop("detail", {})}

    def make() -> Body:
        if check is not None:
            check()
        return new_body(
            "person", timestamp=current_timestamp(), workspace_root=ground.root, outcome="ok", detail=detail, **members
        )

    return ground.log.append(make, durable=True)


def record_plan_seal(ground: Workspace, plan_id: str, plan_hash: str, detail: Mapping[str, Any]) -> None:
    """The bytes that a person approved by command count from now on, and no others of that name."""
    members = {"plan_id": plan_id, "plan_hash": plan_hash, "detail": {"how": "command", **detail}}
    ground.log.append(
        lambda: new_body("plan", timestamp=current_timestamp(), workspace_root=ground.root, **members), durable=True
    )


def store_current(ground: Workspace, plan: Plan) -> None:
    """Keep the plan's file as it is now, if it still is the plan that was read."""
    stored = ground.plans.read(plan.plan_id)
    if stored is not None and stored.parsed.plan_hash == plan.plan_hash:
        store_bytes(ground, plan.plan_hash, stored.content)


def store_bytes(ground: Workspace, plan_hash: str, content: bytes) -> None:
    """They are on disk when this returns."""
    with closing(FsyncBatch()) as batch:
        ground.blobs.store(plan_hash, [content], pack=True, batch=batch)
        batch.sync()


def load_bytes(ground: Workspace, plan_hash: str) -> bytes | None:
    """The bytes that have this hash, if they were kept, are whole and no more than a plan has."""
    try:
        return b"".join(ground.blobs.chunks(plan_hash, MAX_BYTES))
    except errors.SystemError:
        return None
