"""Tool `read_plan`: return one plan with its hash, status and findings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.domain import errors
from kaiza.domain.finding import Finding
from kaiza.domain.plans.parser import StoredPlan
from kaiza.domain.plans.plan import INVALID
from kaiza.tools.view import Answer, PlansView

NAME = "read_plan"
MAX_FINDINGS = 200


@dataclass(frozen=True, slots=True)
class Request:
    """The id of the plan."""

    plan_id: str


def parse(arguments: Mapping[str, Any], _root: str | None) -> Request:
    """Return the request; the schema has checked the arguments."""
    return Request(arguments["plan_id"])


def run(request: Request, view: PlansView) -> Answer:
    """Return the plan as it is now."""
    stored = require_plan(request.plan_id, view)
    parsed = stored.parsed
    status = parsed.plan.status if parsed.plan else INVALID
    output: dict[str, Any] = {
        "plan_id": stored.plan_id,
        "plan_hash": parsed.plan_hash,
        "status": status,
        "content": stored.content.decode("utf-8", "replace"),
        "findings": findings_output(parsed.findings),
    }
    return Answer({**output, "summary": f"{stored.plan_id}: {status}, {count_findings(output)}."})


def require_plan(plan_id: str, view: PlansView) -> StoredPlan:
    """The plan with this id; PLAN_NOT_FOUND if there is none."""
    stored = view.plans.read(plan_id)
    if stored is None:
        raise errors.SystemError.tool_failure(
            "PLAN_NOT_FOUND",
            human_message="There is no plan with this id. Call list_plans and use an id from it.",
            cause={"plan_id": plan_id},
        )
    return stored


def count_findings(output: Mapping[str, Any]) -> str:
    """How many findings an output lists, and that there may be more."""
    count = len(output["findings"])
    return f"{count} findings or more" if count == MAX_FINDINGS else f"{count} findings"


def findings_output(findings: tuple[Finding, ...]) -> list[dict[str, object]]:
    """The findings as output, at most MAX_FINDINGS of them."""
    return [finding.as_json() for finding in findings[:MAX_FINDINGS]]
