"""Workspaces and their logs, as several tests set them up and read them."""

import json
from pathlib import Path


def make_ready(root: Path) -> Path:
    """Create the directories that `kaiza init` would."""
    for name in ("plans", "audit"):
        (root / name).mkdir(parents=True, exist_ok=True)
    return root


def records(root) -> list[dict]:
    """Every record of the log."""
    log = Path(root) / "audit" / "audit-log.jsonl"
    return [json.loads(line) for line in log.read_bytes().splitlines()] if log.exists() else []
