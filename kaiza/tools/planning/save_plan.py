"""Tool `save_plan`: save a new plan as a draft, which only a person can approve."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.domain import errors
from kaiza.domain.finding import Finding
from kaiza.domain.paging.list_cut import cut_lists
from kaiza.domain.plans import parser
from kaiza.domain.plans.plan import MAX_SAVED_PLANS
from kaiza.domain.plans.status_edit import find_draft_errors
from kaiza.tools.planning.lint_plan import encode_content
from kaiza.tools.planning.read_plan import MORE_FINDINGS, findings_output
from kaiza.tools.view import Answer, PlanDraft, PlansView

NAME = "save_plan"
_MAX_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Request:
    """The id and the text of the plan."""

    plan_id: str
    content: bytes


def parse(arguments: Mapping[str, Any], _root: str | None) -> Request:
    """Encode the text; the schema has checked the arguments."""
    return Request(arguments["plan_id"], encode_content(arguments["content"]))


def run(request: Request, view: PlansView) -> Answer:
    """Propose the plan if it is a valid draft with an unused id."""
    parsed = parser.parse(request.content, request.plan_id)
    faults = find_draft_errors(parsed)
    if faults:
        raise _draft_error(request.plan_id, faults)
    plan_ids = view.plans.plan_ids()
    if request.plan_id in plan_ids:
        raise errors.SystemError.tool_failure(
            "FILE_ALREADY_EXISTS",
            human_message="A plan with this id exists already. Choose another plan_id; a revision is a new plan.",
            cause={"plan_id": request.plan_id},
        )
    if len(plan_ids) >= MAX_SAVED_PLANS:
        raise errors.SystemError.tool_failure(
            "CAP_EXCEEDED",
            human_message="There are too many plans. Ask a person to remove some that are done.",
            cause={"cap": "plans", "limit": MAX_SAVED_PLANS},
        )
    output = {
        "plan_id": request.plan_id,
        "path": f"plans/{request.plan_id}.md",
        "plan_hash": parsed.plan_hash,
        "findings": findings_output(parsed.findings),
    }
    summary = f"{request.plan_id} is a draft. Ask a person to approve it; list_plans then shows its plan_hash."
    output = cut_lists({**output, "summary": summary}, view.caps, MORE_FINDINGS)
    return Answer(output, (PlanDraft(request.plan_id, request.content),))


def _draft_error(plan_id: str, faults: tuple[Finding, ...]) -> errors.SystemError:
    first = faults[0]
    others = f" lint_plan lists all {len(faults)} findings." if len(faults) > 1 else ""
    return errors.SystemError.tool_failure(
        "PLAN_ENFORCEMENT_FAILED",
        human_message=f"The plan is not a valid draft. {first.message}: {first.fix}.{others}",
        cause={
            "plan_id": plan_id,
            "count": len(faults),
            "findings": [
                {"rule": fault.rule, "line": fault.line, "column": fault.column} for fault in faults[:_MAX_SHOWN]
            ],
        },
    )
