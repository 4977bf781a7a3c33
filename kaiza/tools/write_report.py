"""Write down what happened, for the people who decide; a locked role may change again after it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.domain import lookalike
from kaiza.tools.view import Answer, Report, View

NAME = "write_report"


@dataclass(frozen=True, slots=True)
class Request:
    """A title and its Markdown."""

    title: str
    content: str


def parse(arguments: Mapping[str, Any], _root: str | None) -> Request:
    """Take the arguments as the schema left them."""
    return Request(arguments["title"], arguments["content"])


def run(request: Request, view: View) -> Answer:
    """Propose the report under a name of Kaiza's own; say whether the role is free again."""
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
    return Answer(output, (Report(name, text.encode("utf-8", "backslashreplace")),), {"unlocked": unlocks})
