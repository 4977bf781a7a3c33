"""Gathers what the rules judge: session, typed request, plan, and the state of the workspace."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import cache
from typing import Any

from kaiza.boundary.call import Call, Services
from kaiza.clock import current_timestamp
from kaiza.domain import errors
from kaiza.domain.audit import redaction
from kaiza.domain.audit.projection import Session
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.plans.approval import NO_EVIDENCE
from kaiza.domain.plans.parser import StoredPlan
from kaiza.domain.tool_card import ADD_ONLY, CHANGES_FILES, ToolCard
from kaiza.policy.case import Case
from kaiza.policy.judge import EXEMPT_TOOLS, INTENT_RULES, SCOPE_RULES, judge, rules_on_plan
from kaiza.store.crash_recovery import recover_if_due
from kaiza.store.tool_view import ToolView
from kaiza.store.workspace import Workspace
from kaiza.tools.registry import Tool

MAX_VERIFICATION_WAIT = 10.0
"""Seconds for which a call waits until the log is read or verified; then it is refused and may be retried."""
DEFERRED_CODES = frozenset({"INVALID_PATH", "PATH_TRAVERSAL_BLOCKED", "OUTSIDE_WORKSPACE"})
"""Faults of a path. They are judged in the order of the rules, after session and role."""


def find_session(call: Call, services: Services) -> None:
    """Set the call's session and workspace.

    Without a session the call belongs to the first workspace that has a log, or to the principal's: its refusal has to
    be recorded somewhere.
    """
    principal = call.call_request.principal
    if principal is not None:
        call.workspace = services.workspaces[principal.workspace_root]
    else:
        workspaces = services.workspaces.values()
        call.workspace = next((each for each in workspaces if each.is_recording()), next(iter(workspaces)))
    if call.call_request.tool_name == "begin_session":
        return
    found = [match for named in _named_sessions(call, services) for match in _find_open_session(named, call, services)]
    if len(found) == 1:
        call.workspace, call.session = found[0]
        services.clock.note_use(call.session.session_id)
        call.workspace.served_sessions.note(call.session.session_id)


def recover_first(call: Call) -> None:
    """Recover what a killed process left, before anything of the call is read or judged. See `recover_if_due`."""
    # A session's begin recovers too, and answers what became of it.
    if call.workspace is not None and call.call_request.tool_name != "begin_session":
        recover_if_due(call.workspace, call.timestamp, call.request_id, 0.0)


def wait_for_session(call: Call, services: Services) -> None:
    """Look for the session again once the logs are read in which it may have begun; or set `unread`."""
    principal = call.call_request.principal
    roots = (principal.workspace_root,) if principal else tuple(services.workspaces)
    unread = [services.workspaces[root] for root in roots if services.workspaces[root].audit_state.is_partial]
    if call.session is not None or not unread or not _named_sessions(call, services):
        return
    for workspace in unread:
        call.unread = workspace.projection.wait(_waiting_time(call)) or call.unread
    find_session(call, services)
    recover_first(call)


def _named_sessions(call: Call, services: Services) -> Sequence[str]:
    """The session that the call names, or those that its connection implies."""
    session_id = call.arguments.get("session_id")
    if isinstance(session_id, str):
        return (session_id,)
    # A session may be implied only by the connection that began it, and only if there is exactly one.
    return sorted(services.own_sessions) if session_id is None and call.call_request.conversational else ()


def _find_open_session(session_id: str, call: Call, services: Services) -> list[tuple[Workspace, Session]]:
    principal = call.call_request.principal
    for workspace in services.workspaces.values():
        session = workspace.find_session(session_id, call.timestamp)
        # A copied workspace has the original's log and with it the original's sessions; they are not valid here.
        if session is None or session.workspace_root != workspace.root:
            continue
        # The caller began it: with the same token over HTTP, or on stdio.
        is_callers = session.principal == call.principal_label and (
            principal is None or session.workspace_root == principal.workspace_root
        )
        if is_callers and services.clock.is_in_use(session, services.caps.session_idle_hours):
            return [(workspace, session)]
    return []


def parse_request(call: Call, tool: Tool, card: ToolCard) -> tuple[object, errors.SystemError | None]:
    """Return the typed request, or None and the fault of a path, which the rules judge in their order."""
    root = call.session.workspace_root if call.session else None
    try:
        return tool.parse(call.call_request.arguments if card.checks_own_arguments else call.arguments, root), None
    except errors.SystemError as error:
        if error.error_code not in DEFERRED_CODES:
            raise
        return None, error


def build_case(
    call: Call, card: ToolCard, services: Services, request: object, fault: errors.SystemError | None
) -> Case:
    """Gather everything that the rules may read."""
    workspace = call.workspace
    assert workspace is not None  # noqa: S101  find_session has set it
    paths = _request_paths(request)
    is_change = card.safety_level == CHANGES_FILES
    unverified = _wait_for_log(call, card, workspace)
    call.plan_id, stored = find_plan(call, workspace)
    return Case(
        card=card,
        arguments=call.arguments,
        now=current_timestamp(),
        audit_state=workspace.audit_state,
        session=call.session,
        bound_role=services.offer.bound_role,
        token_role=call.call_request.principal.role if call.call_request.principal else None,
        damage=workspace.damage(),
        unverified=unverified,
        unread=call.unread,
        fault=fault,
        paths=paths,
        hidden=tuple(path for path in paths if workspace.is_unreadable(path)),
        nested=workspace.nested_paths(paths) if is_change else (),
        plan_id=call.plan_id,
        parsed=stored.parsed if stored else None,
        required_approval=workspace.settings.required_approval,
        foreign=workspace.binding.is_foreign,
        evidence=workspace.plan_evidence(stored) if stored and is_change else NO_EVIDENCE,
    )


def _wait_for_log(call: Call, card: ToolCard, workspace: Workspace) -> Mapping[str, int] | None:
    """Wait until the log is known as far as the call needs it; return the progress if the wait was too short."""
    if call.session is None or card.safety_level not in (CHANGES_FILES, ADD_ONLY):
        return None
    if card.safety_level == ADD_ONLY:
        return workspace.projection.wait(_waiting_time(call))
    # Only changes wait for the verification: under a log that was tampered with they could rest on a forged approval.
    progress = workspace.verification_progress(_waiting_time(call))
    if progress is None:
        recover_if_due(workspace, call.timestamp, call.request_id, 0.0)
    return progress


def _waiting_time(call: Call) -> float:
    return min(MAX_VERIFICATION_WAIT, max(0.0, call.deadline - time.monotonic()))


def judge_under_plan(case: Case, tool: Tool, request: object, view: ToolView) -> Case:
    """Judge a change by its plan: first the approval, then the operations it requests.

    An error met while looking at the files is raised after the approval is judged: without an approved plan, a caller
    learns nothing about them.
    """
    file_error: errors.SystemError | None = None
    try:
        case = replace(case, requested_operations=tool.requested_operations(request, view))
    except errors.SystemError as error:
        if error.error_code in DEFERRED_CODES:
            raise
        file_error = error
    judge(rules_on_plan(case), case)
    if case.card.name in EXEMPT_TOOLS:
        return case  # which files an undo touches is known only from its result
    if file_error is not None:
        raise file_error
    judge(SCOPE_RULES, case)
    return case


def refresh_case(case: Case, workspace: Workspace) -> Case:
    """The case with the current time, damage, session and bytes of the plan."""
    stored = workspace.plans.read(case.plan_id) if case.plan_id else None
    # Revoking a token ends its sessions. Their calls in flight must not change anything after that.
    is_open = case.session is not None and case.session.session_id in workspace.audit_state.sessions
    session = case.session if is_open else None
    state, damage = workspace.audit_state, workspace.damage()
    case = replace(case, now=current_timestamp(), audit_state=state, damage=damage, session=session)
    if stored is None:
        return replace(case, parsed=None, evidence=NO_EVIDENCE)
    is_same = case.parsed is not None and case.parsed.plan_hash == stored.parsed.plan_hash
    evidence = workspace.refresh_evidence(stored, case.evidence if is_same else NO_EVIDENCE)
    return replace(case, parsed=stored.parsed, evidence=evidence)


def find_current_refusal(case: Case, workspace: Workspace) -> errors.SystemError | None:
    """Judge the case again with the records that other processes have appended since; None if nothing refuses it."""
    workspace.log.follow()
    try:
        judge(INTENT_RULES, refresh_case(case, workspace))
    except errors.SystemError as refusal:
        return refusal
    return None


def find_plan(call: Call, workspace: Workspace) -> tuple[str | None, StoredPlan | None]:
    """Find the plan that has, or had when it was approved or sealed, the requested hash. Its text is the current one.

    By the old hash too, so that a plan edited after its approval is refused as changed and not as unknown.
    """
    plan_hash = redaction.requested_plan_hash(call.arguments)
    if plan_hash is None:
        return None, None
    stored = workspace.plans.find_by_hash(plan_hash)
    if stored is not None:
        return stored.plan_id, stored
    sealed = ((plan_id, seal.plan_hash) for plan_id, seal in workspace.audit_state.seals.items())
    recorded = (*workspace.audit_state.approvals.items(), *sealed)
    plan_id = next((plan_id for plan_id, recorded_hash in recorded if recorded_hash == plan_hash), None)
    return plan_id, workspace.plans.read(plan_id) if plan_id else None


@cache
def _field_names(request_type: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(request_type))


def _request_paths(request: Any) -> tuple[RelPath, ...]:
    """Every path in the fields of a typed request, so that no tool has to list its own."""
    if request is None:
        return ()
    paths: list[RelPath] = []
    for name in _field_names(type(request)):  # type: ignore[arg-type]
        value = getattr(request, name)
        if isinstance(value, RelPath):
            paths.append(value)
        elif isinstance(value, tuple):
            paths.extend(item for item in value if isinstance(item, RelPath))
    return tuple(paths)
