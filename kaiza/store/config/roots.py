"""Workspace roots: resolve those that a server is started for, and select one for a session."""

import os
from collections.abc import Sequence
from pathlib import Path

from kaiza.domain import errors
from kaiza.store.disk import state_dir


def resolve_roots(named: Sequence[str], environment: dict[str, str]) -> tuple[str, ...]:
    """Real paths of the roots; BOOTSTRAP_FAILURE if one is not a directory or lies inside another."""
    requested = list(named) or [environment.get("CLAUDE_PROJECT_DIR") or "."]
    roots = tuple(dict.fromkeys(os.path.realpath(root) for root in requested))
    for number, root in enumerate(roots):
        if not Path(root).is_dir():
            raise _startup_error("A workspace is not a directory. Name an existing one with --workspace.", number)
    for number, root in enumerate(roots):
        # Nested roots would give one file two logs, and two sets of plans that allow its change.
        if any(root != other and _is_parent_of(other, root) for other in roots):
            raise _startup_error("One workspace is inside another. Name only one of the two.", number)
    return roots


def require_state_outside(roots: Sequence[str]) -> None:
    """BOOTSTRAP_FAILURE if a state directory is inside a workspace, where an agent could reach it."""
    for number, root in enumerate(roots):
        if any(has_state_inside(other, of=root) for other in roots):
            raise _startup_error(state_inside_message(roots), number)


def has_state_inside(root: str, *, of: str) -> bool:
    """Whether the state directory of the workspace `of` is `root` or below it."""
    path = os.path.realpath(state_dir.path_of(of))
    return path == root or _is_parent_of(root, path)


def state_inside_message(roots: Sequence[str]) -> str:
    """Error message for a state directory inside a workspace, with the line that moves it out."""
    problem = "Kaiza's state directory is inside a workspace, where an agent could change it."
    for path, line in state_dir.alternative_locations():
        if not any(path == root or _is_parent_of(root, path) for root in roots):
            return f"{problem} Move it and run kaiza init again to update the clients: export XDG_STATE_HOME={line}"
    return f"{problem} Name a narrower workspace."


def is_initialized(root: str) -> bool:
    """Whether `kaiza init` has run in this directory."""
    return all((Path(root) / name).is_dir() for name in ("plans", "audit"))


def select_root(roots: Sequence[str], requested: str | None) -> str:
    """The root for a session; SESSION_INITIALIZATION_FAILED if `requested` is missing and needed, or not served."""
    if requested is None and len(roots) == 1:
        return roots[0]
    if requested is None:
        raise _session_error("ROOT_NOT_NAMED", "This server has several workspaces. Name one as workspace_root.")
    is_path = requested.startswith("/") and "\0" not in requested
    real = os.path.realpath(requested) if is_path else ""
    if real not in roots:
        raise _session_error(
            "ROOT_NOT_SERVED", "This server does not serve that workspace. Leave workspace_root out, or name its root."
        )
    return real


def find_nearest(start: str) -> str | None:
    """The closest initialized directory: `start` or one of its parents."""
    directory = Path(os.path.realpath(start))
    return next((str(path) for path in (directory, *directory.parents) if is_initialized(str(path))), None)


def _is_parent_of(outer: str, inner: str) -> bool:
    return inner.startswith(outer.rstrip("/") + "/")


def _startup_error(sentence: str, number: int) -> errors.SystemError:
    return errors.SystemError.startup_failure(
        "BOOTSTRAP_FAILURE", human_message=sentence, cause={"workspace_number": number + 1}
    )


def _session_error(invariant_id: str, sentence: str) -> errors.SystemError:
    return errors.SystemError.invariant_violation(
        invariant_id, error_code="SESSION_INITIALIZATION_FAILED", human_message=sentence
    )
