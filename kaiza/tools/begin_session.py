"""Open a session: who works, where, and in what state the record is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.domain import paths
from kaiza.tools.view import Answer, View

NAME = "begin_session"


@dataclass(frozen=True, slots=True)
class Request:
    """The role is in the session that the view proposes."""

    role: str


def parse(arguments: Mapping[str, Any], _root: str | None) -> Request:
    """Take the arguments as the schema left them."""
    return Request(arguments["role"])


def run(_request: Request, view: View) -> Answer:
    """Say what has been opened; it is open once this call's record is written."""
    session = view.session
    judged = view.log.catch_up()
    output = {
        "session_id": session.session_id,
        "role": session.role,
        "workspace_root": session.workspace_root,
        "workspace_uri": paths.to_uri(session.workspace_root, paths.ROOT),
        "state": "locked" if session.role in view.facts.locks else "active",
        "expires_at": session.expires_at(view.caps.session_idle_hours),
        "audit": judged,
    }
    summary = f"{session.role} session open until {output['expires_at']}; the record is {judged['verdict']}."
    return Answer({**output, "summary": summary})
