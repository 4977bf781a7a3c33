"""What a tool adds that is Kaiza's own is put in its place by nobody else; it goes again if it cannot be recorded."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from kaiza.store.workspace import Workspace
from kaiza.tools.view import PlanDraft, ReportDraft

RollBack = Callable[[], Sequence[str]]


def write_proposed(ground: Workspace | None, proposals: Sequence[Any]) -> RollBack | None:
    """Put the proposed drafts there, all or none; call what comes back to take them away again."""
    own = [one for one in proposals if isinstance(one, PlanDraft | ReportDraft)]
    if not own or ground is None:
        return None
    with ExitStack() as so_far:
        for one in own:
            if isinstance(one, PlanDraft):
                ground.plans.create(one.plan_id, one.content)
                so_far.callback(partial(ground.plans.remove_created, one.plan_id, one.content))
            else:
                ground.reports.create(one.name, one.content)
                so_far.callback(partial(ground.reports.remove_created, one.name))
        undo = so_far.pop_all()
    return partial(_run_callbacks, undo)


def _run_callbacks(undo: ExitStack) -> Sequence[str]:
    undo.close()
    return ()
