"""What several tests set up or look at."""

import json
from pathlib import Path


def make_ready(root: Path) -> Path:
    for name in ("plans", "audit"):
        (root / name).mkdir(parents=True, exist_ok=True)
    return root


def records(root) -> list[dict]:
    log = Path(root) / "audit" / "audit-log.jsonl"
    return [json.loads(line) for line in log.read_bytes().splitlines()] if log.exists() else []
