"""Write down what happened, for the people who decide; a locked role may change again after it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.domain import errors, lookalike
from kaiza.domain.session import a_day_before
from kaiza.tools.view import Answer, Report, ReportView

NAME = "write_report"
_TOO_MUCH = {
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
    _within("reports", view.facts.reports_since(a_day_before(view.now)) + 1, view.caps.reports)
    role = view.session.role
    locked = role in view.facts.locks
    unlocks = locked and view.may_release
    name = f"{view.now[:19].replace(':', '-')}-{role.lower()}-{view.session.session_id[:8]}-{view.request_id[:8]}.md"
    text = f"# {' '.join(request.title.split())}\n\n- role: {role}\n- session: {view.session.session_id}\n"
    text += f"- written: {view.now}\n\n{request.content.rstrip()}\n"
    state = "locked" if locked and not unlocks else "active"
    told = (
        "Changes are open again." if unlocks else "Only a person can unlock now." if locked else "Nothing was locked."
    )
    text = lookalike.name_controls(text)
    output = {"path": f"docs/reports/{name}", "state": state, "summary": f"Report written. {told}"}
    content = text.encode("utf-8", "backslashreplace")
    _within("report_bytes", len(content), view.caps.report_bytes)
    return Answer(output, (Report(name, content),), {"unlocked": unlocks})


def _within(cap: str, asked: int, limit: int) -> None:
    """Refuse what passes a cap on reports, which neither a plan nor a freeze or a lock holds back."""
    if asked > limit:
        raise errors.SystemError.tool_failure(
            "CAP_EXCEEDED", human_message=_TOO_MUCH[cap], cause={"cap": cap, "limit": limit}
        )
