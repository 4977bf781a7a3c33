"""The tools that are offered over the wire."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType, ModuleType
from typing import Any

from kaiza.domain.scope import Wanted
from kaiza.tools import (
    apply_patch,
    begin_session,
    delete_file,
    edit_file,
    end_session,
    file_info,
    find_files,
    lint_plan,
    list_directory,
    list_plans,
    move_file,
    read_audit_log,
    read_file,
    read_files,
    read_location,
    read_plan,
    run_checks,
    save_plan,
    search_text,
    server_info,
    session_status,
    undo_changes,
    verify_audit_log,
    write_file,
    write_report,
)
from kaiza.tools.view import Answer


def _nothing(_request: object, _view: object) -> Sequence[Wanted]:
    return ()


@dataclass(frozen=True, slots=True)
class Tool:
    """One verb: how its arguments become a request, and what it answers."""

    name: str
    parse: Callable[[Mapping[str, Any], str | None], Any]
    run: Callable[[Any, Any], Answer]
    wanted: Callable[[Any, Any], Sequence[Wanted]] = _nothing
    """What a change is to do to which file, as far as can be said before it is worked out."""

    @classmethod
    def of(cls, module: ModuleType) -> "Tool":
        """The verb a module holds."""
        return cls(module.NAME, module.parse, module.run, getattr(module, "wanted", _nothing))


AGENT: Mapping[str, Tool] = MappingProxyType(
    {
        module.NAME: Tool.of(module)
        for module in (
            begin_session,
            session_status,
            end_session,
            read_file,
            read_files,
            list_directory,
            find_files,
            search_text,
            read_location,
            file_info,
            list_plans,
            read_plan,
            lint_plan,
            save_plan,
            write_file,
            edit_file,
            apply_patch,
            move_file,
            delete_file,
            undo_changes,
            run_checks,
            write_report,
            read_audit_log,
            verify_audit_log,
            server_info,
        )
    }
)
