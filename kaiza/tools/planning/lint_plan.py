"""Say what is wrong with a plan, saved or not, and what to write instead."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.domain import errors
from kaiza.domain.plans import parser
from kaiza.tools.planning import read_plan
from kaiza.tools.view import Answer, PlansView

NAME = "lint_plan"


@dataclass(frozen=True, slots=True)
class Request:
    """A text, or the name of a plan."""

    content: str | None
    plan_id: str | None


def parse(arguments: Mapping[str, Any], _root: str | None) -> Request:
    """Take one of the two arguments."""
    request = Request(arguments.get("content"), arguments.get("plan_id"))
    if request.content is None and request.plan_id is None:
        raise errors.SystemError.tool_failure(
            "MISSING_REQUIRED_FIELD",
            human_message="Neither content nor plan_id is given. Pass one of them.",
            cause={"missing": ["content", "plan_id"]},
        )
    if request.content is not None and request.plan_id is not None:
        raise errors.SystemError.tool_failure(
            "INVALID_INPUT_VALUE",
            human_message="Both content and plan_id are given. Pass one of them.",
            cause={"invalid": ["content", "plan_id"]},
        )
    return request


def run(request: Request, view: PlansView) -> Answer:
    """Give every finding with its place."""
    if request.plan_id is not None:
        reading = read_plan.require_plan(request.plan_id, view).parsed
    else:
        reading = parser.parse(encode_content(request.content or ""))
    valid = reading.plan is not None
    output = {"valid": valid, "findings": read_plan.findings_output(reading.findings)}
    sentence = "The plan is valid" if valid else "The plan has errors and counts for nothing"
    return Answer({**output, "summary": f"{sentence}; {len(reading.findings)} findings."})


def encode_content(content: str) -> bytes:
    """The text as a file would hold it; half characters become bytes that the reader refuses."""
    return content.encode("utf-8", "surrogatepass")
