"""The bytes of a plan as they were approved, kept beside what was replaced, so that a later change can be shown."""

from contextlib import closing

from kaiza.domain import errors
from kaiza.domain.plans.plan import MAX_BYTES, Plan
from kaiza.store.disk.fsync_batch import FsyncBatch
from kaiza.store.workspace import Workspace


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
