"""Read one plan: its words, its hash, and what is wrong with it."""

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
    """Which plan."""

    plan_id: str


def parse(arguments: Mapping[str, Any], _root: str | None) -> Request:
    """Take the arguments as the schema left them."""
    return Request(arguments["plan_id"])


def run(request: Request, view: PlansView) -> Answer:
    """Give the plan as it is now."""
    stored = require_plan(request.plan_id, view)
    reading = stored.parsed
    status = reading.plan.status if reading.plan else INVALID
    output = {
        "plan_id": stored.plan_id,
        "plan_hash": reading.plan_hash,
        "status": status,
        "content": stored.content.decode("utf-8", "replace"),
        "findings": findings_output(reading.findings),
    }
    return Answer({**output, "summary": f"{stored.plan_id}: {status}, {len(reading.findings)} findings."})


def require_plan(plan_id: str, view: PlansView) -> StoredPlan:
    """The plan of that name, or PLAN_NOT_FOUND."""
    stored = view.plans.read(plan_id)
    if stored is None:
        raise errors.SystemError.tool_failure(
            "PLAN_NOT_FOUND",
            human_message="There is no plan with this id. Call list_plans and use an id from it.",
            cause={"plan_id": plan_id},
        )
    return stored


def findings_output(findings: tuple[Finding, ...]) -> list[dict[str, object]]:
    """The first findings, as many as an answer shows."""
    return [finding.as_json() for finding in findings[:MAX_FINDINGS]]
