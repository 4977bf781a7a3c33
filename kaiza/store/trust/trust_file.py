"""What a person trusts for one workspace: `trust.json` in its state directory, written only by `kaiza trust`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kaiza.store.disk import state_dir

NAME = "trust.json"


@dataclass(frozen=True, slots=True)
class WorkspaceTrust:
    """Trusted refs by their full names, and the project's name in signatures."""

    merged_refs: tuple[str, ...] = ()
    project: str | None = None
    problem: str | None = None
    """Why the file cannot be read; it then gives no authority."""


def read_trust(state_path: Path) -> WorkspaceTrust:
    """What is trusted for the workspace; nothing if there is no file or it is damaged."""
    path = state_path / NAME
    try:
        return _parse(json.loads(path.read_bytes()))
    except FileNotFoundError:
        return WorkspaceTrust()
    except (OSError, ValueError, TypeError, KeyError):
        return WorkspaceTrust(problem=f"{path} cannot be read; delete it and run kaiza trust again")


def save_trust(root: str, trust: WorkspaceTrust) -> None:
    """Replace the file; durable when this returns."""
    state_path = state_dir.path_of(root, create=True)
    document = {"merged": [{"ref": ref} for ref in trust.merged_refs], "project": trust.project}
    state_dir.replace_file(state_path / NAME, json.dumps(document).encode())
    state_dir.sync_directory(state_path)


def _parse(document: dict[str, Any]) -> WorkspaceTrust:
    refs, project = tuple(entry["ref"] for entry in document["merged"]), document["project"]
    if not all(isinstance(ref, str) for ref in refs) or not isinstance(project, str | None):
        raise TypeError
    return WorkspaceTrust(refs, project)
