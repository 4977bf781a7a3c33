"""What a person should know of a plan before deciding: its content, the files it matches now, what was used of it.

The values are what `plan show --json` and `plan list --json` print.
"""

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from kaiza.clock import current_timestamp
from kaiza.domain.finding import WARNING
from kaiza.domain.paths import confusables
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.plans import plan as limits
from kaiza.domain.plans.parser import StoredPlan
from kaiza.domain.plans.plan import INVALID, LIMITS, Plan, PlanUsage, Scope
from kaiza.domain.text import unified_diff
from kaiza.domain.tool_card import for_unknown_tool
from kaiza.policy.case import Case
from kaiza.policy.rules.plan_approved import (
    ARRIVALS,
    approval_basis,
    check_plan_approved,
    check_plan_not_withdrawn,
    check_plan_unchanged,
    sealed_hash,
)
from kaiza.policy.rules.plan_sound import check_plan_sound
from kaiza.policy.rules.workspace_adopted import check_workspace_adopted
from kaiza.render.terminal import escape, format_count
from kaiza.store import human_decisions
from kaiza.store.documents.plan_files import DIRECTORY, SUFFIX
from kaiza.store.documents.scope_preview import ScopePreview, match_files
from kaiza.store.workspace import Workspace

BROAD_SCOPE_FILES = 200
"""A scope of more files than this gets a warning."""
_MAX_PROSE_LINES = 400
_MAX_HIDDEN_LINES = 20
_FRONT_MATTER = re.compile(rb"---\r?\n.*?^---\r?$\n?", re.MULTILINE | re.DOTALL)


def list_plans(workspace: Workspace) -> list[dict[str, Any]]:
    """Every plan: its status, whether it allows changes now, its limits and what was used of them."""
    now = current_timestamp()
    listed = list(workspace.plans.read_all())
    workspace.seen_plans.flush()  # one question to git for all of them
    return [_list_entry(workspace, stored, now) for stored in listed]


def describe_unlisted(workspace: Workspace) -> str | None:
    """A sentence about the plans that lists leave out; None if there are none."""
    count = workspace.plans.count_unlisted()
    if not count:
        return None
    return f"{count:,} older plan files are not listed. Move those that are done out of plans/."


def review_plan(workspace: Workspace, stored: StoredPlan) -> dict[str, Any]:
    """One plan in full, as it is now."""
    now = current_timestamp()
    plan = stored.parsed.plan
    review: dict[str, Any] = {
        "plan_id": stored.plan_id,
        "path": str(plan_path(stored.plan_id)),
        "title": stored.parsed.title,
        "status": plan.status if plan else INVALID,
        "plan_hash": stored.parsed.plan_hash,
        **_approval_state(workspace, stored, now),
        "findings": [finding.as_json() for finding in stored.parsed.findings],
    }
    if plan is not None:
        preview = match_files(plan, workspace.files)
        review |= _plan_members(plan, now) | {"touches": _preview_members(preview)}
        review["warnings"] = list(_list_warnings(stored, plan, preview))
        review["used"] = _usage_counts(workspace, stored)
    review["difference"] = diff_since_approval(workspace, stored.plan_id, stored.content)
    # A plan that arrived approved is compared with the draft that was seen here last.
    draft = workspace.load_seen_draft(stored.plan_id) if review["came_by"] else None
    difference = None if draft is None else _diff_versions(plan_path(stored.plan_id), draft, stored.content)
    review["draft_difference"] = difference
    body = _FRONT_MATTER.sub(b"", stored.content, count=1).decode("utf-8", "replace")
    prose = body.replace("\r\n", "\n").strip("\n").split("\n")
    review["prose"] = "\n".join(prose[:_MAX_PROSE_LINES])
    review["more_prose"] = len(prose[_MAX_PROSE_LINES:])
    return review


def diff_since_approval(workspace: Workspace, plan_id: str, content: bytes) -> dict[str, Any] | None:
    """The diff from the content approved last to this one; None if nothing was approved or nothing changed."""
    seal = workspace.audit_state.seals.get(plan_id)
    if seal is None:
        return None
    before, path = human_decisions.load_plan_bytes(workspace, seal.plan_hash), plan_path(plan_id)
    if before is None:
        return {"approved_hash": seal.plan_hash, "diff": None}
    diff = _diff_versions(path, before, content)
    return None if diff is None else {"approved_hash": seal.plan_hash, **diff}


