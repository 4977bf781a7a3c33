"""The tools that are offered over the wire. A tool's module is imported by the first call of the tool."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kaiza.tools.view import Answer

if TYPE_CHECKING:
    from kaiza.domain.scope import RequestedOperation


def _parse(module: str, arguments: Mapping[str, Any], root: str | None) -> Any:
    return import_module(module).parse(arguments, root)


def _run(module: str, request: object, view: object) -> Any:
    return import_module(module).run(request, view)


def _wanted(module: str, request: object, view: object) -> Any:
    return getattr(import_module(module), "requested_operations", _no_operations)(request, view)


def _no_operations(_request: object, _view: object) -> Sequence["RequestedOperation"]:
    return ()


@dataclass(frozen=True, slots=True)
class Tool:
    """One verb: how its arguments become a request, and what it answers."""

    name: str
    parse: Callable[[Mapping[str, Any], str | None], Any]
    run: Callable[[Any, Any], Answer]
    requested_operations: "Callable[[Any, Any], Sequence[RequestedOperation]]" = _no_operations
    """What a change is to do to which file, as far as can be said before it is worked out."""

    @classmethod
    def from_module(cls, module: str) -> "Tool":
        """The verb that a module holds, under the module's own name."""
        name = module.rpartition(".")[2]
        return cls(name, partial(_parse, module), partial(_run, module), partial(_wanted, module))


AGENT_TOOLS: Mapping[str, Tool] = MappingProxyType(
    {
        tool.name: tool
        for tool in map(
            Tool.from_module,
            (
                "kaiza.tools.begin_session",
                "kaiza.tools.session_status",
                "kaiza.tools.end_session",
                "kaiza.tools.read_file",
                "kaiza.tools.read_files",
                "kaiza.tools.list_directory",
                "kaiza.tools.find_files",
                "kaiza.tools.search_text",
                "kaiza.tools.read_location",
                "kaiza.tools.file_info",
                "kaiza.tools.list_plans",
                "kaiza.tools.read_plan",
                "kaiza.tools.lint_plan",
                "kaiza.tools.save_plan",
                "kaiza.tools.write_file",
                "kaiza.tools.edit_file",
                "kaiza.tools.apply_patch",
                "kaiza.tools.move_file",
                "kaiza.tools.delete_file",
                "kaiza.tools.undo_changes",
                "kaiza.tools.run_checks",
                "kaiza.tools.write_report",
                "kaiza.tools.read_audit_log",
                "kaiza.tools.verify_audit_log",
                "kaiza.tools.server_info",
            ),
        )
    }
)
