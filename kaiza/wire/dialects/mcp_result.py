"""Encodes outcomes of tool calls for MCP: a result, a result with `isError`, or a JSON-RPC error."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

from kaiza.domain.call import Outcome
from kaiza.wire import message
from kaiza.wire.dialects.context_v0 import is_context_call, to_v0_error
from kaiza.wire.message import RequestId

RECEIPT_KEY: Final = "kaiza/receipt"
DIAGNOSTICS_KEY: Final = "kaiza/diagnostics"
# A call that names no known tool is a JSON-RPC error. Any other failure is a result, which the model gets to read.
_PROTOCOL_ERRORS: Final[Mapping[str, str]] = {
    "TOOL_NOT_FOUND": "Unknown tool",
    "INVALID_PARAMS": "Invalid request parameters",
}
_INVALID_PARAMS: Final = -32602

_KEPT: Final = frozenset({"session_id", "request_id", "nextCursor", "next"})
"""What the next calls need, and so do all hashes. Some clients hand only the text to a model."""

_NAMES: Final = ("plan_id", "path", "source", "seq")
"""What a hash belongs to; kept beside it only."""


class ResultFormat(NamedTuple):
    """How results are encoded: what the text block holds, and the members that the revision requires."""

    summary: bool = False
    """Put the output's summary, ids, hashes and cursors into the text block, instead of the whole output as JSON."""
    modern_meta: Mapping[str, Any] | None = None
    """The `_meta` of revisions without a handshake; None for the others."""


def encode_result(request_id: RequestId, outcome: Outcome, form: ResultFormat) -> bytes:
    """Line that answers a tool call."""
    if outcome.output is not None:
        return message.result(request_id, _encode_success(outcome, outcome.output, form))
    if outcome.code is not None and outcome.code.name in _PROTOCOL_ERRORS and not is_context_call(outcome):
        text = _PROTOCOL_ERRORS[outcome.code.name]
        return message.error(request_id, _INVALID_PARAMS, text, orjson.dumps(outcome.envelope))
    documents = [to_v0_error(outcome) if is_context_call(outcome) else outcome.envelope]
    # Evidence (file content) goes to the client only; it is never part of the envelope, which is logged.
    if outcome.evidence is not None and not is_context_call(outcome):
        documents.append(outcome.evidence)
    blocks = b",".join(_text_block(orjson.dumps(document).decode()) for document in documents)
    body = b'{"content":[%b],"isError":true%b}' % (blocks, _closing_members(outcome, form))
    return message.result(request_id, body)


def _encode_success(outcome: Outcome, output: Mapping[str, Any], form: ResultFormat) -> bytes:
    structured = orjson.dumps(output)
    if is_context_call(outcome):
        text = structured.decode() + "\n"  # exactly the document, for every client
    else:
        text = build_summary_text(output) if form.summary else structured.decode()
    body = b'{"content":[%b],"structuredContent":%b,"isError":false%b}'
    return body % (_text_block(text), structured, _closing_members(outcome, form))


def _text_block(text: str) -> bytes:
    return b'{"type":"text","text":%b}' % orjson.dumps(text)


def _closing_members(outcome: Outcome, form: ResultFormat) -> bytes:
    """Members after `isError`: diagnostics, the record's receipt, and what the revision requires in every result."""
    meta = dict(form.modern_meta or {})
    if outcome.diagnostics:
        meta[DIAGNOSTICS_KEY] = outcome.diagnostics
    # A context tool answers the same bytes each time.
    if outcome.receipt is not None and not is_context_call(outcome):
        meta[RECEIPT_KEY] = outcome.receipt.as_json()
    result_type = b"" if form.modern_meta is None else b',"resultType":"complete"'
    return result_type + (b',"_meta":' + orjson.dumps(meta) if meta else b"")


def build_summary_text(output: Mapping[str, Any]) -> str:
    """The summary, and below it the ids, hashes and cursors of the output as JSON, if it has any."""
    kept = _prune(output)
    summary = str(output.get("summary", ""))
    return f"{summary}\n{orjson.dumps(kept).decode()}" if kept else summary


def _prune(value: object) -> Any:
    """The part of a value that has to be passed on; None if there is none."""
    if isinstance(value, list):
        return [pruned for item in value if (pruned := _prune(item))]
    if not isinstance(value, Mapping):
        return None
    kept = {
        name: member if _is_kept(name) else pruned
        for name, member in value.items()
        if (pruned := _prune(member)) or _is_kept(name)
    }
    names = {name: value[name] for name in _NAMES if name in value} if kept else {}
    return names | kept


def _is_kept(name: str) -> bool:
    return name in _KEPT or name.endswith("hash")
