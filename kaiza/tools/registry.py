"""Table of the tools that agents are offered. A tool's module is imported when it is first called."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kaiza.tools.view import Answer

if TYPE_CHECKING:
    from kaiza.domain.plans.scope import RequestedOperation


@dataclass(frozen=True, slots=True)
class NoArguments:
    """Request of a tool whose module has no `parse`: the boundary uses its arguments, if there are any."""


def _request_nothing(_request: object, _view: object) -> Sequence["RequestedOperation"]:
    return ()


_DEFAULTS: Mapping[str, Callable[[Any, Any], Any]] = {
    "parse": lambda _arguments, _root: NoArguments(),
    "requested_operations": _request_nothing,
}


# A tool holds the name of its module and not its functions: `tools/list` and the first answers import none of them.
def _call(module: str, function: str, *given: object) -> Any:
    found = getattr(import_module(module), function, None) or _DEFAULTS[function]
    return found(*given)


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: `parse` makes a request of its arguments, `run` answers the request."""

    name: str
    parse: Callable[[Any, str | None], Any]
    run: Callable[[Any, Any], Answer]
    requested_operations: "Callable[[Any, Any], Sequence[RequestedOperation]]" = _request_nothing
    """The operations that a request would do to which files, as far as known before it runs. Judged by the plan."""

    @classmethod
    def from_module(cls, module: str) -> "Tool":
        """The tool in a module, which has the module's name."""
        functions = (partial(_call, module, name) for name in ("parse", "run", "requested_operations"))
        return cls(module.rpartition(".")[2], *functions)


_MODULES = (
    "session.begin_session",
    "session.session_status",
    "session.end_session",
    "reading.read_file",
    "reading.read_files",
    "reading.list_directory",
    "reading.find_files",
    "reading.search_text",
    "reading.read_location",
    "reading.file_info",
    "project.project_info",
    "project.project_assets_summary",
    "project.project_references_missing",
    "planning.list_plans",
    "planning.read_plan",
    "planning.lint_plan",
    "planning.save_plan",
    "changing.write_file",
    "changing.edit_file",
    "changing.apply_patch",
    "changing.move_file",
    "changing.delete_file",
    "changing.undo_changes",
    "changing.run_checks",
    "session.write_report",
    "session.read_audit_log",
    "session.verify_audit_log",
    "session.server_info",
    "context.context_resolve",
    "context.context_list_caches",
    "context.context_inspect_cache",
)
AGENT_TOOLS: Mapping[str, Tool] = MappingProxyType(
    {tool.name: tool for tool in (Tool.from_module(f"kaiza.tools.{module}") for module in _MODULES)}
)
