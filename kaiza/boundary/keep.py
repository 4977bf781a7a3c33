"""What a tool adds that is Kaiza's own is put in its place by nobody else; it goes again if it cannot be recorded."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from kaiza.store.ground import Ground
from kaiza.tools.view import Draft, Report

TakeBack = Callable[[], Sequence[str]]


def keep(ground: Ground | None, proposals: Sequence[Any]) -> TakeBack | None:
    """Put the proposed drafts there, all or none; call what comes back to take them away again."""
    own = [one for one in proposals if isinstance(one, Draft | Report)]
    if not own or ground is None:
        return None
    with ExitStack() as so_far:
        for one in own:
            if isinstance(one, Draft):
                ground.plans.create(one.plan_id, one.content)
                so_far.callback(partial(ground.plans.take_back, one.plan_id, one.content))
            else:
                ground.reports.create(one.name, one.content)
                so_far.callback(partial(ground.reports.take_back, one.name))
        undo = so_far.pop_all()
    return partial(_close, undo)


def _close(undo: ExitStack) -> Sequence[str]:
    undo.close()
    return ()
