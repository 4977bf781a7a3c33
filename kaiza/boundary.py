"""`wrap_handler`: judged, answered, carried out, recorded. The one place that catches.

A wrapped handler gives every call exactly one outcome, whose record is in the log before anybody hears of it.
"""

import os
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any

from kaiza.domain import codes, envelope, errors, record, room, told
from kaiza.domain.call import Ask, Outcome, Receipt
from kaiza.domain.caps import Caps
from kaiza.domain.card import Card
from kaiza.domain.paths import RelPath
from kaiza.domain.session import Session
from kaiza.policy.arguments_sound import arguments_sound
from kaiza.policy.case import Case
from kaiza.policy.judge import judge, rules_for
from kaiza.policy.readable import refuse_read
from kaiza.store import roots
from kaiza.store.ground import Ground
from kaiza.store.schemas import ToolIo
from kaiza.store.seen import Seen
from kaiza.tools.table import Tool
from kaiza.tools.view import Answer

HELD_BACK = frozenset({"INVALID_PATH", "PATH_TRAVERSAL_BLOCKED", "OUTSIDE_WORKSPACE"})
DURABLE_TOOLS = frozenset({"begin_session", "end_session"})


@dataclass(slots=True)
class Call:
    """A stamped ask. Whoever takes it first answers it: its handler, or the clock that ran out."""

    ask: Ask
    request_id: str
    timestamp: str
    started: float
    deadline: float
    ground: Ground | None = None
    session: Session | None = None
    _taken: threading.Lock = field(default_factory=threading.Lock)

    def take(self) -> bool:
        """True for exactly one caller, once."""
        return self._taken.acquire(blocking=False)

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments where they are an object, else nothing."""
        return self.ask.arguments if isinstance(self.ask.arguments, Mapping) else {}


@dataclass(frozen=True, slots=True)
class House:
    """What every call finds in place."""

    grounds: Mapping[str, Ground]
    caps: Caps
    bound_role: str | None
    server: Mapping[str, Any]
    begun: set[str]
    """The sessions that this process began."""


Handler = Callable[[Call], Outcome | None]


def now() -> str:
    """The time as records tell it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def stamp(ask: Ask, caps: Caps) -> Call:
    """Give a call its id, its time and its deadline."""
    started = time.monotonic()
    return Call(ask, str(uuid.uuid4()), now(), started, started + caps.tool_timeout_ms / 1000)


def wrap_handler(tool: Tool, card: Card, schemas: ToolIo, house: House) -> Handler:
    """Put the boundary around one tool."""

    def handler(call: Call) -> Outcome | None:
        try:
            answer = _answered(call, tool, card, schemas, house)
        except BaseException as raised:  # noqa: BLE001  nothing that a call throws may leave a client without an answer
            return _conclude(call, house, error=_as_ours(raised, "INTERNAL_ERROR")) if call.take() else None
        return _conclude(call, house, answer=answer) if call.take() else None

    return handler


def refuse(call: Call, house: House, error: errors.SystemError) -> Outcome | None:
    """Answer a call without running anything: an unknown tool, or a clock that ran out."""
    if not call.take():
        return None
    try:
        _locate(call, house)
    except BaseException as raised:  # noqa: BLE001  see the handler
        error = _as_ours(raised, "INTERNAL_ERROR")
    return _conclude(call, house, error=error)


def _answered(call: Call, tool: Tool, card: Card, schemas: ToolIo, house: House) -> Answer:
    """Steps 5 to 7: the arguments, the rules, the tool."""
    _locate(call, house)
    if not isinstance(call.ask.arguments, Mapping):
        raise errors.SystemError.tool_failure(
            "INVALID_PARAMS", human_message="The arguments are not an object. Pass them as a JSON object."
        )
    unsound = arguments_sound(schemas.input.iter_errors(call.arguments))
    if unsound is not None:
        raise unsound
    request, fault = _understood(call, tool)
    case = _case(call, card, house, request, fault)
    judge(rules_for(card), case)
    if card.name == "begin_session":
        _propose(call, house)
    answer = _ran(tool, request, _view(call, house))
    _fits(answer, schemas, house.caps)
    return answer


def _locate(call: Call, house: House) -> None:
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
        session = ground.session(session_id, call.timestamp) if ground.log.exists() else None
        if session is not None:
            return [(ground, session)]
    return []


def _understood(call: Call, tool: Tool) -> tuple[object, errors.SystemError | None]:
    """The typed request; what is wrong with a path is held back until the paths' turn."""
    root = call.session.workspace_root if call.session else None
    try:
        return tool.parse(call.arguments, root), None
    except errors.SystemError as found:
        if found.error_code not in HELD_BACK:
            raise
        return None, found


def _case(call: Call, card: Card, house: House, request: object, fault: errors.SystemError | None) -> Case:
    ground = call.ground
    assert ground is not None  # noqa: S101  _locate has been here
    paths = _paths_of(request)
    return Case(
        card=card,
        arguments=call.arguments,
        now=call.timestamp,
        facts=ground.facts,
        session=call.session,
        bound_role=house.bound_role,
        damage=ground.damage(),
        fault=fault,
        paths=paths,
        hidden=tuple(path for path in paths if ground.unreadable(path)),
    )


