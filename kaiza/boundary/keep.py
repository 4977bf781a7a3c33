"""What a tool adds that is Kaiza's own is put in its place by nobody else; it goes again if it cannot be recorded."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from kaiza.store.ground import Ground
from kaiza.tools.view import Draft

TakeBack = Callable[[], Sequence[str]]


def keep(ground: Ground | None, proposals: Sequence[Any]) -> TakeBack | None:
    """Put the proposed drafts there, all or none; call what comes back to take them away again."""
    drafts = [one for one in proposals if isinstance(one, Draft)]
    if not drafts or ground is None:
        return None
    with ExitStack() as so_far:
        for draft in drafts:
            ground.plans.create(draft.plan_id, draft.content)
            so_far.callback(partial(ground.plans.take_back, draft.plan_id, draft.content))
        undo = so_far.pop_all()
    return partial(_close, undo)


def _close(undo: ExitStack) -> Sequence[str]:
    undo.close()
    return ()
