"""What is known of a call before it is judged: its session, its typed request, the facts the rules look at."""

import time
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from typing import Any

from kaiza.boundary.call import Call, Services, current_timestamp
from kaiza.domain import errors
from kaiza.domain.audit import redaction
from kaiza.domain.audit.projection import Session
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.plans.parser import ParsedPlan
from kaiza.domain.tool_card import CHANGES_FILES, ToolCard
from kaiza.policy.case import Case
from kaiza.policy.judge import EXEMPT_TOOLS, INTENT_RULES, SCOPE_RULES, judge, judge_plan_rules
from kaiza.store.tool_view import ToolView
from kaiza.store.workspace import Workspace
from kaiza.tools.registry import Tool

MAX_VERIFICATION_WAIT = 10.0
"""Seconds for which a change waits for the verification of the log."""
DEFERRED_CODES = frozenset({"INVALID_PATH", "PATH_TRAVERSAL_BLOCKED", "OUTSIDE_WORKSPACE"})


def find_session(call: Call, house: Services) -> None:
    """Find the session and the ground the call stands on."""
    call.workspace = next(iter(house.workspaces.values()))
    if call.call_request.tool_name == "begin_session":
        return
    named = call.arguments.get("session_id")
    found = _find_open_session(named, call, house) if isinstance(named, str) else []
    if named is None and call.call_request.conversational:
        found = [one for begun in sorted(house.own_sessions) for one in _find_open_session(begun, call, house)]
    if len(found) == 1:
        call.workspace, call.session = found[0]


def _find_open_session(session_id: str, call: Call, house: Services) -> list[tuple[Workspace, Session]]:
    """The ground on which a session is open."""
    for ground in house.workspaces.values():
        session = ground.find_session(session_id, call.timestamp)
        if session is not None and session.workspace_root == ground.root:  # a copy brings the original's log along
            return [(ground, session)]
    return []


def parse_request(call: Call, tool: Tool) -> tuple[object, errors.SystemError | None]:
    """The typed request; what is wrong with a path is held back until the paths' turn."""
    root = call.session.workspace_root if call.session else None
    try:
        return tool.parse(call.arguments, root), None
    except errors.SystemError as found:
        if found.error_code not in DEFERRED_CODES:
            raise
        return None, found


def build_case(call: Call, card: ToolCard, house: Services, request: object, fault: errors.SystemError | None) -> Case:
    """Everything the rules may look at."""
    ground = call.workspace
    assert ground is not None  # noqa: S101  _locate has been here
    paths = _request_paths(request)
    unverified = _wait_for_verification(call, ground) if card.safety_level == CHANGES_FILES else None
    call.plan_id, reading = _find_plan(call, ground)
    return Case(
        card=card,
        arguments=call.arguments,
        now=call.timestamp,
        audit_state=ground.audit_state,
        session=call.session,
        bound_role=house.bound_role,
        damage=ground.damage(),
        unverified=unverified,
        fault=fault,
        paths=paths,
        hidden=tuple(path for path in paths if ground.is_unreadable(path)),
        plan_id=call.plan_id,
        parsed=reading,
        by_command=ground.settings.approval_by_command,
    )


def _wait_for_verification(call: Call, ground: Workspace) -> Mapping[str, int] | None:
    """Wait, for a change, until the whole log was verified; how far that has come where it takes too long."""
    if call.session is None:
        return None
    return ground.verification_progress(min(MAX_VERIFICATION_WAIT, max(0.0, call.deadline - time.monotonic())))


def judge_under_plan(case: Case, tool: Tool, request: object, view: ToolView) -> Case:
    """Judge a change by its plan: the approval, then what is to happen to which file.

    What keeps a file from being changed at all is told only to whom the plan allows to change it.
    """
    held: errors.SystemError | None = None
    try:
        case = replace(case, requested_operations=tool.requested_operations(request, view))
    except errors.SystemError as found:
        if found.error_code in DEFERRED_CODES:
            raise
        held = found
    judge(judge_plan_rules(case), case)
    if case.card.name in EXEMPT_TOOLS:
        return case
    if held is not None:
        raise held
    judge(SCOPE_RULES, case)
    return case


def refresh_case(case: Case, ground: Workspace) -> Case:
    """The case by this moment's time and damage, and by the bytes that the plan's file has by now."""
    stored = ground.plans.read(case.plan_id) if case.plan_id else None
    return replace(case, now=current_timestamp(), damage=ground.damage(), parsed=stored.parsed if stored else None)


def find_current_refusal(case: Case, ground: Workspace) -> errors.SystemError | None:
    """What stops by now what was allowed when the call began: also what other processes recorded since."""
    ground.log.follow()
    try:
        judge(INTENT_RULES, refresh_case(case, ground))
    except errors.SystemError as refusal:
        return refusal
    return None


def _find_plan(call: Call, ground: Workspace) -> tuple[str | None, ParsedPlan | None]:
    """The plan whose bytes have the asked hash, or had it when they were approved; as it is now."""
    asked = redaction.requested_plan_hash(call.arguments)
    if asked is None:
        return None, None
    stored = ground.plans.find_by_hash(asked)
    if stored is None:
        sealed = ((one, seal.plan_hash) for one, seal in ground.audit_state.seals.items())
        said = (*ground.audit_state.approvals.items(), *sealed)
        plan_id = next((one for one, plan_hash in said if plan_hash == asked), None)
        stored = ground.plans.read(plan_id) if plan_id else None
        return plan_id, stored.parsed if stored else None
    return stored.plan_id, stored.parsed


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    return tuple(one.name for one in fields(kind))


def _request_paths(request: Any) -> tuple[RelPath, ...]:
    """Every path that a typed request names."""
    if request is None:
        return ()
    found: list[RelPath] = []
    for name in _field_names(type(request)):  # type: ignore[arg-type]
        value = getattr(request, name)
        if isinstance(value, RelPath):
            found.append(value)
        elif isinstance(value, tuple):
            found.extend(item for item in value if isinstance(item, RelPath))
    return tuple(found)
