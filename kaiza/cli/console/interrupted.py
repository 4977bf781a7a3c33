"""Naming of changes that a crash interrupted, which no record of an outcome tells of."""

from kaiza.cli.console import output
from kaiza.domain.audit.inverse_changes import touched_paths
from kaiza.queries.audit_log import find_abandoned
from kaiza.queries.workspaces import Workspace
from kaiza.render.terminal import escape, format_count

_MOST = 5


def name_interrupted(workspace: Workspace) -> None:
    """Say on standard error which changes were interrupted and are not recovered yet."""
    abandoned = list(find_abandoned(workspace).values())
    for intent in abandoned[:_MOST]:
        tool, count = escape(str(intent.tool_name or "kaiza undo")), len(list(touched_paths(intent)))
        session = intent.session_id
        command = f"`kaiza undo --session {escape(session)}`" if isinstance(session, str) else "the next undo"
        output.print_error(
            f"A change was interrupted ({tool}): {format_count(count, 'file')} may be changed. "
            f"The next call, or {command}, settles it."
        )
    if len(abandoned) > _MOST:
        output.print_error(f"… and {len(abandoned) - _MOST} more.")
