"""Save a new plan as a draft; only a person makes more of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.domain import errors
from kaiza.domain.finding import Finding
from kaiza.domain.plans import parser
from kaiza.domain.plans.plan import MAX_SAVED_PLANS
from kaiza.domain.plans.status_edit import find_draft_errors
from kaiza.tools.planning.lint_plan import encode_content
from kaiza.tools.planning.read_plan import findings_output
from kaiza.tools.view import Answer, PlanDraft, PlansView

NAME = "save_plan"
_MAX_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Request:
    """A name and a text."""

    plan_id: str
    content: bytes


def parse(arguments: Mapping[str, Any], _root: str | None) -> Request:
    """Take the arguments as the schema left them."""
    return Request(arguments["plan_id"], encode_content(arguments["content"]))


def run(request: Request, view: PlansView) -> Answer:
    """Propose the file, if it is a sound draft under a new name."""
    reading = parser.parse(request.content, request.plan_id)
    faults = find_draft_errors(reading)
    if faults:
        raise _draft_error(request.plan_id, faults)
    names = view.plans.plan_ids()
    if request.plan_id in names:
        raise errors.SystemError.tool_failure(
            "FILE_ALREADY_EXISTS",
            human_message="There is a plan with this id. Choose another plan_id; a revision is a new plan.",
            cause={"plan_id": request.plan_id},
        )
    if len(names) >= MAX_SAVED_PLANS:
        raise errors.SystemError.tool_failure(
            "CAP_EXCEEDED",
            human_message="There are too many plans. Ask a person to remove some that are done.",
            cause={"cap": "plans", "limit": MAX_SAVED_PLANS},
        )
    output = {
        "plan_id": request.plan_id,
        "path": f"plans/{request.plan_id}.md",
        "plan_hash": reading.plan_hash,
        "findings": findings_output(reading.findings),
    }
    summary = f"{request.plan_id} is a draft. Ask a person to approve it; list_plans then tells its plan_hash."
    return Answer({**output, "summary": summary}, (PlanDraft(request.plan_id, request.content),))


def _draft_error(plan_id: str, faults: tuple[Finding, ...]) -> errors.SystemError:
    first = faults[0]
    others = f" lint_plan lists all {len(faults)} findings." if len(faults) > 1 else ""
    return errors.SystemError.tool_failure(
        "PLAN_ENFORCEMENT_FAILED",
        human_message=f"The plan is not a sound draft. {first.message}: {first.fix}.{others}",
        cause={
            "plan_id": plan_id,
            "count": len(faults),
            "findings": [{"rule": one.rule, "line": one.line, "column": one.column} for one in faults[:_MAX_SHOWN]],
        },
    )
