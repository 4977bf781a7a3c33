"""Logs each request and its answer in the run log, for every transport."""

import json
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kaiza.domain.error_codes import SYSTEM_ERROR_CODES
from kaiza.domain.run_event import RunError, RunEvent, derive_ids
from kaiza.server.pipeline import Exchange
from kaiza.wire import framing
from kaiza.wire.message import InvalidMessage
from kaiza.wire.numbers import parse_integer
from kaiza.wire.shape import find_dialect

if TYPE_CHECKING:
    from kaiza.domain.call import Outcome
    from kaiza.store.runs.run_log import RunLog

MAX_WAITING: Final = 64
"""The last requests before the run log can begin, because its workspace is not ready. They are kept for it."""

MAX_DECODED: Final = 1 << 16
"""Longest refused line whose members are logged: it is decoded once more, which would delay other requests."""

_OPENING_METHODS: Final = frozenset({"initialize", "server/discover"})
_ERROR_MEMBER: Final = b',"error":{'
_RESULT_MEMBER: Final = b',"result":'


class RunLogger:
    """Logger of one process. The run log is in a workspace of these roots. Thread-safe."""

    def __init__(self, roots: Sequence[str], *, is_deterministic: bool = False) -> None:
        self._roots = roots
        self._is_deterministic = is_deterministic
        self._lock = threading.Lock()  # protects the members below
        self._waiting: deque[RunEvent] = deque(maxlen=MAX_WAITING)
        self._run_log: RunLog | None = None

    def log_exchange(self, exchange: Exchange) -> None:
        """Log a request that has been answered."""
        event = describe_exchange(exchange, is_deterministic=self._is_deterministic)
        with self._lock:
            self._waiting.append(event)
            # An opening waits for the next request, which would else wait for the run log's imports.
            if event.method not in _OPENING_METHODS and self._open_log().append(self._waiting):
                self._waiting.clear()

    def _open_log(self) -> "RunLog":
        if self._run_log is None:
            from kaiza.store.runs.run_log import RunLog  # noqa: PLC0415  not before the first tool call

            self._run_log = RunLog(self._roots, is_deterministic=self._is_deterministic)
        return self._run_log


def describe_exchange(exchange: Exchange, *, is_deterministic: bool = False) -> RunEvent:
    """The event of a request and its answer. Deterministic ids follow from the request."""
    request, incoming, outcome = exchange.message, exchange.incoming, exchange.outcome
    refused = _decode_refused(exchange)
    method = refused.get("method") if isinstance(request, InvalidMessage) else request.method
    method = method if isinstance(method, str) else None
    route = exchange.route or method
    payload = refused if isinstance(request, InvalidMessage) else request.params
    called = None if incoming is None else incoming.call
    return RunEvent(
        transport=exchange.transport,
        route=route,
        method=method,
        dialect=None if isinstance(request, InvalidMessage) else find_dialect(request),
        tool_id=outcome.tool_name if outcome is not None else called and called.tool_name,
        agent_id=exchange.agent or (called and called.client),
        input_bytes=exchange.size,
        output_bytes=len(exchange.answer),
        at=time.time(),
        seconds=time.monotonic() - exchange.began,
        error=_describe_outcome(outcome) if outcome is not None else _describe_answer(exchange.answer, refused),
        audit_seq=None if outcome is None or outcome.receipt is None else outcome.receipt.seq,
        ids=derive_ids(route, method, payload) if is_deterministic else None,
    )


def _decode_refused(exchange: Exchange) -> Mapping[str, Any]:
    """Members of a refused frame; none if it was no JSON object."""
    # A line with this code could not be decoded, and would take as long to fail again.
    is_decoded = isinstance(exchange.message, InvalidMessage) and exchange.message.error_code != "PARSE_ERROR"
    if not is_decoded or not isinstance(exchange.line, bytes) or len(exchange.line) > MAX_DECODED:
        return {}
    value = framing.decode_again(exchange.line)
    return value if isinstance(value, dict) else {}


def _describe_outcome(outcome: "Outcome") -> RunError | None:
    """The error of a tool call. Names of unknown arguments are the client's, so they are only counted."""
    if outcome.code is None:
        return None
    cause = (outcome.envelope or {}).get("cause")
    faults = cause.get("faults", ()) if isinstance(cause, Mapping) else ()
    known = [fault for fault in faults if not fault.get("unknown")]
    missing = [fault["argument"] for fault in known if fault["code"] == "MISSING_REQUIRED_FIELD"]
    invalid = [fault["argument"] for fault in known if fault["code"] != "MISSING_REQUIRED_FIELD"]
    found = {"missing": missing, "invalid": invalid, "unknown": len(faults) - len(known)}
    return RunError(outcome.code.name, {name: value for name, value in found.items() if value})


def _describe_answer(answer: bytes, refused: Mapping[str, Any]) -> RunError | None:
    """The error in an answer that no tool call made; None if it has a result."""
    # An id cannot contain either text: quotation marks in it are escaped.
    if _RESULT_MEMBER in answer or _ERROR_MEMBER not in answer:
        return None
    error = json.loads(answer, parse_int=parse_integer)["error"]
    code = error["data"].get("error_code")
    if code not in SYSTEM_ERROR_CODES:  # the dialect does not name it
        by_number = (name for name, row in SYSTEM_ERROR_CODES.items() if row.rpc == error["code"])
        code = next(by_number, "INTERNAL_ERROR")
    return RunError(code, _find_failing(refused) if code == "INVALID_ENVELOPE" and refused else {})


def _find_failing(refused: Mapping[str, Any]) -> Mapping[str, Any]:
    """Names of the members because of which a frame is refused."""
    missing = [name for name in ("id", "jsonrpc", "method") if name not in refused]
    request_id, method = refused.get("id", 0), refused.get("method", "method")
    faults = {
        "id": not isinstance(request_id, str | int | float) or isinstance(request_id, bool) or request_id == "",
        "jsonrpc": refused.get("jsonrpc", "2.0") != "2.0",
        "method": not isinstance(method, str) or not method,
        "params": not isinstance(refused.get("params", {}), dict),
    }
    invalid = [name for name, is_faulty in faults.items() if is_faulty]
    return {name: names for name, names in (("missing", missing), ("invalid", invalid)) if names}
