"""Workspaces and their logs, as several tests set them up and read them."""

import json
import os
from pathlib import Path

from kaiza.domain.caps import Caps
from kaiza.store.disk import state_dir
from kaiza.store.documents.plan_files import PlanFiles
from kaiza.store.files.confined_root import ConfinedRoot
from kaiza.store.settings_adoption import adopt_settings
from kaiza.store.trust import binding
from kaiza.store.trust.seen_plans import SeenPlans
from kaiza.store.workspace import Workspace


def make_ready(root: Path) -> Path:
    """Create the directories that `kaiza init` would."""
    for name in ("plans", "audit"):
        (root / name).mkdir(parents=True, exist_ok=True)
    return root


def bind(root: Path, adopted: int = 0) -> Path:
    """Make a workspace one that belongs to this machine, as a person's adoption would."""
    binding.adopt(str(Path(root).resolve()), state_dir.path_of(str(root), create=True), adopted)
    return root


def write_adopted_settings(root: Path, text: str) -> None:
    """Write kaiza.toml as a person who then runs `kaiza adopt`."""
    (root / "kaiza.toml").write_text(text)
    workspace = Workspace(str(root), Caps())
    adopt_settings(workspace)
    workspace.close("2026-11-18T09:00:00.000Z")


def see_plans(root):
    """Look at the plans as every process does that reads them: drafts are noted."""
    real = os.path.realpath(root)
    sights = SeenPlans(real, state_dir.path_of(real))
    with ConfinedRoot(real) as files:
        PlanFiles(files, sights.notice).read_changed()
    sights.flush()


def put_plan(path, text):
    """Write a plan; an approved one as a person approves it: a draft, which is seen, then one word edited."""
    path = Path(path)
    for each in (text.replace("status: APPROVED", "status: DRAFT"), text):
        path.write_text(each)
        if "status: APPROVED" in text:
            see_plans(path.parent.parent)


def records(root) -> list[dict]:
    """Every record of the log."""
    log = Path(root) / "audit" / "audit-log.jsonl"
    return [json.loads(line) for line in log.read_bytes().splitlines()] if log.exists() else []
