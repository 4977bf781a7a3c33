"""Generates docs/CONTRACT.md from the schema files, the catalog, the error codes, the caps and the commands.

`python tests/contract_page.py` writes the page; a test compares it with the code.
"""

from pathlib import Path

from commands import statuses, subcommands

from kaiza.cli import dispatch
from kaiza.domain import error_codes
from kaiza.domain.caps import Caps
from kaiza.domain.roles import describe_role
from kaiza.domain.tool_card import ToolCard
from kaiza.store.config.schema_registry import SchemaRegistry

PAGE = Path(__file__).parent.parent / "docs" / "CONTRACT.md"
INTRO = """\
# The contract

Generated from the code by `python tests/contract_page.py`; a test compares the two. Do not edit this page.
The reference has four pages; where two disagree, the earlier one applies: [PROTOCOL.md](PROTOCOL.md),
[SECURITY.md](SECURITY.md), [CONTRACT.md](CONTRACT.md), [SCHEMA.md](SCHEMA.md).

A `?` marks an optional member. Lists are paged: pass `nextCursor` as `cursor` with the same arguments; the last page
has none. `pageSize` is 1 to 200; a larger value is refused. Every tool except `server_info` and `begin_session` takes
`session_id`, which is not repeated below. A successful result has the output below, with a `summary` of at most 200
characters; a failed one has the envelope of PROTOCOL.md. The fingerprint is the beginning of the output of
`kaiza schema fingerprint`: it changes with every change of a tool's two schema files.
"""
DETERMINISM = """\
## Determinism

A read answers the same for the same files, log and arguments: members have a fixed order, and lists are sorted
(directories, files and hits by path, plans by id, records by `seq`). A `summary` follows from the rest of its output
and its diagnostics. The same error has the same code, and an invariant the same id, in every run. Only times, ids and
what the call itself appends to the log differ.

With `kaiza serve --deterministic` these do not differ either, so that whole runs can be compared. Times in records and
envelopes count up by a millisecond a record from 1970-01-01T00:00:00.000Z, durations are 0, request and session ids are
UUIDs of version 5 computed from the calls, and `detail.deterministic` of each record is true. What is decided is not
changed: plans expire by the real clock, and so do idle sessions. A session ends with its server, reports unlock a role
three times in all, and only one such server serves a workspace. A log is deterministic from its first record or not at
all: a server of the other kind does not start (`BOOTSTRAP_FAILURE`, exit status 3). Commands of people record in the
way of the log that is there. For tests only: ids can be guessed.
"""
DIALECTS = """\
## Dialects

The shape of a request chooses the dialect, on every transport. One call gives one outcome; each dialect writes it in
its own way. The codes are in the table of error codes below.
"""
DIALECT_ROWS = (
    ("MCP", "`tools/call` with `name`", "`structuredContent`, text, receipt", "`isError`, the envelope as text"),
    ("editor", "`tools/call` with `tool`, `arguments`", "`tool`, `output`, `diagnostics?`", "editor code, `errorType`"),
    ("editor", "`tools/list` with `category` or `tier`", "`tools`", "editor code, `errorType`"),
    ("editor", "`tools/describe`, `server/info`", "`tool`; facts of the server", "editor code, `errorType`"),
    ("canonical", "`tools/call` with `tool`, `input`", "`tool`, `output`", "JSON-RPC code, `canonical`, `http_status`"),
)
AGREEMENT = """\
What is wrong before a tool is looked up fails in the same way in all dialects: `data` with `error_code`, `errorType`,
`http_status`, `details`. Tests send the same frames, valid and hostile, over stdio and to `/rpc`, and the same calls in
all dialects, and compare the answers.
"""


ROLES_NOTE = """\
Records and envelopes name the planner `ANTIGRAVITY` and the executor `WINDSURF`, because the specification of the error
envelope fixes these two names.
"""


def page() -> str:
    """The whole page."""
    parts = [
        INTRO,
        "## Tools\n",
        ROLES_NOTE,
        *map(_tool, _cards()),
        DETERMINISM,
        DIALECTS,
        _dialects(),
        AGREEMENT,
        "## Error codes\n",
        _codes(),
        "## Caps\n",
        _caps(),
    ]
    return "\n".join([*parts, "## Commands\n", _commands()])


def _cards() -> list[ToolCard]:
    return [ToolCard.from_row(row) for row in SchemaRegistry().catalog()]


