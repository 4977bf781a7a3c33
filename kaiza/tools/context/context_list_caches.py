"""Tool `context_list_caches`: the context caches of the workspace."""

from dataclasses import dataclass

from kaiza.domain.context import arguments as context_arguments
from kaiza.tools.view import Answer, CachesView


@dataclass(frozen=True, slots=True)
class Request:
    """A request without arguments."""


def parse(arguments: object, _root: str | None) -> Request:
    """Refuse any arguments."""
    context_arguments.require_known(arguments, ())
    return Request()


def run(_request: Request, view: CachesView) -> Answer:
    """List the caches, sorted by name."""
    names = view.list_caches()
    return Answer({"caches": [{"path": name, "has_manifest": view.has_manifest(name)} for name in names]})
