"""Tool `lint_plan`: list the errors and warnings of a plan, saved or not, with a fix for each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.domain import errors
from kaiza.domain.paging.list_cut import cut_lists
from kaiza.domain.plans import parser
from kaiza.tools.planning import read_plan
from kaiza.tools.view import Answer, WorkspaceView


@dataclass(frozen=True, slots=True)
class Request:
    """The text of a plan, or the id of a saved one."""

    content: str | None
    plan_id: str | None


def parse(arguments: Mapping[str, Any], _root: str | None) -> Request:
    """Require either content or plan_id."""
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


def run(request: Request, view: WorkspaceView) -> Answer:
    """Return the findings with their positions."""
    if request.plan_id is not None:
        parsed = read_plan.require_plan(request.plan_id, view).parsed
    else:
        parsed = parser.parse(read_plan.encode_content(request.content or ""))
    valid = parsed.plan is not None
    output: dict[str, Any] = {"valid": valid, "findings": read_plan.findings_output(parsed.findings)}
    sentence = "The plan is valid" if valid else "The plan has errors and is not valid"
    output["summary"] = f"{sentence}; {read_plan.count_findings(output)}."
    return Answer(cut_lists(output, view.caps, read_plan.MORE_FINDINGS))
