"""Close a session and say what it changed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.domain.audit.inverse_changes import net_changes
from kaiza.tools.session.session_status import session_counts
from kaiza.tools.view import Answer, ChangesView

NAME = "end_session"


@dataclass(frozen=True, slots=True)
class Request:
    """Nothing is asked for but the end."""


def parse(_arguments: Mapping[str, Any], _root: str | None) -> Request:
    """Take the arguments as the schema left them."""
    return Request()


def run(_request: Request, view: ChangesView) -> Answer:
    """Sum the session up; it is over once this call's record is written."""
    told = session_counts(view.session)
    summary = f"Session ended. Calls: {told['calls']}, changes: {told['changes']}, refusals: {told['refusals']}."
    return Answer(
        {
            "counts": told,
            "changes": net_changes(change for record in view.session_changes() for change in record["changes"]),
            "summary": summary,
        }
    )
