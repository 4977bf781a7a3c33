"""All that a person should see of a plan before they decide: what it says, what it touches now, what was used of it."""

import re
import shlex
from collections.abc import Iterator
from itertools import islice
from typing import Any

from kaiza.domain.finding import WARNING
from kaiza.domain.paths import confusables
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.plans import plan as limits
from kaiza.domain.plans.parser import StoredPlan
from kaiza.domain.plans.plan import LIMITS, Plan, PlanUsage, Scope
from kaiza.domain.text import unified_diff
from kaiza.domain.tool_card import for_unknown_tool
from kaiza.policy.case import Case
from kaiza.policy.rules.plan_approved import (
    check_plan_approved,
    check_plan_not_withdrawn,
    check_plan_unchanged,
    sealed_hash,
)
from kaiza.policy.rules.plan_sound import check_plan_sound
from kaiza.render.terminal import escape
from kaiza.store import human_decisions
from kaiza.store.documents.plan_files import DIRECTORY, SUFFIX
from kaiza.store.documents.scope_preview import ScopePreview, match_files
from kaiza.store.workspace import Workspace

BROAD_SCOPE_FILES = 200
"""So many files at once are worth a second look."""
_MAX_PROSE_LINES = 400
_MAX_HIDDEN_LINES = 20
_FRONT_MATTER = re.compile(rb"---\r?\n.*?^---\r?$\n?", re.MULTILINE | re.DOTALL)


def build_document(ground: Workspace, stored: StoredPlan, now: str) -> dict[str, Any]:
    """What `plan show --json` tells."""
    plan = stored.parsed.plan
    told: dict[str, Any] = {
        "plan_id": stored.plan_id,
        "path": str(plan_path(stored.plan_id)),
        "title": stored.parsed.title,
        "status": plan.status if plan else "INVALID",
        "plan_hash": stored.parsed.plan_hash,
        **approval_state(ground, stored, now),
        "findings": [finding.as_json() for finding in stored.parsed.findings],
    }
    if plan is not None:
        reached = match_files(plan, ground.files)
        told |= _plan_members(plan, now) | {"touches": _touched_document(reached)}
        told["warnings"] = list(_list_warnings(stored, plan, reached))
        told["used"] = usage_counts(ground.audit_state.usage.get(plan.plan_id) or PlanUsage())
    told["difference"] = diff_since_approval(ground, stored.plan_id, stored.content)
    prose = _prose_lines(stored.content)
    told["prose"] = "\n".join(prose[:_MAX_PROSE_LINES])
    told["more_prose"] = len(prose[_MAX_PROSE_LINES:])
    return told


def plan_path(plan_id: str) -> RelPath:
    """The plan's file."""
    return DIRECTORY / (plan_id + SUFFIX)


def approval_state(ground: Workspace, stored: StoredPlan, now: str) -> dict[str, Any]:
    """Whether the plan allows anything now, why not, and what was approved of it."""
    seal = ground.audit_state.seals.get(stored.plan_id)
    case = _build_case(ground, stored, now)
    approved = sealed_hash(case)
    why = _refusal_reason(case) or _exceeded_limit(ground, stored)
    return {
        "allows": why is None,
        "why_not": why,
        "sealed": None
        if seal is None
        else {"plan_hash": seal.plan_hash, "how": seal.how, "approved_by": seal.approved_by, "seq": seal.seq},
        "changed_after_approval": approved is not None and approved != stored.parsed.plan_hash,
    }


def usage_counts(usage: PlanUsage) -> dict[str, int]:
    """What was done under a plan so far."""
    return {name: usage.file_count if name == "files" else getattr(usage, name) for name in LIMITS}


def diff_since_approval(ground: Workspace, plan_id: str, content: bytes) -> dict[str, Any] | None:
    """What became of the bytes that were approved last; None where nothing was, or nothing became of them."""
    seal = ground.audit_state.seals.get(plan_id)
    if seal is None:
        return None
    before, path = human_decisions.load_bytes(ground, seal.plan_hash), plan_path(plan_id)
    if before is None:
        return {"approved_hash": seal.plan_hash, "diff": None}
    made = unified_diff.compare(unified_diff.FileVersion(path, before), unified_diff.FileVersion(path, content))
    if not made.data:
        return None
    return {"approved_hash": seal.plan_hash, "diff": made.text, "truncated": made.truncated}


def _build_case(ground: Workspace, stored: StoredPlan, now: str) -> Case:
    return Case(
        card=for_unknown_tool("write_file"),
        arguments={"plan_hash": stored.parsed.plan_hash},
        now=now,
        audit_state=ground.audit_state,
        plan_id=stored.plan_id,
        parsed=stored.parsed,
        by_command=ground.settings.approval_by_command,
    )