def _tool(card: ToolCard) -> str:
    schemas = SchemaRegistry().load_tool_schemas(card.name)
    roles = " and ".join(map(describe_role, card.roles))
    only = f" Offered only with `--{card.only_with.replace('_', '-')}`." if card.only_with else ""
    return (
        f"### {card.name}\n\n"
        f"{card.description}{only}\n\n"
        f"- for {roles}; {card.category}, tier {card.tier}; safety: {card.safety_level}\n"
        f"- input: {_members(schemas.input)}\n"
        f"- output: {_members(schemas.output)}\n"
        f"- fingerprint: `{schemas.fingerprint[:16]}`\n"
    )


def _members(schema: dict) -> str:
    """Names and types of an object's members."""
    required = schema.get("required", [])
    told = [
        f"`{name}{'' if name in required else '?'}` {_type(_resolved(one, schema), schema)}"
        for name, one in schema["properties"].items()
        if name != "session_id" or name in required
        if name != "summary"
    ]
    return "; ".join(told) or "nothing"


def _resolved(one: dict, schema: dict) -> dict:
    return schema["$defs"][one["$ref"].rsplit("/", 1)[1]] if "$ref" in one else one


def _type(one: dict, schema: dict) -> str:
    if "enum" in one:
        return ", ".join(map(str, one["enum"]))
    if one.get("type") == "array":
        most = f" (at most {one['maxItems']:,})" if "maxItems" in one else ""
        return f"list of {_type(_resolved(one['items'], schema), schema)}{most}"
    return _plain(one) + _bounds(one)


def _plain(one: dict) -> str:
    if one.get("properties"):
        required = one.get("required", [])
        return "{" + ", ".join(name + ("" if name in required else "?") for name in one["properties"]) + "}"
    if "oneOf" in one or "anyOf" in one:
        return "one of several shapes"
    told = one.get("type", "any")
    return " or ".join(told) if isinstance(told, list) else told


def _bounds(one: dict) -> str:
    low = one.get("minimum", one.get("minLength"))
    high = one.get("maximum", one.get("maxLength"))
    if high is not None:
        return f" ({0 if low is None else low:,} to {high:,})"
    return f" (at least {low:,})" if low else ""


def _codes() -> str:
    rows = [
        f"| `{row.name}` | {row.meaning} | {row.http} | {row.rpc} | {row.editor_code} {row.error_type} "
        f"| {row.v0 or ''} | {_yes(row.retryable)} | {_yes(row.locks)} |"
        for row in error_codes.SYSTEM_ERROR_CODES.values()
    ]
    head = (
        "| code | means | HTTP | JSON-RPC | editor | context | retry helps | locks |\n|---|---|--:|--:|---|---|---|---|"
    )
    timeout = error_codes.lookup("CAP_EXCEEDED", "timeout")
    more = (
        f"`CAP_EXCEEDED` for the clock (`cap: timeout`) is {timeout.http}, {timeout.rpc}, {timeout.error_type}, "
        "and a retry may help."
    )
    invalid = ", ".join(
        f"`{name}`" for name in error_codes.SYSTEM_ERROR_CODES if name in error_codes.INVALID_PARAMS_CODES
    )
    classes = (
        f"{invalid} are the class INVALID_PARAMS, and `cause.class` says so: the arguments do not match the tool's "
        "schema or cannot be used. A value above a limit of the schema is of this class, never `CAP_EXCEEDED`, which "
        "is for limits that only the running call can meet: time, bytes of the response, hits in all."
    )
    return "\n".join([head, *rows, "", classes, "", more, ""])


def _dialects() -> str:
    rows = [f"| {' | '.join(row)} |" for row in DIALECT_ROWS]
    return "\n".join(["| dialect | request | success | failure |", "|---|---|---|---|", *rows, ""])


def _yes(true: bool) -> str:  # noqa: FBT001  a cell of a table
    return "yes" if true else ""


def _caps() -> str:
    rows = [f"| `{name}` | {value:,} |" for name, value in Caps().as_json().items()]
    return "\n".join(["| cap | value |", "|---|--:|", *rows, ""])


def _commands() -> str:
    rows = []
    for name, (_, what) in dispatch.COMMANDS.items():
        below = "\\|".join(subcommands(name))
        rows.append(f"| `{f'kaiza {name} {below}'.strip()}` | {what} | {', '.join(statuses(name))} |")
    return "\n".join(["| command | does | exits with |", "|---|---|---|", *rows, ""])


if __name__ == "__main__":
    PAGE.write_text(page())
