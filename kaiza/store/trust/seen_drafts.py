"""Text of the last draft that was seen of each plan, to show how a plan that arrived approved differs from it.

Only shown to people. What counts is in `sights.json`.
"""

import os
from contextlib import suppress
from pathlib import Path

from kaiza.domain.plans.plan import MAX_BYTES, MAX_SAVED_PLANS, is_plan_id
from kaiza.store.disk import state_dir
from kaiza.store.documents.plan_files import SUFFIX

_DIRECTORY = "drafts"


def save_draft(state_path: Path, plan_id: str, content: bytes) -> None:
    """Keep a draft, in place of an older one. Best effort: at most as many as agents may save."""
    directory = state_path / _DIRECTORY
    with suppress(OSError):
        directory.mkdir(mode=0o700, exist_ok=True)
        path = directory / (plan_id + SUFFIX)
        if path.exists() or len(os.listdir(directory)) < MAX_SAVED_PLANS:  # noqa: PTH208  names, not paths
            temporary = directory / f".{os.urandom(8).hex()}"
            # Not fsynced: the text is only shown, and a damaged one shows as a difference.
            temporary.write_bytes(content)
            temporary.replace(path)


def load_draft(state_path: Path, plan_id: str) -> bytes | None:
    """The draft of a plan that was seen last; None if there is none."""
    if is_plan_id(plan_id):
        with suppress(OSError):
            return state_dir.read_file(state_path / _DIRECTORY / (plan_id + SUFFIX), MAX_BYTES)
    return None
