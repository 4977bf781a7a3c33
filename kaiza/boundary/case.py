"""What is known of a call before it is judged: its session, its typed request, the facts the rules look at."""

import time
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from typing import Any

from kaiza.boundary.call import Call, House, now
from kaiza.domain import errors, told
from kaiza.domain.card import CHANGES, Card
from kaiza.domain.lint import Reading
from kaiza.domain.paths import RelPath
from kaiza.domain.session import Session
from kaiza.policy.case import Case
from kaiza.policy.judge import AT_INTENT, EXEMPT, IN_SCOPE, judge, on_plan
from kaiza.store.ground import Ground
from kaiza.store.seen import Seen
from kaiza.tools.table import Tool

MOST_WAITED = 10.0
"""Seconds for which a change waits for the verification of the log."""
HELD_BACK = frozenset({"INVALID_PATH", "PATH_TRAVERSAL_BLOCKED", "OUTSIDE_WORKSPACE"})


def locate(call: Call, house: House) -> None:
    """Find the session and the ground the call stands on."""
    call.ground = next(iter(house.grounds.values()))
    if call.ask.tool_name == "begin_session":
        return
    named = call.arguments.get("session_id")
    found = _open(named, call, house) if isinstance(named, str) else []
    if named is None and call.ask.conversational:
        found = [one for begun in sorted(house.begun) for one in _open(begun, call, house)]
    if len(found) == 1:
        call.ground, call.session = found[0]


def _open(session_id: str, call: Call, house: House) -> list[tuple[Ground, Session]]:
    """The ground on which a session is open."""
    for ground in house.grounds.values():
        session = ground.session(session_id, call.timestamp)
        if session is not None and session.workspace_root == ground.root:  # a copy brings the original's log along
            return [(ground, session)]
    return []


def understood(call: Call, tool: Tool) -> tuple[object, errors.SystemError | None]:
    """The typed request; what is wrong with a path is held back until the paths' turn."""
    root = call.session.workspace_root if call.session else None
    try:
        return tool.parse(call.arguments, root), None
    except errors.SystemError as found:
        if found.error_code not in HELD_BACK:
            raise
        return None, found


def case_of(call: Call, card: Card, house: House, request: object, fault: errors.SystemError | None) -> Case:
    """Everything the rules may look at."""
    ground = call.ground
    assert ground is not None  # noqa: S101  _locate has been here
    paths = _paths_of(request)
    unverified = _unverified(call, ground) if card.safety_level == CHANGES else None
    call.plan_id, reading = _plan_of(call, ground)
    return Case(
        card=card,
        arguments=call.arguments,
        now=call.timestamp,
        facts=ground.facts,
        session=call.session,
        bound_role=house.bound_role,
        damage=ground.damage(),
        unverified=unverified,
        fault=fault,
        paths=paths,
        hidden=tuple(path for path in paths if ground.unreadable(path)),
        plan_id=call.plan_id,
        reading=reading,
        by_command=ground.settings.approval_by_command,
    )


def _unverified(call: Call, ground: Ground) -> Mapping[str, int] | None:
    """Wait, for a change, until the whole log was verified; how far that has come where it takes too long."""
    if call.session is None:
        return None
    return ground.unverified(min(MOST_WAITED, max(0.0, call.deadline - time.monotonic())))


def under_plan(case: Case, tool: Tool, request: object, view: Seen) -> Case:
    """Judge a change by its plan: the approval, then what is to happen to which file.

    What keeps a file from being changed at all is told only to whom the plan allows to change it.
    """
    held: errors.SystemError | None = None
    try:
        case = replace(case, wanted=tool.wanted(request, view))
    except errors.SystemError as found:
        if found.error_code in HELD_BACK:
            raise
        held = found
    judge(on_plan(case), case)
    if case.card.name in EXEMPT:
        return case
    if held is not None:
        raise held
    judge(IN_SCOPE, case)
    return case


def as_of_now(case: Case, ground: Ground) -> Case:
    """The case by this moment's time and damage, and by the bytes that the plan's file has by now."""
    stored = ground.plans.read(case.plan_id) if case.plan_id else None
    return replace(case, now=now(), damage=ground.damage(), reading=stored.reading if stored else None)


def refusal_by_now(case: Case, ground: Ground) -> errors.SystemError | None:
    """What stops by now what was allowed when the call began: also what other processes recorded since."""
    ground.log.follow()
    try:
        judge(AT_INTENT, as_of_now(case, ground))
    except errors.SystemError as refusal:
        return refusal
    return None


def _plan_of(call: Call, ground: Ground) -> tuple[str | None, Reading | None]:
    """The plan whose bytes have the asked hash, or had it when they were approved; as it is now."""
    asked = told.plan_hash(call.arguments)
    if asked is None:
        return None, None
    stored = ground.plans.by_hash(asked)
    if stored is None:
        sealed = ((one, seal.plan_hash) for one, seal in ground.facts.seals.items())
        said = (*ground.facts.approvals.items(), *sealed)
        plan_id = next((one for one, plan_hash in said if plan_hash == asked), None)
        stored = ground.plans.read(plan_id) if plan_id else None
        return plan_id, stored.reading if stored else None
    return stored.plan_id, stored.reading


@cache
def _members(kind: Any) -> tuple[str, ...]:
    return tuple(one.name for one in fields(kind))


def _paths_of(request: Any) -> tuple[RelPath, ...]:
    """Every path that a typed request names."""
    if request is None:
        return ()
    found: list[RelPath] = []
    for name in _members(type(request)):  # type: ignore[arg-type]
        value = getattr(request, name)
        if isinstance(value, RelPath):
            found.append(value)
        elif isinstance(value, tuple):
            found.extend(item for item in value if isinstance(item, RelPath))
    return tuple(found)
