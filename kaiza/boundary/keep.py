"""What a tool adds that is Kaiza's own is put in its place by nobody else; it goes again if it cannot be recorded."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from kaiza.store.ground import Ground
from kaiza.tools.view import Draft


def keep(ground: Ground | None, proposals: Sequence[Any]) -> Callable[[], None]:
    """Put the proposed drafts there, all or none; call what comes back to take them away again."""
    undo = ExitStack()
    try:
        for draft in proposals:
            if isinstance(draft, Draft) and ground is not None:
                ground.plans.create(draft.plan_id, draft.content)
                undo.callback(partial(ground.plans.take_back, draft.plan_id, draft.content))
    except BaseException:
        undo.close()
        raise
    return undo.close
