"""Which directories the operator put under Kaiza, and which of them a caller means."""

import os
from collections.abc import Sequence
from pathlib import Path

from kaiza.domain import errors
from kaiza.store.disk import state_dir


def resolve_roots(named: Sequence[str], environment: dict[str, str]) -> tuple[str, ...]:
    """The real paths of the roots; BOOTSTRAP_FAILURE where one is no directory or contains another."""
    asked = list(named) or [environment.get("CLAUDE_PROJECT_DIR") or "."]
    real = tuple(dict.fromkeys(os.path.realpath(one) for one in asked))
    for one in real:
        if not Path(one).is_dir():
            raise _startup_error(
                "A workspace is not a directory. Name an existing one with --workspace.", real.index(one)
            )
    for number, one in enumerate(real):
        if any(one != other and _is_parent_of(other, one) for other in real):
            raise _startup_error("One workspace lies inside another. Name only one of the two.", number)
    return real


def require_state_outside(roots: Sequence[str]) -> None:
    """Insist that no agent can reach Kaiza's state; BOOTSTRAP_FAILURE says where to put it instead."""
    for number, one in enumerate(roots):
        if any(has_state_inside(other, of=one) for other in roots):
            raise _startup_error(state_inside_message(roots), number)


def has_state_inside(root: str, *, of: str) -> bool:
    """Whether the state directory of a workspace really is this root, or somewhere below it."""
    place = os.path.realpath(state_dir.path_of(of))
    return place == root or _is_parent_of(root, place)


def state_inside_message(roots: Sequence[str]) -> str:
    """Say what is wrong where a root holds the state directory, with the line that moves it out."""
    wrong = "Kaiza's state directory is inside a workspace, where an agent could change it."
    for place, line in state_dir.alternative_locations():
        if not any(place == root or _is_parent_of(root, place) for root in roots):
            return f"{wrong} Move it, and run kaiza init again so that clients know: export XDG_STATE_HOME={line}"
    return f"{wrong} Name a narrower workspace."


def is_initialized(root: str) -> bool:
    """Whether `kaiza init` has been here."""
    return all((Path(root) / name).is_dir() for name in ("plans", "audit"))


def select_root(roots: Sequence[str], asked: str | None) -> str:
    """The root that a session is for; SESSION_INITIALIZATION_FAILED where it is none of them."""
    if asked is None and len(roots) == 1:
        return roots[0]
    if asked is None:
        raise _session_error("This server has several workspaces. Name one as workspace_root.")
    absolute = asked is not None and asked.startswith("/") and "\0" not in asked
    real = os.path.realpath(asked or "") if absolute else ""
    if real not in roots:
        raise _session_error("This server does not serve that workspace. Leave workspace_root out, or name its root.")
    return real


def find_nearest(start: str) -> str | None:
    """The closest directory upwards that `kaiza init` made ready."""
    here = Path(os.path.realpath(start))
    return next((str(one) for one in (here, *here.parents) if is_initialized(str(one))), None)


def _is_parent_of(outer: str, inner: str) -> bool:
    return inner.startswith(outer.rstrip("/") + "/")


def _startup_error(sentence: str, number: int) -> errors.SystemError:
    return errors.SystemError.startup_failure(
        "BOOTSTRAP_FAILURE", human_message=sentence, cause={"workspace_number": number + 1}
    )


def _session_error(sentence: str) -> errors.SystemError:
    return errors.SystemError.tool_failure("SESSION_INITIALIZATION_FAILED", human_message=sentence)
