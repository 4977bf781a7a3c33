"""Tool `list_plans`: list the plans in pages, sorted by id, with their current status."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.domain.paging import cursor
from kaiza.domain.paging.response_size import AnswerBudget, PageBuilder
from kaiza.domain.plans.parser import StoredPlan
from kaiza.domain.plans.plan import INVALID
from kaiza.tools.view import Answer, WorkspaceView

NAME = "list_plans"
_MAX_WHY = 200


@dataclass(frozen=True, slots=True)
class Request:
    """The status to list, and the id to continue after."""

    status: str | None
    after: str
    page_size: int | None
    cursor_binding: Mapping[str, object]
    """Arguments that a cursor is bound to: it is not valid for another request."""


def parse(arguments: Mapping[str, Any], _root: str | None) -> Request:
    """Parse the cursor, which holds the id to continue after."""
    status, after = arguments.get("status"), ""
    binding = {"status": status}
    if "cursor" in arguments:
        after = str(*cursor.decode(arguments["cursor"], NAME, binding, (str,)))
    return Request(status, after, arguments.get("pageSize"), binding)


def run(request: Request, view: WorkspaceView) -> Answer:
    """Return the next page."""
    budget = AnswerBudget.choose(view.caps, is_asked=request.page_size is not None)
    page = PageBuilder(request.page_size or view.caps.page_items, budget)
    output: dict[str, Any] = {"items": page.items}
    for plan_id in view.plans.listed_ids():
        stored = view.plans.read(plan_id) if plan_id > request.after else None
        item = plan_row(stored) if stored else None
        if item is None or request.status not in (None, item["status"]):
            continue
        if not page.add(item, (plan_id,)):
            output["nextCursor"] = cursor.encode(NAME, request.cursor_binding, page.last_key)
            break
    count = len(page.items)
    more = cursor.NEXT_PAGE if "nextCursor" in output else ""
    summary = f"{count} {'plan' if count == 1 else 'plans'}.{more}"
    return Answer({**output, "summary": " ".join(filter(None, (summary, describe_unlisted(view))))})


def describe_unlisted(view: WorkspaceView) -> str | None:
    """A sentence about the plans that lists leave out; None if there are none."""
    count = view.plans.count_unlisted()
    return f"{count:,} older plan files are not listed: too many are in plans/." if count else None


def plan_row(stored: StoredPlan) -> dict[str, Any]:
    """A plan as a row of a list; the status of one with errors is INVALID."""
    parsed = stored.parsed
    row = {
        "plan_id": stored.plan_id,
        "title": parsed.title[:500],
        "status": parsed.plan.status if parsed.plan else INVALID,
        "plan_hash": parsed.plan_hash,
        "findings": len(parsed.findings),
    }
    if parsed.first_error is not None:
        return {**row, "why": parsed.first_error[:_MAX_WHY]}
    return {**row, "expires": parsed.plan.expires} if parsed.plan and parsed.plan.expires else row
