"""Workspace roots: resolve those that a server is started for, and select one for a session."""

import os
from collections.abc import Sequence
from pathlib import Path

from kaiza.domain import errors
from kaiza.store.config import trusted_config
from kaiza.store.disk import state_dir

NOT_UTF8 = "The path of the workspace is not UTF-8, so no client could name it. Rename the directory."


def resolve_roots(named: Sequence[str], environment: dict[str, str]) -> tuple[str, ...]:
    """Real paths of the roots; BOOTSTRAP_FAILURE if one is not a directory or lies inside another."""
    requested = list(named) or [environment.get("CLAUDE_PROJECT_DIR") or "."]
    roots = tuple(dict.fromkeys(os.path.realpath(root) for root in requested))
    for number, root in enumerate(roots):
        if not Path(root).is_dir():
            raise _startup_error("A workspace is not a directory. Name an existing one with --workspace.", number)
        if not is_utf8(root):
            raise _startup_error(NOT_UTF8, number)
    for number, root in enumerate(roots):
        # Nested roots would give one file two logs, and two sets of plans that allow its change.
        if any(root != other and _is_parent_of(other, root) for other in roots):
            raise _startup_error("One workspace is inside another. Name only one of the two.", number)
    return roots


def is_utf8(path: str) -> bool:
    """Whether a path can be recorded and sent as it is."""
    return not any("\ud800" <= char <= "\udfff" for char in path)


def require_own_directories_outside(roots: Sequence[str]) -> None:
    """BOOTSTRAP_FAILURE if a state or configuration directory is inside a workspace, where an agent could reach it."""
    for number, root in enumerate(roots):
        if has_configuration_inside(root) or any(has_state_inside(other, of=root) for other in roots):
            raise _startup_error(explain_inside(roots), number)


def has_state_inside(root: str, *, of: str) -> bool:
    """Whether the state directory of the workspace `of` is `root` or below it."""
    return _is_inside(state_dir.path_of(of), root)


def has_configuration_inside(root: str) -> bool:
    """Whether a directory of configuration, existing or not, is `root` or below it."""
    return _is_inside(trusted_config.MACHINE_DIRECTORY, root) or _is_inside(trusted_config.user_directory(), root)


def explain_inside(roots: Sequence[str]) -> str:
    """Error message for Kaiza's directories inside a workspace, with the line that moves them out."""
    moved = {}
    if any(has_state_inside(root, of=other) for root in roots for other in roots):
        moved["state"] = _find_place_outside(roots, ".local/state")
    if any(map(has_configuration_inside, roots)):
        moved["configuration"] = _find_place_outside(roots, ".config")
    problem = f"Kaiza's {' and '.join(moved)} directory is inside a workspace, where an agent could change it."
    if None in moved.values() or any(_is_inside(trusted_config.MACHINE_DIRECTORY, root) for root in roots):
        return f"{problem} Name a narrower workspace."
    variables = {"state": "XDG_STATE_HOME", "configuration": "XDG_CONFIG_HOME"}
    line = " ".join(f"{variables[kind]}={place}" for kind, place in moved.items())
    return f"{problem} Move it and run kaiza init again to update the clients: export {line}"


def _find_place_outside(roots: Sequence[str], usual: str) -> str | None:
    """A directory outside of the workspaces, as a shell spells it."""
    places = state_dir.alternative_locations(usual)
    return next((line for path, line in places if not any(_is_inside(path, root) for root in roots)), None)


def is_initialized(root: str) -> bool:
    """Whether `kaiza init` has run in this directory."""
    return all((Path(root) / name).is_dir() for name in ("plans", "audit"))


def has_plans(root: str) -> bool:
    """Whether a directory is meant to be a workspace: `audit/` may be missing still."""
    return (Path(root) / "plans").is_dir()


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


def _is_inside(path: str | Path, root: str) -> bool:
    real = os.path.realpath(path)
    return real == root or _is_parent_of(root, real)


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
