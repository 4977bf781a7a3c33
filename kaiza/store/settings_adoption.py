"""Adopts settings of a workspace: stricter ones when a session begins, all of `kaiza.toml` when a person says so."""

from dataclasses import replace

from kaiza.domain.audit.record import new_body
from kaiza.store.config.settings import Values
from kaiza.store.trust.adopted_settings import find_edits, save_adopted
from kaiza.store.workspace import Workspace


def adopt_stricter_edits(workspace: Workspace, now: str) -> Values:
    """Adopt and record the stricter values of a `kaiza.toml` that was edited here; the adopted values."""
    if not workspace.is_recording() or workspace.damage() is not None:
        return {}
    edits = find_edits(workspace.root, workspace.settings_layers)
    if edits:
        workspace.begin_recording()
        _save(workspace, {**workspace.settings_layers.adopted, **edits})
        detail = {"result": "settings_adopted", "settings": dict(edits)}
        body = new_body("recovery", timestamp=now, workspace_root=workspace.root, detail=detail)
        workspace.log.append(lambda: body, durable=True)
    return edits


def adopt_settings(workspace: Workspace) -> None:
    """Adopt `kaiza.toml` as it was read when the workspace was opened. The caller records the person's decision."""
    _save(workspace, workspace.settings_layers.file_values)


def _save(workspace: Workspace, values: Values) -> None:
    workspace.begin_recording()  # first, because it retires the settings of an earlier workspace at the path
    save_adopted(workspace.root, values)
    workspace.settings_layers = replace(workspace.settings_layers, adopted=values)
