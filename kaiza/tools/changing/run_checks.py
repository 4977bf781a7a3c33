"""Tool `run_checks`: run the check commands of a plan's phase. Offered only where the operator allows it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.domain import errors
from kaiza.tools.view import Answer, ChecksView

NAME = "run_checks"
_MAX_RECORDED = 20


@dataclass(frozen=True, slots=True)
class Request:
    """The plan and its phase."""

    plan_hash: str
    phase_id: str


def parse(arguments: Mapping[str, Any], _root: str | None) -> Request:
    """Return the request; the schema has checked the arguments."""
    return Request(arguments["plan_hash"], arguments["phase_id"])


def run(request: Request, view: ChecksView) -> Answer:
    """Run the commands in order, until one fails or the plan is not approved any more."""
    # A command runs with the operator's rights, so nothing keeps it from the plans, the log, settings or hooks.
    # That it altered none of them is checked afterwards.
    before = view.snapshot_protected()
    results: list[dict[str, Any]] = []
    refusal = None
    for argv in view.phase_commands(request.plan_hash, request.phase_id):
        refusal = view.current_refusal()  # a person may freeze or revoke while a command runs
        if refusal is not None:
            break
        results.append(view.run_check(argv))
        if results[-1].get("exit_code") != 0:
            break
    altered = view.changed_protected(before)
    if altered:
        raise errors.SystemError.invariant_violation(
            "CHECKS_MEDDLED",
            human_message="A check altered files that govern the agent. Ask a person to review them first.",
            cause={"paths": altered[:20], "count": len(altered)},
        )
    if refusal is not None:
        raise refusal
    failed = [result for result in results if result.get("exit_code") != 0]
    if failed:
        raise errors.SystemError.tool_failure(
            "PREFLIGHT_FAILED",
            human_message="A check of the plan failed. Read its output, fix the files, and run it again.",
            cause={"failed": len(results) - 1, "exit_code": failed[0].get("exit_code"), "ran": len(results)},
            evidence={"results": results},
        )
    # Recorded without the output, which may contain anything.
    recorded = [{name: result[name] for name in ("exit_code", "duration_ms")} for result in results[:_MAX_RECORDED]]
    return Answer({"results": results, "summary": f"{len(results)} checks passed."}, detail={"checks": recorded})