def _refusal_reason(case: Case) -> str | None:
    """The very rules that a change meets, in a person's words."""
    if check_plan_not_withdrawn(case) is not None:
        return "a person took it back, and only kaiza plan approve brings it back"
    if check_plan_unchanged(case) is not None:
        return "it was changed after it was approved"
    if check_plan_sound(case) is not None or case.parsed is None or case.parsed.plan is None:
        return "it has errors"
    refusal = check_plan_approved(case)
    if refusal is None:
        return None
    reason = refusal.cause["reason"] if isinstance(refusal.cause, dict) else None
    return {
        "status": f"its status is {case.parsed.plan.status}",
        "expired": f"it expired on {case.parsed.plan.expires}",
    }.get(str(reason), "this workspace asks for kaiza plan approve, and an edited word is not enough")


def _exceeded_limit(ground: Workspace, stored: StoredPlan) -> str | None:
    plan, usage = stored.parsed.plan, ground.audit_state.usage.get(stored.plan_id)
    overrun = limits.overrun_before(plan.limits, usage, (), 1) if plan and usage else None
    return f"its limit on {overrun.limit} is reached" if overrun else None


def _plan_members(plan: Plan, now: str) -> dict[str, Any]:
    return {
        "title": plan.title,
        "author": plan.author,
        "created": plan.created,
        "approved_by": plan.approved_by,
        "approved_at": plan.approved_at,
        "expires": plan.expires,
        "expired": plan.is_expired(now),
        "scope": _scope_document(plan.scope),
        "limits": plan.limits.as_json(),
        "phases": [
            {
                "phase_id": phase.phase_id,
                "objective": phase.objective,
                "scope": _scope_document(phase.scope) if phase.scope else None,
                "verify": [list(command) for command in phase.verify],
            }
            for phase in plan.phases
        ],
        "policy": {rule: "refuse" if getattr(plan.policy, rule) else "allow" for rule in ("secrets", "stubs", "rust")},
    }


def _scope_document(scope: Scope) -> dict[str, Any]:
    told: dict[str, Any] = {
        name: [glob.text for glob in getattr(scope, name)] for name in ("modify", "create", "delete", "deny")
    }
    told["move"] = [{"from": pair.source.text, "to": pair.target.text} for pair in scope.move]
    return {**told, "unlock": [str(path) for path in scope.unlock]}


def _touched_document(reached: ScopePreview) -> dict[str, Any]:
    return {
        "files": reached.file_count,
        "broken_off": reached.stopped_early,
        "named": [{"path": path, "operations": list(reached.operations[path])} for path in reached.listed_paths],
        "patterns": [
            {"operation": operation, "pattern": pattern, "files": count}
            for (operation, pattern), count in reached.match_counts.items()
        ],
    }


def _list_warnings(stored: StoredPlan, plan: Plan, reached: ScopePreview) -> Iterator[dict[str, Any]]:
    for finding in stored.parsed.findings:
        if finding.severity == WARNING:
            yield {"rule": finding.rule, "line": finding.line, "message": finding.message}
    if is_broad(reached):
        yield {"rule": "broad-scope", "line": None, "message": broad_scope_message(reached)}
    for what, text in _displayed_texts(plan, reached):
        if any(confusables.find_suspicious(text)):
            message = f"{what} holds what is easily mistaken: {confusables.make_visible(text)}"
            yield {"rule": "lookalike", "line": None, "message": message}
    yield from _hidden_characters(stored.content)


def is_broad(reached: ScopePreview) -> bool:
    """Whether so many files are in scope that a person should look twice."""
    return reached.file_count > BROAD_SCOPE_FILES or reached.stopped_early


def broad_scope_message(reached: ScopePreview) -> str:
    """How many files are in scope, where they are many."""
    least = "at least " if reached.stopped_early else ""
    return f"The scope touches {least}{reached.file_count:,} files now"


def _displayed_texts(plan: Plan, reached: ScopePreview) -> Iterator[tuple[str, str]]:
    for phase in plan.phases:
        yield from ((f"A command of {phase.phase_id}", shlex.join(command)) for command in phase.verify)
    yield from (("The name of a file in scope", path) for path in reached.listed_paths)


def _hidden_characters(content: bytes) -> Iterator[dict[str, Any]]:
    """The first lines of the text whose characters do not all show."""
    lines = content.decode("utf-8", "replace").replace("\r\n", "\n").replace("\t", " ").split("\n")
    for number, line in islice(
        (pair for pair in enumerate(lines) if _has_hidden_characters(pair[1])), _MAX_HIDDEN_LINES
    ):
        message = f"The line holds what does not show: {escape(line)}"
        yield {"rule": "hidden-character", "line": number, "message": message}


def _has_hidden_characters(line: str) -> bool:
    text = confusables.strip_joiners(line)
    return escape(text) != text


def _prose_lines(content: bytes) -> list[str]:
    """The lines of the text after the head."""
    told = _FRONT_MATTER.sub(b"", content, count=1).decode("utf-8", "replace").replace("\r\n", "\n")
    return told.strip("\n").split("\n")
