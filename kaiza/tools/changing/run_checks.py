"""Run the checks that the approved plan itself names; only where the operator allows it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.domain import errors
from kaiza.tools.view import Answer, ChecksView

NAME = "run_checks"
_MAX_RECORDED = 20


@dataclass(frozen=True, slots=True)
class Request:
    """Which phase's checks of which plan."""

    plan_hash: str
    phase_id: str


def parse(arguments: Mapping[str, Any], _root: str | None) -> Request:
    """Take the arguments as the schema left them."""
    return Request(arguments["plan_hash"], arguments["phase_id"])


def run(request: Request, view: ChecksView) -> Answer:
    """Run every command in order; the first that does not pass ends it, and so does a person."""
    before = view.snapshot_protected()
    results: list[dict[str, Any]] = []
    refusal = None
    for argv in view.phase_commands(request.plan_hash, request.phase_id):
        refusal = view.current_refusal()
        if refusal is not None:
            break
        results.append(view.run_check(argv))
        if results[-1].get("exit_code") != 0:
            break
    altered = view.changed_protected(before)
    if altered:
        raise errors.SystemError.invariant_violation(
            "CHECKS_MEDDLED",
            human_message="A check altered what governs the agent. Ask a person to look before anything else is done.",
            cause={"paths": altered[:20], "count": len(altered)},
        )
    if refusal is not None:
        raise refusal
    failed = [one for one in results if one.get("exit_code") != 0]
    if failed:
        raise errors.SystemError.tool_failure(
            "PREFLIGHT_FAILED",
            human_message="A check of the plan did not pass. Read its output, mend the files, and run it again.",
            cause={"failed": len(results) - 1, "exit_code": failed[0].get("exit_code"), "ran": len(results)},
            evidence={"results": results},
        )
    told = [{name: one[name] for name in ("exit_code", "duration_ms")} for one in results[:_MAX_RECORDED]]
    return Answer({"results": results, "summary": f"{len(results)} checks passed."}, detail={"checks": told})
