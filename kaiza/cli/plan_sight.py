"""All that a person should see of a plan before they decide: what it says, what it touches now, what was used of it."""

import re
import shlex
from collections.abc import Iterator
from itertools import islice
from typing import Any

from kaiza.domain import diff, limits, lookalike
from kaiza.domain.card import unknown
from kaiza.domain.finding import WARNING
from kaiza.domain.lint import StoredPlan
from kaiza.domain.paths import RelPath
from kaiza.domain.plan import LIMITS, Plan, Scope
from kaiza.domain.plan_usage import Usage
from kaiza.policy.case import Case
from kaiza.policy.plan_approved import plan_approved, plan_not_withdrawn, plan_unchanged, sealed_hash
from kaiza.policy.plan_sound import plan_sound
from kaiza.render.terminal import escape
from kaiza.store import approved_bytes
from kaiza.store.ground import Ground
from kaiza.store.plans import DIRECTORY, SUFFIX
from kaiza.store.touched import Touched, touched

MANY = 200
"""So many files at once are worth a second look."""
_LONGEST_PROSE = 400
_MOST_HIDDEN = 20
_HEAD = re.compile(rb"---\r?\n.*?^---\r?$\n?", re.MULTILINE | re.DOTALL)


def document(ground: Ground, stored: StoredPlan, now: str) -> dict[str, Any]:
    """What `plan show --json` tells."""
    plan = stored.reading.plan
    told: dict[str, Any] = {
        "plan_id": stored.plan_id,
        "path": str(path_of(stored.plan_id)),
        "title": stored.reading.title,
        "status": plan.status if plan else "INVALID",
        "plan_hash": stored.reading.plan_hash,
        **standing(ground, stored, now),
        "findings": [finding.as_json() for finding in stored.reading.findings],
    }
    if plan is not None:
        reached = touched(plan, ground.workspace)
        told |= _said(plan, now) | {"touches": _touches(reached)}
        told["warnings"] = list(_warnings(stored, plan, reached))
        told["used"] = used(ground.facts.usage.get(plan.plan_id) or Usage())
    told["difference"] = difference(ground, stored.plan_id, stored.content)
    prose = _prose(stored.content)
    told["prose"] = "\n".join(prose[:_LONGEST_PROSE])
    told["more_prose"] = len(prose[_LONGEST_PROSE:])
    return told


def path_of(plan_id: str) -> RelPath:
    """The plan's file."""
    return DIRECTORY / (plan_id + SUFFIX)


def standing(ground: Ground, stored: StoredPlan, now: str) -> dict[str, Any]:
    """Whether the plan allows anything now, why not, and what was approved of it."""
    seal = ground.facts.seals.get(stored.plan_id)
    case = _case(ground, stored, now)
    approved = sealed_hash(case)
    why = _why_not(case) or _used_up(ground, stored)
    return {
        "allows": why is None,
        "why_not": why,
        "sealed": None
        if seal is None
        else {"plan_hash": seal.plan_hash, "how": seal.how, "approved_by": seal.approved_by, "seq": seal.seq},
        "changed_after_approval": approved is not None and approved != stored.reading.plan_hash,
    }


def used(usage: Usage) -> dict[str, int]:
    """What was done under a plan so far."""
    return {name: usage.file_count if name == "files" else getattr(usage, name) for name in LIMITS}


def difference(ground: Ground, plan_id: str, content: bytes) -> dict[str, Any] | None:
    """What became of the bytes that were approved last; None where nothing was, or nothing became of them."""
    seal = ground.facts.seals.get(plan_id)
    if seal is None:
        return None
    before, path = approved_bytes.kept(ground, seal.plan_hash), path_of(plan_id)
    if before is None:
        return {"approved_hash": seal.plan_hash, "diff": None}
    made = diff.unified(diff.File(path, before), diff.File(path, content))
    if not made.data:
        return None
    return {"approved_hash": seal.plan_hash, "diff": made.text, "truncated": made.truncated}


def _case(ground: Ground, stored: StoredPlan, now: str) -> Case:
    return Case(
        card=unknown("write_file"),
        arguments={"plan_hash": stored.reading.plan_hash},
        now=now,
        facts=ground.facts,
        plan_id=stored.plan_id,
        reading=stored.reading,
        by_command=ground.settings.approval_by_command,
    )


