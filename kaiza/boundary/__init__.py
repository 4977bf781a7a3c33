"""`wrap_handler`: judged, answered, carried out, recorded. The one place that catches.

A wrapped handler gives every call exactly one outcome, whose record is in the log before anybody hears of it.
"""

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial, wraps

from kaiza.boundary.call import Call, Services, current_timestamp, stamp_call
from kaiza.boundary.case import build_case, find_current_refusal, find_session, judge_under_plan, parse_request
from kaiza.boundary.outcome import as_system_error, record_outcome
from kaiza.domain import errors
from kaiza.domain.audit.projection import Session
from kaiza.domain.call import Outcome
from kaiza.domain.caps import Caps
from kaiza.domain.paging import response_size
from kaiza.domain.tool_card import CHANGES_FILES, ToolCard
from kaiza.policy.case import Case
from kaiza.policy.judge import judge, rules_for
from kaiza.policy.rules.arguments_sound import check_arguments_sound
from kaiza.policy.rules.readable import read_refusal
from kaiza.store.config import roots
from kaiza.store.config.schema_registry import ToolIo
from kaiza.store.tool_view import ToolView
from kaiza.tools.registry import Tool
from kaiza.tools.view import Answer, WorkspaceView

__all__ = [
    "Call",
    "Handler",
    "Services",
    "current_timestamp",
    "is_wrapped",
    "refuse_call",
    "stamp_call",
    "wrap_handler",
]

Handler = Callable[[Call], Outcome | None]


def wrap_handler(tool: Tool, card: ToolCard, schemas: ToolIo, house: Services) -> Handler:
    """Put the boundary around one tool."""

    @wraps(tool.run)
    def handler(call: Call) -> Outcome | None:
        try:
            case, answer, view = _judge_and_run(call, tool, card, schemas, house)
            if card.safety_level == CHANGES_FILES and answer.changes:
                from kaiza.boundary.change import execute_change  # noqa: PLC0415  a session without changes needs none of it

                return execute_change(call, case, answer, house, view)
        except BaseException as raised:  # noqa: BLE001  nothing that a call throws may leave a client without an answer
            return (
                record_outcome(call, house, error=as_system_error(raised, "INTERNAL_ERROR")) if call.claim() else None
            )
        return record_outcome(call, house, answer=answer) if call.claim() else None

    return handler


def is_wrapped(handler: Handler, tool: Tool) -> bool:
    """Whether a handler is the boundary around that tool."""
    return getattr(handler, "__wrapped__", None) is tool.run


def refuse_call(call: Call, house: Services, error: errors.SystemError) -> Outcome | None:
    """Answer a call without running anything: an unknown tool, or a clock that ran out."""
    if not call.claim():
        return None
    try:
        find_session(call, house)
    except BaseException as raised:  # noqa: BLE001  see the handler
        error = as_system_error(raised, "INTERNAL_ERROR")
    return record_outcome(call, house, error=error)


def _judge_and_run(
    call: Call, tool: Tool, card: ToolCard, schemas: ToolIo, house: Services
) -> tuple[Case, Answer, ToolView]:
    """Steps 5 to 7: the arguments, the rules, the tool."""
    find_session(call, house)
    if not isinstance(call.call_request.arguments, Mapping):
        raise errors.SystemError.tool_failure(
            "INVALID_PARAMS", human_message="The arguments are not an object. Pass them as a JSON object."
        )
    if not schemas.input.is_surely_valid(call.arguments):
        unsound = check_arguments_sound(schemas.input.iter_errors(call.arguments))
        if unsound is not None:
            raise unsound
    request, fault = parse_request(call, tool)
    case = build_case(call, card, house, request, fault)
    judge(rules_for(card), case)
    if card.name == "begin_session":
        _propose_session(call, house)
    view = _open_view(call, house, case)
    if card.safety_level == CHANGES_FILES:
        call.last_seen_seq = view.last_seq
        case = judge_under_plan(case, tool, request, view)
    answer = _with_request_id(_run_tool(tool, request, view), call, schemas)
    _require_valid_answer(answer, schemas, house.caps)
    return case, answer, view


def _propose_session(call: Call, house: Services) -> None:
    """The session that a `begin_session` opens, should its record be written."""
    root = roots.select_root(tuple(house.workspaces), call.arguments.get("workspace_root"))
    ground = house.workspaces[root]
    if not ground.is_initialized():
        raise errors.SystemError.tool_failure(
            "SESSION_INITIALIZATION_FAILED",
            human_message="The workspace has no plans/ and audit/ yet. Ask a person to run kaiza init there.",
        )
    call.workspace = ground
    call.session = Session(
        session_id=str(uuid.uuid4()),
        role=call.arguments["role"],
        workspace_root=root,
        begun_at=call.timestamp,
        last_call_at=call.timestamp,
        client=call.arguments.get("client") or call.call_request.client,
    )


def _open_view(call: Call, house: Services, case: Case) -> ToolView:
    assert call.workspace is not None  # noqa: S101  _locate has been here
    return ToolView(
        workspace=call.workspace,
        _session=call.session,
        caps=house.caps,
        server_info=house.server_info,
        refuse_read=read_refusal,
        is_out_of_time=lambda: time.monotonic() > call.deadline,
        now=call.timestamp,
        request_id=call.request_id,
        current_refusal=partial(find_current_refusal, case, call.workspace),
    )


def _run_tool(tool: Tool, request: object, view: WorkspaceView) -> Answer:
    """The tool itself; whatever it throws that nobody foresaw is a failure of the tool."""
    try:
        answer = tool.run(request, view)
    except BaseException as raised:
        raise as_system_error(raised, "UNKNOWN_TOOL_FAILURE") from raised
    if not isinstance(answer, Answer) or not isinstance(answer.output, Mapping):
        raise errors.SystemError.tool_failure(
            "INTERNAL_ERROR",
            human_message="The tool gave something that is no answer. Report this as a fault of Kaiza.",
            cause={"type": type(answer).__name__},
        )
    return answer


def _with_request_id(answer: Answer, call: Call, schemas: ToolIo) -> Answer:
    """A change's answer names its call, so that it can be undone by that name."""
    if "request_id" not in schemas.output.schema["properties"]:
        return answer
    return replace(answer, output={**answer.output, "request_id": call.request_id})


def _require_valid_answer(answer: Answer, schemas: ToolIo, caps: Caps) -> None:
    """An answer is what its schema says, and no longer than a client must read."""
    shape = schemas.output.schema
    if not shape["properties"].keys() >= answer.output.keys() >= set(shape["required"]):
        raise errors.SystemError.tool_failure(
            "INTERNAL_ERROR",
            human_message="The tool's answer is not what its schema says. Report this as a fault of Kaiza.",
            cause={"members": sorted(map(str, answer.output))[:20]},
        )
    size = response_size.response_bytes(answer.output) + response_size.RESERVED_BYTES
    if size > caps.response_bytes:
        raise errors.SystemError.tool_failure(
            "CAP_EXCEEDED",
            human_message="The answer is larger than one response may be. Ask for less at a time.",
            cause={"cap": "response_bytes", "limit": caps.response_bytes, "size": size},
        )
