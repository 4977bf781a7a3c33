"""Reports of ended sessions, one file each in the state directory. The log's record has the hash of the list."""

import json
import re
from pathlib import Path

from kaiza.domain.manifest.report import OutsideReport
from kaiza.store.disk import small_files

DIRECTORY = "outside"
_MAX_BYTES = 64 << 20
_SESSION_ID = re.compile(r"[0-9a-f-]{36}")


def save_report(state_path: Path, report: OutsideReport) -> None:
    """Save a session's report, durable when this returns, in place of an older one. OSError if that fails."""
    if not _SESSION_ID.fullmatch(report.session_id):
        return
    directory = state_path / DIRECTORY
    directory.mkdir(mode=0o700, exist_ok=True)
    # ASCII: a file name may have bytes that are not UTF-8, which JSON can carry only as escapes.
    content = json.dumps(report.as_json(), separators=(",", ":"))
    small_files.replace(directory / f"{report.session_id}.json", content.encode("ascii"), durable=True)


def load_report(state_path: Path, session_id: str) -> OutsideReport | None:
    """The saved report of a session; None if there is none that can be read."""
    if not _SESSION_ID.fullmatch(session_id):
        return None
    try:
        content = small_files.read(state_path / DIRECTORY / f"{session_id}.json", _MAX_BYTES)
        report = OutsideReport.from_json(json.loads(content))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return report if report.session_id == session_id else None
