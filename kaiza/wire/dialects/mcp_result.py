"""Outcomes of tool calls encoded for MCP: a result, a result that is an error, or an error of the protocol."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

from kaiza.domain.call import Outcome
from kaiza.wire import message as reply
from kaiza.wire.message import RequestId

RECEIPT_KEY: Final = "kaiza/receipt"
_MESSAGES: Final[Mapping[str, str]] = {
    "TOOL_NOT_FOUND": "Unknown tool",
    "INVALID_PARAMS": "Invalid request parameters",
}
_INVALID_PARAMS: Final = -32602


class ResultFormat(NamedTuple):
    """How results are worded: what the text block holds, and what the client's revision wants beside it."""

    summary: bool = False
    """The text block is the output's summary instead of the whole output once more."""
    modern_meta: Mapping[str, Any] | None = None


def encode_result(request_id: RequestId, outcome: Outcome, form: ResultFormat) -> bytes:
    """The line that answers a tool call."""
    if outcome.output is not None:
        return reply.result(request_id, _encode_success(outcome, outcome.output, form))
    if outcome.code is not None and outcome.code.name in _MESSAGES:
        message = _MESSAGES[outcome.code.name]
        return reply.error(request_id, _INVALID_PARAMS, message, orjson.dumps(outcome.envelope))
    return reply.result(request_id, _encode_failure(outcome, form))


def _encode_success(outcome: Outcome, output: Mapping[str, Any], form: ResultFormat) -> bytes:
    structured = orjson.dumps(output)
    text = str(output.get("summary", "")) if form.summary else structured.decode()
    body = b'{"content":[%b],"structuredContent":%b,"isError":false%b}'
    return body % (_text_block(text), structured, _closing_members(outcome, form))


def _encode_failure(outcome: Outcome, form: ResultFormat) -> bytes:
    told_of = [outcome.envelope] if outcome.evidence is None else [outcome.envelope, outcome.evidence]
    blocks = b",".join(_text_block(orjson.dumps(one).decode()) for one in told_of)
    return b'{"content":[%b],"isError":true%b}' % (blocks, _closing_members(outcome, form))


def _text_block(text: str) -> bytes:
    return b'{"type":"text","text":%b}' % orjson.dumps(text)


def _closing_members(outcome: Outcome, form: ResultFormat) -> bytes:
    """The members that follow: where the record stands, and what the revision wants in every result."""
    meta = dict(form.modern_meta or {})
    if outcome.receipt is not None:
        meta[RECEIPT_KEY] = outcome.receipt.as_json()
    kind = b"" if form.modern_meta is None else b',"resultType":"complete"'
    return kind + (b',"_meta":' + orjson.dumps(meta) if meta else b"")
