"""`wrap_handler`: judged, answered, carried out, recorded. The one place that catches.

A wrapped handler gives every call exactly one outcome, whose record is in the log before anybody hears of it.
"""

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial, wraps

from kaiza.boundary.call import Call, House, now, stamp
from kaiza.boundary.case import case_of, locate, refusal_by_now, under_plan, understood
from kaiza.boundary.outcome import as_ours, conclude
from kaiza.domain import errors, room
from kaiza.domain.call import Outcome
from kaiza.domain.caps import Caps
from kaiza.domain.card import CHANGES, Card
from kaiza.domain.session import Session
from kaiza.policy.arguments_sound import arguments_sound
from kaiza.policy.case import Case
from kaiza.policy.judge import judge, rules_for
from kaiza.policy.readable import refuse_read
from kaiza.store import roots
from kaiza.store.schemas import ToolIo
from kaiza.store.seen import Seen
from kaiza.tools.table import Tool
from kaiza.tools.view import Answer, ToolView

__all__ = ["Call", "Handler", "House", "is_wrapped", "now", "refuse", "stamp", "wrap_handler"]

Handler = Callable[[Call], Outcome | None]


def wrap_handler(tool: Tool, card: Card, schemas: ToolIo, house: House) -> Handler:
    """Put the boundary around one tool."""

    @wraps(tool.run)
    def handler(call: Call) -> Outcome | None:
        try:
            case, answer, view = _answered(call, tool, card, schemas, house)
            if card.safety_level == CHANGES and answer.changes:
                from kaiza.boundary.commit import carried_out  # noqa: PLC0415  a session without changes needs none of it

                return carried_out(call, case, answer, house, view)
        except BaseException as raised:  # noqa: BLE001  nothing that a call throws may leave a client without an answer
            return conclude(call, house, error=as_ours(raised, "INTERNAL_ERROR")) if call.take() else None
        return conclude(call, house, answer=answer) if call.take() else None

    return handler


def is_wrapped(handler: Handler, tool: Tool) -> bool:
    """Whether a handler is the boundary around that tool."""
    return getattr(handler, "__wrapped__", None) is tool.run


def refuse(call: Call, house: House, error: errors.SystemError) -> Outcome | None:
    """Answer a call without running anything: an unknown tool, or a clock that ran out."""
    if not call.take():
        return None
    try:
        locate(call, house)
    except BaseException as raised:  # noqa: BLE001  see the handler
        error = as_ours(raised, "INTERNAL_ERROR")
    return conclude(call, house, error=error)


def _answered(call: Call, tool: Tool, card: Card, schemas: ToolIo, house: House) -> tuple[Case, Answer, Seen]:
    """Steps 5 to 7: the arguments, the rules, the tool."""
    locate(call, house)
    if not isinstance(call.ask.arguments, Mapping):
        raise errors.SystemError.tool_failure(
            "INVALID_PARAMS", human_message="The arguments are not an object. Pass them as a JSON object."
        )
    if not schemas.input.passes(call.arguments):
        unsound = arguments_sound(schemas.input.iter_errors(call.arguments))
        if unsound is not None:
            raise unsound
    request, fault = understood(call, tool)
    case = case_of(call, card, house, request, fault)
    judge(rules_for(card), case)
    if card.name == "begin_session":
        _propose(call, house)
    view = _view(call, house, case)
    if card.safety_level == CHANGES:
        call.seen_seq = view.last_seq
        case = under_plan(case, tool, request, view)
    answer = _named(_ran(tool, request, view), call, schemas)
    _fits(answer, schemas, house.caps)
    return case, answer, view


def _propose(call: Call, house: House) -> None:
    """The session that a `begin_session` opens, should its record be written."""
    root = roots.chosen(tuple(house.grounds), call.arguments.get("workspace_root"))
    ground = house.grounds[root]
    if not ground.ready():
        raise errors.SystemError.tool_failure(
            "SESSION_INITIALIZATION_FAILED",
            human_message="The workspace has no plans/ and audit/ yet. Ask a person to run kaiza init there.",
        )
    call.ground = ground
    call.session = Session(
        session_id=str(uuid.uuid4()),
        role=call.arguments["role"],
        workspace_root=root,
        begun_at=call.timestamp,
        last_call_at=call.timestamp,
        client=call.arguments.get("client") or call.ask.client,
    )


def _view(call: Call, house: House, case: Case) -> Seen:
    assert call.ground is not None  # noqa: S101  _locate has been here
    return Seen(
        ground=call.ground,
        _session=call.session,
        caps=house.caps,
        server=house.server,
        refuse_read=refuse_read,
        over=lambda: time.monotonic() > call.deadline,
        now=call.timestamp,
        request_id=call.request_id,
        refusal_by_now=partial(refusal_by_now, case, call.ground),
    )


def _ran(tool: Tool, request: object, view: ToolView) -> Answer:
    """The tool itself; whatever it throws that nobody foresaw is a failure of the tool."""
    try:
        answer = tool.run(request, view)
    except BaseException as raised:
        raise as_ours(raised, "UNKNOWN_TOOL_FAILURE") from raised
    if not isinstance(answer, Answer) or not isinstance(answer.output, Mapping):
        raise errors.SystemError.tool_failure(
            "INTERNAL_ERROR",
            human_message="The tool gave something that is no answer. Report this as a fault of Kaiza.",
            cause={"type": type(answer).__name__},
        )
    return answer


def _named(answer: Answer, call: Call, schemas: ToolIo) -> Answer:
    """A change's answer names its call, so that it can be undone by that name."""
    if "request_id" not in schemas.output.schema["properties"]:
        return answer
    return replace(answer, output={**answer.output, "request_id": call.request_id})


def _fits(answer: Answer, schemas: ToolIo, caps: Caps) -> None:
    """An answer is what its schema says, and no longer than a client must read."""
    shape = schemas.output.schema
    if not shape["properties"].keys() >= answer.output.keys() >= set(shape["required"]):
        raise errors.SystemError.tool_failure(
            "INTERNAL_ERROR",
            human_message="The tool's answer is not what its schema says. Report this as a fault of Kaiza.",
            cause={"members": sorted(map(str, answer.output))[:20]},
        )
    size = room.weight(answer.output) + room.RESERVE
    if size > caps.response_bytes:
        raise errors.SystemError.tool_failure(
            "CAP_EXCEEDED",
            human_message="The answer is larger than one response may be. Ask for less at a time.",
            cause={"cap": "response_bytes", "limit": caps.response_bytes, "size": size},
        )
