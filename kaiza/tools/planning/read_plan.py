"""Tool `read_plan`: return one plan, or some of its lines, with its hash, status and findings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.domain import errors
from kaiza.domain.finding import Finding
from kaiza.domain.paging.list_cut import shorten_lists
from kaiza.domain.paging.response_size import AnswerBudget
from kaiza.domain.plans.parser import StoredPlan
from kaiza.domain.plans.plan import INVALID
from kaiza.domain.text import lines
from kaiza.tools.view import Answer, WorkspaceView

MAX_FINDINGS = 200
MORE_FINDINGS = "More findings follow: correct these first."


@dataclass(frozen=True, slots=True)
class Request:
    """The id of the plan, and the window of lines."""

    plan_id: str
    start_line: int = 0
    max_lines: int | None = None


def parse(arguments: Mapping[str, Any], _root: str | None) -> Request:
    """Return the request; the schema has checked the arguments."""
    return Request(arguments["plan_id"], arguments.get("start_line", 0), arguments.get("max_lines"))


def run(request: Request, view: WorkspaceView) -> Answer:
    """Return the plan as it is now, from the first line that is asked for, as far as it fits."""
    stored = require_plan(request.plan_id, view)
    status = stored.parsed.plan.status if stored.parsed.plan else INVALID
    output: dict[str, Any] = {
        "plan_id": stored.plan_id,
        "plan_hash": stored.parsed.plan_hash,
        "status": status,
        "findings": findings_output(stored.parsed.findings),
    }
    output["summary"] = f"{stored.plan_id}: {status}, {count_findings(output)}."
    budget = AnswerBudget.choose(view.caps, is_asked=request.max_lines is not None)
    # Half of the answer is for the text, however many findings there are.
    shortened = shorten_lists(output, budget._replace(max_bytes=budget.max_bytes // 2))
    longest_rest = {"content": "", "truncated": False, "next": {"start_line": 2**53}}
    space = budget.max_bytes - budget.count_bytes({**shortened, **longest_rest})
    data = stored.content.decode("utf-8", "replace").encode()
    begin, _ = lines.skip_lines(data, request.start_line)
    length, _ = lines.skip_lines(data[begin:], request.max_lines or len(data))
    part = lines.fit_content(data[begin : begin + length], space, budget, final=True)
    is_cut = begin + part.size < len(data)
    result = {**shortened, "content": part.content, "truncated": is_cut or shortened != output}
    if is_cut:
        start = request.start_line + part.line_count
        result["next"] = {"start_line": start}
        result["summary"] += f" Lines are counted from 0: call again with start_line {start} to read on."
    return Answer(result)


def require_plan(plan_id: str, view: WorkspaceView) -> StoredPlan:
    """The plan with this id; PLAN_NOT_FOUND if there is none."""
    stored = view.plans.read(plan_id)
    if stored is None:
        raise errors.SystemError.tool_failure(
            "PLAN_NOT_FOUND",
            human_message="There is no plan with this id. Call list_plans and use an id from it.",
            cause={"plan_id": plan_id},
        )
    return stored


def encode_content(content: str) -> bytes:
    """Encode a plan's text as UTF-8; unpaired surrogates become bytes that the plan parser rejects."""
    return content.encode("utf-8", "surrogatepass")


def count_findings(output: Mapping[str, Any]) -> str:
    """How many findings an output lists, and that there may be more."""
    count = len(output["findings"])
    return f"{count} findings or more" if count == MAX_FINDINGS else f"{count} findings"


def findings_output(findings: tuple[Finding, ...]) -> list[dict[str, object]]:
    """The findings as output, at most MAX_FINDINGS of them."""
    return [finding.as_json() for finding in findings[:MAX_FINDINGS]]