def _paths_of(request: object) -> tuple[RelPath, ...]:
    """Every path that a typed request names."""
    if request is None:
        return ()
    found: list[RelPath] = []
    for one in fields(request):  # type: ignore[arg-type]
        value = getattr(request, one.name)
        found.extend(item for item in (value if isinstance(value, tuple) else (value,)) if isinstance(item, RelPath))
    return tuple(found)


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


def _view(call: Call, house: House) -> Seen:
    assert call.ground is not None  # noqa: S101  _locate has been here
    return Seen(
        ground=call.ground,
        _session=call.session,
        caps=house.caps,
        server=house.server,
        refuse_read=refuse_read,
        over=lambda: time.monotonic() > call.deadline,
    )


def _ran(tool: Tool, request: object, view: Seen) -> Answer:
    """The tool itself; whatever it throws that nobody foresaw is a failure of the tool."""
    try:
        answer = tool.run(request, view)
    except BaseException as raised:
        raise _as_ours(raised, "UNKNOWN_TOOL_FAILURE") from raised
    if not isinstance(answer, Answer) or not isinstance(answer.output, Mapping):
        raise errors.SystemError.tool_failure(
            "INTERNAL_ERROR",
            human_message="The tool gave something that is no answer. Report this as a fault of Kaiza.",
            cause={"type": type(answer).__name__},
        )
    return answer


def _as_ours(raised: BaseException, error_code: str) -> errors.SystemError:
    """A SystemError of whatever was thrown; an older error class that names a registered code keeps it."""
    if isinstance(raised, errors.SystemError):
        return raised
    named = getattr(raised, "error_code", None) or getattr(raised, "code", None)
    known = named if isinstance(named, str) and named in codes.REGISTRY else error_code
    return errors.SystemError.from_unknown(
        raised,
        error_code=known,
        human_message="Something failed that nobody foresaw. Try once more, then report it with the request's time.",
        stack_trace="".join(traceback.format_exception(raised)),
    )


def _fits(answer: Answer, schemas: ToolIo, caps: Caps) -> None:
    """An answer is what its schema says, and no longer than a client must read."""
    shape = schemas.output.schema
    if not set(shape["required"]) <= answer.output.keys() <= shape["properties"].keys():
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


def _conclude(
    call: Call, house: House, *, answer: Answer | None = None, error: errors.SystemError | None = None
) -> Outcome:
    """Steps 10 and 11: the outcome's record, and only then the outcome."""
    body = _body(call, error)
    ground = call.ground
    durable = call.ask.tool_name in DURABLE_TOOLS
    written = None
    try:
        if ground is not None and ground.log.exists():
            written = ground.log.append(lambda: body, durable=durable)
    except BaseException as raised:  # noqa: BLE001  an outcome that is not on disk is not an outcome
        error = _as_ours(raised, "AUDIT_LOG_FAILED")
        body = _body(call, error)
    if error is None and written is not None and answer is not None:
        _remember(call, house)
        return Outcome(call.ask.tool_name, output=answer.output, receipt=_receipt(written))
    if error is None and answer is not None:
        return Outcome(call.ask.tool_name, output=answer.output)
    return _failed(call, error, written or body)


def _failed(call: Call, error: errors.SystemError | None, written: Mapping[str, Any]) -> Outcome:
    assert error is not None  # noqa: S101  an outcome is an answer or an error
    shown = envelope.of_record(written)
    if os.environ.get("DEBUG_STACK") == "true":
        shown["stack_trace"] = error.context.get("stack_trace") or "".join(traceback.format_exception(error))
    cap = shown["cause"].get("cap") if isinstance(shown["cause"], dict) else None
    return Outcome(
        call.ask.tool_name,
        envelope=shown,
        evidence=error.evidence,
        code=codes.lookup(error.error_code, cap),
        receipt=_receipt(written) if "seq" in written else None,
    )


def _body(call: Call, error: errors.SystemError | None) -> dict[str, Any]:
    """The call's record, before its place in the chain is known."""
    session = call.session if error is None or call.ask.tool_name != "begin_session" else None
    return record.compose(
        "call",
        timestamp=call.timestamp,
        request_id=call.request_id,
        session_id=session.session_id if session else None,
        role=session.role if session else None,
        workspace_root=session.workspace_root if session else None,
        tool_name=told.name(call.ask.tool_name),
        phase_id=told.phase_id(call.arguments),
        plan_hash=told.plan_hash(call.arguments),
        outcome="error" if error else "ok",
        error_code=error.error_code if error else None,
        human_message=error.human_message if error else None,
        invariant_id=error.invariant_id if error else None,
        cause=envelope.cause(error.cause) if error else None,
        arguments=told.arguments(call.ask.arguments),
        duration_ms=int((time.monotonic() - call.started) * 1000),
        client=session.client if session else call.ask.client,
        **({"detail": {"begun": True}} if session and call.ask.tool_name == "begin_session" else {}),
    )


def _receipt(written: Mapping[str, Any]) -> Receipt:
    return Receipt(written["seq"], written["entry_hash"])


def _remember(call: Call, house: House) -> None:
    """Keep which sessions this process began, and the index where sessions come and go."""
    session = call.session
    if session is None or call.ask.tool_name not in DURABLE_TOOLS:
        return
    if call.ask.tool_name == "begin_session":
        house.begun.add(session.session_id)
    else:
        house.begun.discard(session.session_id)
    if call.ground is not None:
        call.ground.keep_index(call.timestamp)
