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


# A tool holds the name of its module and not its functions: `tools/list` and the first answers import none of them.
def _parse(module: str, arguments: object, root: str | None) -> Any:
    return import_module(module).parse(arguments, root)


def _run(module: str, request: object, view: object) -> Any:
    return import_module(module).run(request, view)


def _requested_operations(module: str, request: object, view: object) -> Any:
    return getattr(import_module(module), "requested_operations", _no_operations)(request, view)


def _no_operations(_request: object, _view: object) -> Sequence["RequestedOperation"]:
    return ()


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: `parse` makes a request of its arguments, `run` answers the request."""

    name: str
    parse: Callable[[Any, str | None], Any]
    run: Callable[[Any, Any], Answer]
    requested_operations: "Callable[[Any, Any], Sequence[RequestedOperation]]" = _no_operations
    """The operations that a request would do to which files, as far as known before it runs. Judged by the plan."""

    @classmethod
    def from_module(cls, module: str) -> "Tool":
        """The tool in a module, which has the module's name."""
        name = module.rpartition(".")[2]
        return cls(name, partial(_parse, module), partial(_run, module), partial(_requested_operations, module))


AGENT_TOOLS: Mapping[str, Tool] = MappingProxyType(
    {
        tool.name: tool
        for tool in map(
            Tool.from_module,
            (
                "kaiza.tools.session.begin_session",
                "kaiza.tools.session.session_status",
                "kaiza.tools.session.end_session",
                "kaiza.tools.reading.read_file",
                "kaiza.tools.reading.read_files",
                "kaiza.tools.reading.list_directory",
                "kaiza.tools.reading.find_files",
                "kaiza.tools.reading.search_text",
                "kaiza.tools.reading.read_location",
                "kaiza.tools.reading.file_info",
                "kaiza.tools.project.project_info",
                "kaiza.tools.project.project_assets_summary",
                "kaiza.tools.project.project_references_missing",
                "kaiza.tools.planning.list_plans",
                "kaiza.tools.planning.read_plan",
                "kaiza.tools.planning.lint_plan",
                "kaiza.tools.planning.save_plan",
                "kaiza.tools.changing.write_file",
                "kaiza.tools.changing.edit_file",
                "kaiza.tools.changing.apply_patch",
                "kaiza.tools.changing.move_file",
                "kaiza.tools.changing.delete_file",
                "kaiza.tools.changing.undo_changes",
                "kaiza.tools.changing.run_checks",
                "kaiza.tools.session.write_report",
                "kaiza.tools.session.read_audit_log",
                "kaiza.tools.session.verify_audit_log",
                "kaiza.tools.session.server_info",
                "kaiza.tools.context.context_resolve",
                "kaiza.tools.context.context_list_caches",
                "kaiza.tools.context.context_inspect_cache",
            ),
        )
    }
)
