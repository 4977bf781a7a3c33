"""The boundary around every tool call: judge it, run the tool, make its changes, record the outcome.

`wrap_handler` puts it around one tool. A call gets exactly one outcome, whose record is in the audit log before the
caller sees it, and no exception leaves the handler.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial, wraps

from kaiza.boundary.call import Call, ProgressReporter, Services, limit_answer, stamp_call
from kaiza.boundary.case import (
    build_case,
    find_current_refusal,
    find_session,
    judge_under_plan,
    parse_request,
    recover_first,
    wait_for_session,
)
from kaiza.boundary.clock import DeterministicClock, SystemClock
from kaiza.boundary.outcome import as_system_error, prepare_recording, record_outcome
from kaiza.domain import errors
from kaiza.domain.audit.projection import Session
from kaiza.domain.call import Outcome
from kaiza.domain.caps import Caps
from kaiza.domain.paging import response_size
from kaiza.domain.plain_values import is_instance, plain_text, type_name
from kaiza.domain.roles import EXECUTOR, parse_role
from kaiza.domain.tool_card import CHANGES_FILES, ToolCard
from kaiza.policy.case import Case
from kaiza.policy.judge import judge, rules_for
from kaiza.policy.rules.arguments_sound import check_arguments_sound
from kaiza.policy.rules.plan_approved import approval_basis
from kaiza.policy.rules.readable import read_refusal
from kaiza.policy.rules.tier_offered import check_tier_offered
from kaiza.store.config import roots
from kaiza.store.config.schema_registry import ToolIo
from kaiza.store.tool_view import ToolView
from kaiza.tools.registry import Tool
from kaiza.tools.view import Answer, WorkspaceView

__all__ = [
    "Call",
    "DeterministicClock",
    "Handler",
    "Services",
    "SystemClock",
    "is_wrapped",
    "refuse_call",
    "stamp_call",
    "wrap_handler",
]

_LAST_MEMBERS = ("truncated", "nextCursor", "next")
_LISTING_TOOLS = frozenset({"begin_session", "list_plans"})
Handler = Callable[[Call], Outcome | None]


def wrap_handler(tool: Tool, card: ToolCard, schemas: ToolIo, services: Services) -> Handler:
    """Return the handler of one tool: its whole call, from raw arguments to recorded outcome.

    The handler returns None where the deadline claimed the call first; the timeout is its outcome then.
    """

    @wraps(tool.run)
    def handler(call: Call) -> Outcome | None:
        try:
            find_session(call, services)
            recover_first(call)
            _require_tier(card, services)
            if not card.checks_own_arguments:
                _validate_arguments(call, schemas)
            if card.needs_session:
                wait_for_session(call, services)
            request, path_error = parse_request(call, tool, card)
            case = build_case(call, card, services, request, path_error)
            judge(rules_for(card), case)
            view = _open_view(call, card, services, case)
            if card.safety_level == CHANGES_FILES:
                # Taken before the tool runs: at its intent, an undo is compared with every record appended since.
                call.last_seen_seq = view.last_seq
                case = judge_under_plan(case, tool, request, view)
                _record_edited_approval(call, case)
            answer = _complete_output(_run_tool(tool, request, view), call, card, schemas)
            if card.name in _LISTING_TOOLS and call.workspace is not None:
                call.workspace.seen_plans.flush()  # a commit that follows at once must not look like an arrival
            _validate_answer(answer, schemas, services.caps)
            if card.safety_level == CHANGES_FILES and answer.changes:
                from kaiza.boundary.change import execute_change  # noqa: PLC0415  read-only sessions never import it

                return execute_change(call, case, answer, services, view)
        # BaseException: a tool that raises SystemExit or KeyboardInterrupt must not leave the client without an answer.
        except BaseException as raised:  # noqa: BLE001
            error = as_system_error(raised, "INTERNAL_ERROR")
            return record_outcome(call, services, error=error) if call.claim() else None
        return record_outcome(call, services, answer=answer) if call.claim() else None

    return handler


def is_wrapped(handler: Handler, tool: Tool) -> bool:
    """Whether a handler is the boundary around that tool."""
    return getattr(handler, "__wrapped__", None) is tool.run


def refuse_call(call: Call, services: Services, error: errors.SystemError) -> Outcome | None:
    """Record and return an error without running a tool: an unknown tool, or a call past its deadline."""
    if not call.claim():
        return None
    try:
        find_session(call, services)
        recover_first(call)
    except BaseException as raised:  # noqa: BLE001  see wrap_handler
        error = as_system_error(raised, "INTERNAL_ERROR")
    return record_outcome(call, services, error=error)


def _require_tier(card: ToolCard, services: Services) -> None:
    refusal = check_tier_offered(card, services.offer)
    if refusal is not None:
        raise refusal


def _validate_arguments(call: Call, schemas: ToolIo) -> None:
    if not isinstance(call.call_request.arguments, Mapping):
        raise errors.SystemError.tool_failure(
            "INVALID_PARAMS", human_message="The arguments are not an object. Pass them as a JSON object."
        )
    if not schemas.input.is_surely_valid(call.arguments):
        refusal = check_arguments_sound(schemas.input.find_faults(call.arguments))
        if refusal is not None:
            raise refusal


def _open_view(call: Call, card: ToolCard, services: Services, case: Case) -> ToolView:
    """The tool's view of the workspace; `begin_session` gets the session that it is about to open."""
    if card.name == "begin_session":
        _propose_session(call, services)
    assert call.workspace is not None  # noqa: S101  find_session has set it
    principal = call.call_request.principal
    # A principal sees only its own workspace.
    roots_shown = {} if principal is None else {"workspace_roots": [principal.workspace_root]}
    return ToolView(
        workspace=call.workspace,
        _session=call.session,
        caps=limit_answer(call, services.caps),
        server_info={**services.server_info, **roots_shown},
        refuse_read=read_refusal,
        is_out_of_time=lambda: time.monotonic() > call.deadline,
        report_progress=ProgressReporter(call).report,
        now=call.timestamp,
        request_id=call.request_id,
        current_refusal=partial(find_current_refusal, case, call.workspace),
        unsandboxed_checks="allow_unsandboxed_checks" in services.offer.allowed,
        implies_session=call.call_request.conversational,
    )


