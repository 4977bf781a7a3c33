"""Tool `run_checks`: run the check commands of a plan's phase. Offered only where the operator allows it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kaiza.domain import errors
from kaiza.domain.caps import Caps
from kaiza.domain.paging.response_size import AnswerBudget
from kaiza.tools.view import Answer, WorkspaceView

_MAX_RECORDED = 20
_MAX_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Request:
    """The plan and its phase."""

    plan_hash: str
    phase_id: str


def parse(arguments: Mapping[str, Any], _root: str | None) -> Request:
    """Return the request; the schema has checked the arguments."""
    return Request(arguments["plan_hash"], arguments["phase_id"])


def run(request: Request, view: WorkspaceView) -> Answer:
    """Run the commands in order, until one fails or the plan is not approved any more."""
    checks = view.begin_checks()
    results: list[dict[str, Any]] = []
    refusal = None
    try:
        commands = view.phase_commands(request.plan_hash, request.phase_id)
        for done, argv in enumerate(commands):
            view.report_progress(done, len(commands))
            refusal = view.current_refusal()  # a person may freeze or revoke while a command runs
            if refusal is not None:
                break
            results.append(checks.run(argv).as_json())
            if results[-1].get("exit_code") != 0:
                break
    finally:
        set_aside = list(checks.finish())
    if refusal is not None:
        raise refusal
    results = _fit_outputs(results, view.caps)
    if any(result.get("exit_code") != 0 for result in results):
        raise _failure(results, set_aside)
    summary = f"{len(results)} checks passed."
    if not set_aside:
        return Answer({"results": results, "summary": summary}, detail={"checks": _record_results(results)})
    summary += f" {len(set_aside)} files that would govern agents were moved to .kaiza/set-aside/."
    detail = {"checks": _record_results(results), "set_aside": set_aside[:_MAX_RECORDED]}
    return Answer({"results": results, "set_aside": set_aside[:_MAX_SHOWN], "summary": summary}, detail=detail)


def _fit_outputs(results: Sequence[Mapping[str, Any]], caps: Caps) -> list[dict[str, Any]]:
    """The results with only the ends of their outputs, so that they fit into an answer."""
    budget = AnswerBudget.choose(caps)
    space = budget.max_bytes // 2  # the rest is for the members of a failure
    fitting: list[dict[str, Any]] = []
    for number, result in enumerate(reversed(results)):  # the last one failed, if any did
        share = space // (len(results) - number)
        output = result["output"]
        while budget.count_bytes(output) > share:
            output = output[len(output) // 2 + 1 :]
        space -= budget.count_bytes(output)
        is_cut = result["truncated"] or output != result["output"]
        fitting.append({**result, "output": output, "truncated": is_cut})
    return fitting[::-1]


def _record_results(results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The results as the log keeps them: without the output, which may contain anything."""
    return [{name: result[name] for name in ("exit_code", "duration_ms")} for result in results[:_MAX_RECORDED]]


def _failure(results: Sequence[Mapping[str, Any]], set_aside: Sequence[Mapping[str, str]]) -> errors.SystemError:
    cause = {"failed": len(results) - 1, "exit_code": results[-1].get("exit_code"), "ran": len(results)}
    if set_aside:
        cause["set_aside"] = set_aside[:_MAX_RECORDED]
    return errors.SystemError.tool_failure(
        "PREFLIGHT_FAILED",
        human_message="A check of the plan failed. Read its output, fix the files, and run it again.",
        cause=cause,
        evidence={"results": results},
    )
