"""Tool `server_info`: version, protocols, platform and limits of the server. It needs no session."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.tools.view import Answer, ServerView

NAME = "server_info"


@dataclass(frozen=True, slots=True)
class Request:
    """A request without arguments."""


def parse(_arguments: Mapping[str, Any], _root: str | None) -> Request:
    """Return the request; the tool has no arguments of its own."""
    return Request()


def run(_request: Request, view: ServerView) -> Answer:
    """Return the facts that the application has collected at its start."""
    info = dict(view.server_info)
    return Answer({**info, "summary": f"Kaiza {info['server_version']}, {len(info['categories'])} tool categories."})