def _diff_versions(path: RelPath, before: bytes, after: bytes) -> dict[str, Any] | None:
    diff = unified_diff.compare(unified_diff.FileVersion(path, before), unified_diff.FileVersion(path, after))
    return {"diff": diff.text, "truncated": diff.truncated} if diff.data else None


def count_standings(listed: Sequence[Mapping[str, Any]]) -> str:
    """One line of how many plans count and why: `3 plans: 1 approved here, 1 arrived approved, 1 merged`."""
    counts = Counter(plan["standing"] for plan in listed)
    parts = ", ".join(f"{count} {standing}" for standing, count in sorted(counts.items()))
    return f"{format_count(len(listed), 'plan')}: {parts}" if listed else "none yet"


def plan_path(plan_id: str) -> RelPath:
    """The path of a plan's file."""
    return DIRECTORY / (plan_id + SUFFIX)


def warn_of_broad_scope(preview: ScopePreview) -> str | None:
    """The warning about a scope of very many files; None if it matches fewer."""
    if preview.file_count <= BROAD_SCOPE_FILES and not preview.stopped_early:
        return None
    least = "at least " if preview.stopped_early else ""
    return f"The scope matches {least}{preview.file_count:,} files now"


def _list_entry(workspace: Workspace, stored: StoredPlan, now: str) -> dict[str, Any]:
    plan = stored.parsed.plan
    return {
        "plan_id": stored.plan_id,
        "title": stored.parsed.title,
        "status": plan.status if plan else INVALID,
        "plan_hash": stored.parsed.plan_hash,
        **_approval_state(workspace, stored, now),
        "expires": plan.expires if plan else None,
        "limits": plan.limits.as_json() if plan else {},
        "used": _usage_counts(workspace, stored),
        "findings": len(stored.parsed.findings),
    }


def _approval_state(workspace: Workspace, stored: StoredPlan, now: str) -> dict[str, Any]:
    """Whether the plan allows changes now, if not why, and the content that was approved."""
    # A hypothetical change under this plan, judged by the real rules: a review cannot differ from the decision.
    case = Case(
        card=for_unknown_tool("write_file"),
        arguments={"plan_hash": stored.parsed.plan_hash},
        now=now,
        audit_state=workspace.audit_state,
        plan_id=stored.plan_id,
        parsed=stored.parsed,
        required_approval=workspace.settings.required_approval,
        evidence=workspace.plan_evidence(stored),
        foreign=workspace.binding.is_foreign,
    )
    plan, seal = stored.parsed.plan, workspace.audit_state.seals.get(stored.plan_id)
    usage = workspace.audit_state.usage.get(stored.plan_id)
    overrun = limits.overrun_before(plan.limits, usage, (), 1) if plan and usage else None
    reason = _explain_refusal(case) or (f"its limit on {overrun.limit} is reached" if overrun else None)
    approved_hash = sealed_hash(case)
    has_arrived = plan is not None and plan.status == limits.APPROVED and approval_basis(case) is None
    sealed = None
    if seal is not None:
        sealed = {"plan_hash": seal.plan_hash, "how": seal.how, "approved_by": seal.approved_by, "seq": seal.seq}
    return {
        "allows": reason is None,
        "why_not": reason,
        "standing": _describe_standing(case, plan),
        "came_by": case.evidence.came_by if has_arrived else None,
        "sealed": sealed,
        "changed_after_approval": approved_hash is not None and approved_hash != stored.parsed.plan_hash,
    }


def _describe_standing(case: Case, plan: Plan | None) -> str:
    """What a plan is worth now, in a word or two, for a count of all plans."""
    if plan is None:
        return "with errors"
    if check_plan_not_withdrawn(case) is not None:
        return "withdrawn"
    if plan.status != limits.APPROVED:
        return plan.status.lower()
    if check_plan_unchanged(case) is not None:
        return "changed since approval"
    basis = approval_basis(case)
    if basis is None:
        return "arrived approved" if case.required_approval == "edit" else "not approved as required"
    return "expired" if plan.is_expired(case.now) else basis if basis in ("merged", "signed") else "approved here"


def _usage_counts(workspace: Workspace, stored: StoredPlan) -> dict[str, int]:
    usage = workspace.audit_state.usage.get(stored.plan_id) or PlanUsage()
    return {name: usage.file_count if name == "files" else getattr(usage, name) for name in LIMITS}