def _why_not(case: Case) -> str | None:
    """The very rules that a change meets, in a person's words."""
    if plan_not_withdrawn(case) is not None:
        return "a person took it back, and only kaiza plan approve brings it back"
    if plan_unchanged(case) is not None:
        return "it was changed after it was approved"
    if plan_sound(case) is not None or case.reading is None or case.reading.plan is None:
        return "it has errors"
    refusal = plan_approved(case)
    if refusal is None:
        return None
    reason = refusal.cause["reason"] if isinstance(refusal.cause, dict) else None
    return {
        "status": f"its status is {case.reading.plan.status}",
        "expired": f"it expired on {case.reading.plan.expires}",
    }.get(str(reason), "this workspace asks for kaiza plan approve, and an edited word is not enough")


def _used_up(ground: Ground, stored: StoredPlan) -> str | None:
    plan, usage = stored.reading.plan, ground.facts.usage.get(stored.plan_id)
    overrun = limits.before(plan.limits, usage, (), 1) if plan and usage else None
    return f"its limit on {overrun.limit} is reached" if overrun else None


def _said(plan: Plan, now: str) -> dict[str, Any]:
    return {
        "title": plan.title,
        "author": plan.author,
        "created": plan.created,
        "approved_by": plan.approved_by,
        "approved_at": plan.approved_at,
        "expires": plan.expires,
        "expired": plan.expired(now),
        "scope": _scope(plan.scope),
        "limits": plan.limits.as_json(),
        "phases": [
            {
                "phase_id": phase.phase_id,
                "objective": phase.objective,
                "scope": _scope(phase.scope) if phase.scope else None,
                "verify": [list(command) for command in phase.verify],
            }
            for phase in plan.phases
        ],
        "policy": {rule: "refuse" if getattr(plan.policy, rule) else "allow" for rule in ("secrets", "stubs", "rust")},
    }


def _scope(scope: Scope) -> dict[str, Any]:
    told: dict[str, Any] = {
        name: [glob.text for glob in getattr(scope, name)] for name in ("modify", "create", "delete", "deny")
    }
    told["move"] = [{"from": pair.source.text, "to": pair.target.text} for pair in scope.move]
    return {**told, "unlock": [str(path) for path in scope.unlock]}


def _touches(reached: Touched) -> dict[str, Any]:
    return {
        "files": reached.files,
        "broken_off": reached.broken_off,
        "named": [{"path": path, "operations": list(reached.operations[path])} for path in reached.named],
        "patterns": [
            {"operation": operation, "pattern": pattern, "files": count}
            for (operation, pattern), count in reached.matched.items()
        ],
    }


def _warnings(stored: StoredPlan, plan: Plan, reached: Touched) -> Iterator[dict[str, Any]]:
    for finding in stored.reading.findings:
        if finding.severity == WARNING:
            yield {"rule": finding.rule, "line": finding.line, "message": finding.message}
    if is_broad(reached):
        yield {"rule": "broad-scope", "line": None, "message": broad(reached)}
    for what, text in _words(plan, reached):
        if any(lookalike.suspicious(text)):
            message = f"{what} holds what is easily mistaken: {lookalike.visible(text)}"
            yield {"rule": "lookalike", "line": None, "message": message}
    yield from _hidden(stored.content)


def is_broad(reached: Touched) -> bool:
    """Whether so many files are in scope that a person should look twice."""
    return reached.files > MANY or reached.broken_off


def broad(reached: Touched) -> str:
    """How many files are in scope, where they are many."""
    least = "at least " if reached.broken_off else ""
    return f"The scope touches {least}{reached.files:,} files now"


def _words(plan: Plan, reached: Touched) -> Iterator[tuple[str, str]]:
    for phase in plan.phases:
        yield from ((f"A command of {phase.phase_id}", shlex.join(command)) for command in phase.verify)
    yield from (("The name of a file in scope", path) for path in reached.named)


def _hidden(content: bytes) -> Iterator[dict[str, Any]]:
    """The first lines of the text whose characters do not all show."""
    lines = content.decode("utf-8", "replace").replace("\r\n", "\n").replace("\t", " ").split("\n")
    for number, line in islice((pair for pair in enumerate(lines) if _is_odd(pair[1])), _MOST_HIDDEN):
        message = f"The line holds what does not show: {escape(line)}"
        yield {"rule": "hidden-character", "line": number, "message": message}


def _is_odd(line: str) -> bool:
    text = lookalike.without_joiners(line)
    return escape(text) != text


def _prose(content: bytes) -> list[str]:
    """The lines of the text after the head."""
    told = _HEAD.sub(b"", content, count=1).decode("utf-8", "replace").replace("\r\n", "\n")
    return told.strip("\n").split("\n")
