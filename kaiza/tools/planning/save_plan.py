"""Tool `save_plan`: save a new plan as a draft, which only a person can approve."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.domain import errors
from kaiza.domain.paging.list_cut import cut_lists
from kaiza.domain.plans import parser
from kaiza.domain.plans.plan import MAX_SAVED_PLANS
from kaiza.domain.plans.status_edit import find_draft_errors
from kaiza.tools.planning.read_plan import MORE_FINDINGS, encode_content, findings_output
from kaiza.tools.view import Answer, PlanDraft, WorkspaceView

_MAX_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Request:
    """The id and the text of the plan."""

    plan_id: str
    content: bytes


def parse(arguments: Mapping[str, Any], _root: str | None) -> Request:
    """Encode the text; the schema has checked the arguments."""
    return Request(arguments["plan_id"], encode_content(arguments["content"]))


def run(request: Request, view: WorkspaceView) -> Answer:
    """Propose the plan if it is a valid draft with an unused id."""
    parsed = parser.parse(request.content, request.plan_id)
    faults = find_draft_errors(parsed)
    if faults:
        others = f" lint_plan lists all {len(faults)} findings." if len(faults) > 1 else ""
        # Positions only: the cause is logged, and the messages quote the plan's text.
        findings = [{"rule": each.rule, "line": each.line, "column": each.column} for each in faults[:_MAX_SHOWN]]
        raise errors.SystemError.tool_failure(
            "PLAN_ENFORCEMENT_FAILED",
            human_message=f"The plan is not a valid draft. {faults[0].message}: {faults[0].fix}.{others}",
            cause={"plan_id": request.plan_id, "count": len(faults), "findings": findings},
        )
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
        "summary": f"{request.plan_id} is a draft. Ask a person to approve it; list_plans then shows its plan_hash.",
    }
    output = cut_lists(output, view.caps, MORE_FINDINGS)
    return Answer(output, (PlanDraft(request.plan_id, request.content),))
