"""Say what this server is and what it allows; needs no session."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.tools.view import Answer, ServerView

NAME = "server_info"


@dataclass(frozen=True, slots=True)
class Request:
    """Nothing is asked for."""


def parse(_arguments: Mapping[str, Any], _root: str | None) -> Request:
    """Take the arguments as the schema left them."""
    return Request()


def run(_request: Request, view: ServerView) -> Answer:
    """Tell version, protocols, platform and limits."""
    told = dict(view.server_info)
    return Answer({**told, "summary": f"Kaiza {told['server_version']}, {len(told['categories'])} tool categories."})