def _explain_refusal(case: Case) -> str | None:
    """Why a change would be refused: the boundary's own rules, in words for a person."""
    if check_workspace_adopted(case) is not None:
        return "this workspace came from elsewhere; `kaiza adopt` comes first"
    if check_plan_not_withdrawn(case) is not None:
        return "a person withdrew it; `kaiza plan approve` approves it again"
    if check_plan_unchanged(case) is not None:
        return "it was changed after it was approved"
    if check_plan_sound(case) is not None or case.parsed is None or case.parsed.plan is None:
        error = case.parsed.first_error if case.parsed else None
        return f"it has errors; {error}" if error else "it has errors"
    refusal = check_plan_approved(case)
    if refusal is None:
        return None
    came_by = ARRIVALS[case.evidence.came_by or "unseen"]
    arrived = f"its file says APPROVED, but it {came_by}; `kaiza plan approve {case.plan_id}`"
    reasons = {
        "status": f"its status is {case.parsed.plan.status}",
        "expired": f"it expired on {case.parsed.plan.expires}",
        "approval_by_command": "this workspace requires `kaiza plan approve`; editing the status is not enough",
        "signature": "this workspace requires a signature; `kaiza plan approve --sign` makes one",
    }
    cause = refusal.cause if isinstance(refusal.cause, dict) else {}
    reason = reasons.get(str(cause.get("reason")), arrived)
    problems = (case.evidence.merge_problem, case.evidence.signature_problem)
    return "; ".join(filter(None, (reason, *(problems if "reason" not in cause else ()))))


def _plan_members(plan: Plan, now: str) -> dict[str, Any]:
    return {
        "title": plan.title,
        "author": plan.author,
        "created": plan.created,
        "approved_by": plan.approved_by,
        "approved_at": plan.approved_at,
        "expires": plan.expires,
        "expired": plan.is_expired(now),
        "scope": _scope_members(plan.scope),
        "limits": plan.limits.as_json(),
        "phases": [
            {
                "phase_id": phase.phase_id,
                "objective": phase.objective,
                "scope": _scope_members(phase.scope) if phase.scope else None,
                "verify": [list(command) for command in phase.verify],
            }
            for phase in plan.phases
        ],
        "policy": {rule: "refuse" if getattr(plan.policy, rule) else "allow" for rule in ("secrets", "stubs", "rust")},
    }


def _scope_members(scope: Scope) -> dict[str, Any]:
    members: dict[str, Any] = {
        name: [glob.text for glob in getattr(scope, name)] for name in ("modify", "create", "delete", "deny")
    }
    members["move"] = [{"from": pair.source.text, "to": pair.target.text} for pair in scope.move]
    return {**members, "unlock": [str(path) for path in scope.unlock]}


def _preview_members(preview: ScopePreview) -> dict[str, Any]:
    return {
        "files": preview.file_count,
        "broken_off": preview.stopped_early,
        "named": [{"path": path, "operations": list(preview.operations[path])} for path in preview.listed_paths],
        "patterns": [
            {"operation": operation, "pattern": pattern, "files": count}
            for (operation, pattern), count in preview.match_counts.items()
        ],
    }


def _list_warnings(stored: StoredPlan, plan: Plan, preview: ScopePreview) -> Iterator[dict[str, Any]]:
    for finding in stored.parsed.findings:
        if finding.severity == WARNING:
            yield {"rule": finding.rule, "line": finding.line, "message": finding.message}
    broad = warn_of_broad_scope(preview)
    if broad:
        yield {"rule": "broad-scope", "line": None, "message": broad}
    displayed = [
        (f"A command of {phase.phase_id}", shlex.join(command)) for phase in plan.phases for command in phase.verify
    ]
    displayed += [("The name of a file in scope", path) for path in preview.listed_paths]
    for what, text in displayed:
        if any(confusables.find_suspicious(text)):
            message = f"{what} contains characters that look like others: {confusables.make_visible(text)}"
            yield {"rule": "lookalike", "line": None, "message": message}
    lines = stored.content.decode("utf-8", "replace").replace("\r\n", "\n").replace("\t", " ").split("\n")
    # Joiners belong to scripts and emoji; every other character that is not drawn hides something.
    plain = (confusables.strip_joiners(line) for line in lines)
    hidden = (number for number, text in enumerate(plain) if escape(text) != text)
    for number in islice(hidden, _MAX_HIDDEN_LINES):
        message = f"The line contains invisible characters: {escape(lines[number])}"
        yield {"rule": "hidden-character", "line": number, "message": message}
