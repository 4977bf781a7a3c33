"""Write down what happened, for the people who decide; a locked role may change again after it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.domain import errors
from kaiza.domain.audit.projection import day_before
from kaiza.domain.paths import confusables
from kaiza.tools.view import Answer, ReportDraft, ReportView

NAME = "write_report"
_CAP_MESSAGES = {
    "reports": "No more reports may be written today. Tell a person what happened, or wait.",
    "report_bytes": "The report is too long. Shorten it, and name files instead of quoting them.",
}


@dataclass(frozen=True, slots=True)
class Request:
    """A title and its Markdown."""

    title: str
    content: str


def parse(arguments: Mapping[str, Any], _root: str | None) -> Request:
    """Take the arguments as the schema left them."""
    return Request(arguments["title"], arguments["content"])


def run(request: Request, view: ReportView) -> Answer:
    """Propose the report under a name of Kaiza's own; say whether the role is free again."""
    _require_within_cap("reports", view.audit_state.count_reports_since(day_before(view.now)) + 1, view.caps.reports)
    role = view.session.role
    locked = role in view.audit_state.locks
    unlocks = locked and view.can_release
    name = f"{view.now[:19].replace(':', '-')}-{role.lower()}-{view.session.session_id[:8]}-{view.request_id[:8]}.md"
    text = f"# {' '.join(request.title.split())}\n\n- role: {role}\n- session: {view.session.session_id}\n"
    text += f"- written: {view.now}\n\n{request.content.rstrip()}\n"
    state = "locked" if locked and not unlocks else "active"
    told = (
        "Changes are open again." if unlocks else "Only a person can unlock now." if locked else "Nothing was locked."
    )
    text = confusables.spell_out_controls(text)
    output = {"path": f"docs/reports/{name}", "state": state, "summary": f"Report written. {told}"}
    content = text.encode("utf-8", "backslashreplace")
    _require_within_cap("report_bytes", len(content), view.caps.report_bytes)
    return Answer(output, (ReportDraft(name, content),), {"unlocked": unlocks})


def _require_within_cap(cap: str, asked: int, limit: int) -> None:
    """Refuse what passes a cap on reports, which neither a plan nor a freeze or a lock holds back."""
    if asked > limit:
        raise errors.SystemError.tool_failure(
            "CAP_EXCEEDED", human_message=_CAP_MESSAGES[cap], cause={"cap": cap, "limit": limit}
        )