def _propose_session(call: Call, services: Services) -> None:
    """Attach the new session to the call. It is open once the call's record is in the log, and not before."""
    principal = call.call_request.principal
    allowed = (principal.workspace_root,) if principal else tuple(services.workspaces)
    root = roots.select_root(allowed, call.arguments.get("workspace_root"))
    workspace = services.workspaces[root]
    prepare_recording(workspace)
    if not workspace.is_initialized():
        raise errors.SystemError.invariant_violation(
            "NOT_READY",
            error_code="SESSION_INITIALIZATION_FAILED",
            human_message="The workspace has no plans/ yet. Ask a person to run kaiza init there.",
        )
    call.workspace = workspace
    call.session = Session(
        session_id=services.clock.new_session_id(call.request_id),
        role=_choose_role(call, services),
        workspace_root=root,
        begun_at=call.timestamp,
        last_call_at=call.timestamp,
        client=call.arguments.get("client") or call.call_request.client,
        principal=call.principal_label,
    )


def _choose_role(call: Call, services: Services) -> str:
    """The requested role; if none is given the one that the server or the token is for, else executor."""
    principal = call.call_request.principal
    default = services.offer.bound_role or (principal.role if principal else None) or EXECUTOR
    return parse_role(call.arguments.get("role") or default)


def _record_edited_approval(call: Call, case: Case) -> None:
    """Seal a plan that was approved by editing at the first call that sees it, so that a commit takes nothing away."""
    if approval_basis(case) == "edited" and call.workspace is not None:
        from kaiza.boundary.plan_seal import record_plan_seal  # noqa: PLC0415  read-only sessions never import it

        try:
            record_plan_seal(call, case, call.workspace)
        except BaseException as raised:
            raise as_system_error(raised, "FILE_WRITE_FAILED") from raised


def _run_tool(tool: Tool, request: object, view: WorkspaceView) -> Answer:
    try:
        answer = tool.run(request, view)
    except BaseException as raised:
        raise as_system_error(raised, "UNKNOWN_TOOL_FAILURE") from raised
    return _copy_answer(answer)


def _copy_answer(answer: object) -> Answer:
    """Require an answer, and copy its members, so that their own code runs here for the last time."""
    # Checked although it is typed: an error object returned as an answer would be recorded as a success.
    if not is_instance(answer, Answer) or not (
        all(is_instance(member, (list, tuple)) for member in (answer.changes, answer.diagnostics))
        and all(is_instance(member, Mapping) for member in (answer.output, answer.detail))
    ):
        raise errors.SystemError.tool_failure(
            "INTERNAL_ERROR",
            human_message="The tool did not return an answer. Report this as a fault of Kaiza.",
            cause={"type": type_name(answer)},
        )
    return Answer(
        dict(answer.output),
        changes=tuple(answer.changes),
        detail=dict(answer.detail),
        diagnostics=list(map(plain_text, answer.diagnostics)),
        exempt=answer.exempt is True,
    )


def _complete_output(answer: Answer, call: Call, card: ToolCard, schemas: ToolIo) -> Answer:
    """Order the members, and add the call's id where the schema has it: an undo names the changes of a call by it."""
    if card.checks_own_arguments:
        return answer  # the order of a context tool's members is part of its contract
    has_id = "request_id" in schemas.output.schema["properties"]
    output = {**answer.output, "request_id": call.request_id} if has_id else answer.output
    # The summary first, and last what tells how to go on: a client may show only both ends.
    first = {name: output[name] for name in ("summary",) if name in output}
    last = {name: output[name] for name in _LAST_MEMBERS if name in output}
    ordered = {**first, **{name: value for name, value in output.items() if name not in last}, **last}
    return replace(answer, output=ordered)


def _validate_answer(answer: Answer, schemas: ToolIo, caps: Caps) -> None:
    """Require an output that is valid under its schema and small enough for every client."""
    if not schemas.output.is_valid(dict(answer.output)):
        raise errors.SystemError.tool_failure(
            "INTERNAL_ERROR",
            human_message="The tool's answer does not match its schema. Report this as a fault of Kaiza.",
            cause={"members": sorted(map(str, answer.output))[:20]},
        )
    size = response_size.response_bytes(answer.output) + response_size.RESERVED_BYTES
    if size > caps.response_bytes:
        raise errors.SystemError.tool_failure(
            "CAP_EXCEEDED",
            human_message="The answer is larger than one response may be. Ask for less at a time.",
            cause={"cap": "response_bytes", "limit": caps.response_bytes, "size": size},
        )
