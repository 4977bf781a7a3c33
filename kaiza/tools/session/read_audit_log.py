"""Tool `read_audit_log`: return the records of the audit log in pages, filtered by tool, outcome or path."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.domain.audit import record
from kaiza.domain.audit.record import Record
from kaiza.domain.paging import cursor
from kaiza.domain.paging.response_size import AnswerBudget, PageBuilder
from kaiza.tools.view import Answer, WorkspaceView

NAME = "read_audit_log"
_LONG_MEMBERS = frozenset({"arguments", "changes", "detail", "cause"})


@dataclass(frozen=True, slots=True)
class Request:
    """The filter, and the sequence number to start at."""

    tool_name: str | None
    outcome: str | None
    path: str | None
    since_seq: int
    page_size: int | None
    arguments: Mapping[str, Any]


def parse(arguments: Mapping[str, Any], _root: str | None) -> Request:
    """Parse the cursor, which moves the start."""
    since = arguments.get("since_seq", 1)
    if "cursor" in arguments:
        (after,) = cursor.decode(arguments["cursor"], NAME, arguments, (int,))
        since = int(after) + 1
    return Request(
        tool_name=arguments.get("tool_name"),
        outcome=arguments.get("outcome"),
        path=arguments.get("path"),
        since_seq=since,
        page_size=arguments.get("pageSize"),
        arguments=arguments,
    )


def run(request: Request, view: WorkspaceView) -> Answer:
    """Return the next page of matching records."""
    is_asked = request.page_size is not None
    budget = AnswerBudget.choose(view.caps, is_asked=is_asked)
    page = PageBuilder(request.page_size or view.caps.default_page_items, budget)
    odd_count, cut = 0, []
    output: dict[str, Any] = {"items": page.items}
    for each in view.read_records(request.since_seq):
        # A log that came with a clone may hold records of any form.
        if not record.has_known_form(each):
            odd_count += 1
        elif _matches(request, each):
            item = each.members if is_asked else _shorten_record(each, budget)
            if not page.add(item, (each.seq,)):
                output["nextCursor"] = cursor.encode(NAME, request.arguments, page.last_key)
                break
            cut += [each.seq] if item is not each.members else []
    more = cursor.NEXT_PAGE if "nextCursor" in output else ""
    diagnostics = [f"Left out {odd_count} records of a form that Kaiza does not write."] if odd_count else []
    diagnostics += [f"Record {seq} is cut. For all of it, pass since_seq {seq} and pageSize 1." for seq in cut]
    return Answer({**output, "summary": f"{len(page.items)} records.{more}"}, diagnostics=diagnostics)


def _shorten_record(each: Record, budget: AnswerBudget) -> dict[str, Any]:
    """The members of the record; of one that is larger than an answer not the longest ones."""
    members = each.members
    shown = dict(members)
    for name in sorted(
        _LONG_MEMBERS & members.keys(), key=lambda name: budget.count_bytes(members[name]), reverse=True
    ):
        if budget.count_bytes(shown) <= budget.max_bytes:
            break
        del shown[name]
    return members if len(shown) == len(members) else shown


def _matches(request: Request, each: Record) -> bool:
    """Whether a record passes the filter. A path may be in its arguments or in its changes."""
    if request.tool_name not in (None, each.tool_name) or request.outcome not in (None, each.outcome):
        return False
    if request.path is None:
        return True
    paths = [each.arguments.get(name) for name in ("path", "source", "destination")]
    listed = each.arguments.get("paths")  # redacted to an object if too long
    paths += listed if isinstance(listed, list) else []
    paths += [change[name] for change in each.changes for name in ("path", "source")]
    return request.path in paths
