"""What a person trusts for one workspace: `trust.json` in its state directory, written only by `kaiza trust`.

It holds the workspace's id: another workspace that comes to be at the same path is not trusted.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from kaiza.store.disk import state_dir
from kaiza.store.trust.identity import read_known

NAME = "trust.json"
SIGNERS_NAME = "allowed_signers"


@dataclass(frozen=True, slots=True)
class WorkspaceTrust:
    """Trusted refs by their full names, and the project's name in signatures."""

    merged_refs: tuple[str, ...] = ()
    project: str | None = None
    problem: str | None = None
    """Why the file cannot be read; it then gives no authority."""


def read_trust(state_path: Path) -> WorkspaceTrust:
    """What is trusted for the workspace; nothing if there is no file, it is damaged or another workspace's."""
    path = f"{state_path}/{NAME}"  # on the path of every change, where a Path is slow
    try:
        document = _read_json(path)
        is_own = document is not None and document["workspace"] == _read_workspace_id(state_path)
        return _parse(document) if document is not None and is_own else WorkspaceTrust()
    except (OSError, ValueError, TypeError, KeyError):
        return WorkspaceTrust(problem=f"{path} cannot be read; delete it and run kaiza trust again")


def is_of_another_workspace(state_path: Path) -> bool:
    """Whether a workspace that was at this path before is trusted, and this one is not."""
    try:
        document = _read_json(f"{state_path}/{NAME}")
        return document is not None and document["workspace"] != _read_workspace_id(state_path)
    except (OSError, ValueError, TypeError, KeyError):
        return True


def save_trust(root: str, trust: WorkspaceTrust) -> None:
    """Replace the file; durable when this returns. The workspace has its id: the decision is recorded before."""
    state_path = state_dir.path_of(root, create=True)
    if is_of_another_workspace(state_path):
        (state_path / SIGNERS_NAME).unlink(missing_ok=True)  # that workspace's signers, too
    document = {
        "workspace": _read_workspace_id(state_path),
        "merged": [{"ref": ref} for ref in trust.merged_refs],
        "project": trust.project,
    }
    state_dir.replace_file(state_path / NAME, orjson.dumps(document))
    state_dir.sync_directory(state_path)


def _read_workspace_id(state_path: Path) -> str | None:
    known = read_known(state_path)
    return known.workspace_id if known else None


def _read_json(path: str) -> dict[str, Any] | None:
    """The document in a file; None if there is no file."""
    try:
        document = orjson.loads(state_dir.read_file(path))
    except FileNotFoundError:
        return None
    if not isinstance(document, dict):
        raise TypeError
    return document


def _parse(document: dict[str, Any]) -> WorkspaceTrust:
    refs, project = tuple(entry["ref"] for entry in document["merged"]), document["project"]
    if not all(isinstance(ref, str) for ref in refs) or not isinstance(project, str | None):
        raise TypeError
    return WorkspaceTrust(refs, project)
