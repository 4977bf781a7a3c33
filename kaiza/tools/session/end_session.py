"""Tool `end_session`: close the session and list its net changes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.domain.audit.inverse_changes import net_changes
from kaiza.domain.paging.list_cut import cut_lists
from kaiza.tools.session.session_status import session_counts
from kaiza.tools.view import Answer, ChangesView

NAME = "end_session"


@dataclass(frozen=True, slots=True)
class Request:
    """A request without arguments."""


def parse(_arguments: Mapping[str, Any], _root: str | None) -> Request:
    """Return the request; the tool has no arguments of its own."""
    return Request()


def run(_request: Request, view: ChangesView) -> Answer:
    """Summarize the session. It is closed once the record of this call is written."""
    counts = session_counts(view.session)
    summary = f"Session ended. Calls: {counts['calls']}, changes: {counts['changes']}, refusals: {counts['refusals']}."
    changes = net_changes(change for record in view.session_changes() for change in record["changes"])
    output = {"counts": counts, "changes": changes, "summary": summary}
    return Answer(cut_lists(output, view.caps, "Not all changes are listed: kaiza session show has them."))
