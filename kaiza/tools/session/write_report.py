"""Tool `write_report`: write a report for people; the first ones of a day unlock a locked role."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from kaiza.domain import errors
from kaiza.domain.audit.projection import day_before
from kaiza.domain.paths import confusables
from kaiza.domain.roles import describe_role
from kaiza.tools.view import Answer, ReportDraft, WorkspaceView

_CAP_MESSAGES = {
    "reports": "The limit of reports for today is reached. Tell a person what happened, or wait.",
    "report_bytes": "The report is too long. Shorten it, and name files instead of quoting them.",
}


@dataclass(frozen=True, slots=True)
class Request:
    """The title and the Markdown text."""

    title: str
    content: str


def parse(arguments: Mapping[str, Any], _root: str | None) -> Request:
    """Return the request; the schema has checked the arguments."""
    return Request(arguments["title"], arguments["content"])


def run(request: Request, view: WorkspaceView) -> Answer:
    """Propose the report file, and say whether the role is unlocked by it."""
    _require_within_cap("reports", view.audit_state.count_reports_since(day_before(view.now)) + 1, view.caps.reports)
    role, session_id = view.session.role, view.session.session_id
    locked = role in view.audit_state.locks
    unlocks = locked and view.can_release
    # The name is made of time, role and ids only: a title could carry a path or control characters.
    name = f"{view.now[:19].replace(':', '-')}-{role.lower()}-{session_id[:8]}-{view.request_id[:8]}.md"
    text = f"# {' '.join(request.title.split())}\n\n- role: {describe_role(role)}\n"
    text += f"- session: {session_id}\n- written: {view.now}\n\n{request.content.rstrip()}\n"
    # People read reports in a terminal.
    content = confusables.spell_out_controls(text).encode("utf-8", "backslashreplace")
    _require_within_cap("report_bytes", len(content), view.caps.report_bytes)
    effect = (
        "The role is unlocked." if unlocks else "Only a person can unlock now." if locked else "No role was locked."
    )
    path = f"docs/reports/{name}"
    output = {
        "path": path,
        "state": "locked" if locked and not unlocks else "active",
        "unlocked": unlocks,
        "summary": f"Report written. {effect}",
    }
    detail = {"unlocked": unlocks, "path": path, "sha256": sha256(content).hexdigest()}
    return Answer(output, (ReportDraft(name, content),), detail)


def _require_within_cap(cap: str, amount: int, limit: int) -> None:
    """Bound reports: they are the one write that neither a plan nor a freeze or a lock stops."""
    if amount > limit:
        raise errors.SystemError.tool_failure(
            "CAP_EXCEEDED", human_message=_CAP_MESSAGES[cap], cause={"cap": cap, "limit": limit}
        )
