"""`kaiza call`: call one tool as a client does, in a session of its own, and print the result."""

import argparse
import difflib
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import orjson

from kaiza.cli.console import arguments, output
from kaiza.domain.roles import EXECUTOR, describe_role
from kaiza.domain.server_url import TOKEN_VARIABLE, ServerUrl, parse_url
from kaiza.queries.tool_schemas import SchemaRegistry
from kaiza.queries.workspaces import find_nearest
from kaiza.render.json_values import format_members, format_text
from kaiza.render.terminal import escape, wrap
from kaiza.wire.dialects.mcp_result import DIAGNOSTICS_KEY

if TYPE_CHECKING:
    from kaiza.server.mcp_client import CallResult, McpClient, NoAnswerError

_CLOSE_ENOUGH = 0.5
_TOKEN = re.compile(r"[!-~]+")
_SESSION, _ROLE = "session_id", "role"


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    arguments.describe(
        parser,
        "Call one tool as a client does, and print its result. Without --url it starts a server for this workspace. A "
        "tool that needs a session gets one for this call, unless you pass session_id=ID. The call is recorded like "
        "any other.\n"
        "A value is text where the tool's schema asks for a string, and JSON where it asks for anything else.\n"
        "With --url, the token is read from KAIZA_TOKEN; it is sent unencrypted only to this machine.\n"
        "Exit status: 0 the call succeeded, 1 it was refused or failed, 2 usage error, 3 no server answered.",
        "kaiza call read_file path=README.md start_line=0\n"
        "kaiza call search_text query=TODO context_lines=2\n"
        "kaiza call list_plans --url http://127.0.0.1:8765",
        run=_run_call,
    )
    parser.add_argument("tool", metavar="TOOL", help="a tool that `kaiza tools` lists")
    parser.add_argument("words", metavar="NAME=VALUE", nargs="*", help="an argument of the tool")
    parser.add_argument("--json", metavar="FILE", help="a file with the arguments as a JSON object; - standard input")
    parser.add_argument("--url", help="a server that listens on HTTP (default: start one for this workspace)")
    parser.add_argument(
        "--workspace",
        metavar="DIR",
        help="the workspace (default: this directory or the nearest one above it that is a workspace); with --url, "
        "which of the server's workspaces",
    )
    arguments.add_role(parser, "role of the session (default: executor)")
    parser.add_argument("--raw", action="store_true", help="print the result as the server sent it, in JSON")


def _run_call(args: argparse.Namespace) -> int:
    registry = SchemaRegistry()
    card = _find_card(args.tool, registry)
    args.tool = card["id"]
    given = _read_arguments(args.words, args.json, registry.load_tool_schemas(args.tool).input)
    has_own_session = card["needs_session"] and _SESSION not in given
    if args.role and not has_own_session:
        args.parser.error("--role is for tools that get a session for this call")
    role = args.role or EXECUTOR
    from kaiza.server.mcp_client import NoAnswerError  # noqa: PLC0415  the SDK is slow to import

    with TextIOWrapper(tempfile.TemporaryFile()) as errors:
        try:
            with _connect(args, errors) as client:
                result = _call_in_session(client, args, given, role) if has_own_session else _call(client, args, given)
        except NoAnswerError as failure:
            return _report_no_answer(failure, args, errors)
        start_failure = _read_start_failure(errors)
        if start_failure is not None:  # it answered the call with the reason why it could not start
            return _report_start_failure(start_failure)
    return _print_result(args, result)


def _find_card(tool: str, registry: SchemaRegistry) -> Mapping[str, Any]:
    cards = {row["id"]: row for row in registry.catalog()}
    name = tool.replace(".", "_")
    if name in cards:
        return cards[name]
    close = difflib.get_close_matches(name, cards, cutoff=_CLOSE_ENOUGH)
    hint = f" Did you mean {' or '.join(close)}?" if close else ""
    message = f"There is no tool {escape(tool)}.{hint} `kaiza tools` lists them."
    raise output.CommandError(message, output.USAGE_ERROR)


@contextmanager
def _connect(args: argparse.Namespace, errors: TextIO) -> Iterator["McpClient"]:
    from kaiza.server import mcp_client  # noqa: PLC0415  as above

    if args.url is None:
        root = args.workspace or find_nearest(".") or "."
        # No run log: those of agents would be removed, because only the last five are kept.
        with mcp_client.connect(root, "--no-runs", errors=errors) as client:
            yield client
    else:
        server = parse_server_url(args.url)
        token = read_token(server)
        # A proxy for this machine would see the token.
        with mcp_client.connect_url(server.url, token, use_proxy=not server.is_loopback) as client:
            yield client


def _call_in_session(
    client: "McpClient", args: argparse.Namespace, given: Mapping[str, Any], role: str
) -> "CallResult":
    """Begin a session, call the tool, end the session. If begin_session is refused, that is the result."""
    opening = {_ROLE: role} | ({"workspace_root": args.workspace} if args.url and args.workspace else {})
    begun = client.call_tool("begin_session", opening)
    if begun.error_code is not None:
        return begun
    session = begun.body.get(_SESSION)
    if not isinstance(session, str):
        from kaiza.server.mcp_client import NoAnswerError  # noqa: PLC0415  as above

        raise NoAnswerError("begin_session returned no session")
    result = _call(client, args, {**given, _SESSION: session})
    is_open = args.tool != "end_session" and client.call_tool("end_session", {_SESSION: session}).error_code
    state = "could not be ended" if is_open else "was begun for this call, and ended"
    output.print_error(f"Session {escape(session)}, {describe_role(role)}, {state}.")
    return result


def _call(client: "McpClient", args: argparse.Namespace, given: Mapping[str, Any]) -> "CallResult":
    with output.Progress(args.tool) as progress:
        return client.call_tool(args.tool, given, progress)


def _report_no_answer(failure: "NoAnswerError", args: argparse.Namespace, errors: TextIO) -> int:
    if failure.refusal is not None:
        output.print_error(f"kaiza: The server refused the connection: {escape(failure.refusal.strip())}")
        return output.FAILURE
    todo = f"Is `kaiza serve --http` running at {escape(args.url)}?" if args.url else "Run `kaiza doctor`."
    reason = f"No server answered: {escape(failure.reason)}. {todo}"
    return _report_start_failure(_read_start_failure(errors) or reason)


def _report_start_failure(reason: str) -> int:
    output.print_error(f"kaiza: {reason}")
    return output.UNDETERMINED


def _read_start_failure(errors: TextIO) -> str | None:
    """The message of the envelope that a server prints when it cannot start."""
    errors.seek(0)
    try:
        return escape(str(orjson.loads(errors.read().strip())["human_message"]))
    except (orjson.JSONDecodeError, LookupError, TypeError):
        return None


def _print_result(args: argparse.Namespace, result: "CallResult") -> int:
    if args.raw:
        output.print_json(result.document)
    elif result.error_code is None:
        output.print_lines(wrap(_format_output(result), output.terminal_width()))
        # Notes on the result, such as that a scan was stopped.
        notes = (result.document.get("_meta") or {}).get(DIAGNOSTICS_KEY)
        for note in notes if isinstance(notes, list) else ():
            output.print_error(escape(str(note)))
    else:
        _print_refusal(args.tool, result)
    return output.SUCCESS if result.error_code is None else output.FAILURE


def _format_output(result: "CallResult") -> Iterator[str]:
    """The summary, then the other members; the texts of a result without structured content."""
    if not result.body:
        yield from _format_texts(result, first=0)
        return
    if "summary" in result.body:
        yield escape(str(result.body["summary"]))
    yield from format_members({name: value for name, value in result.body.items() if name != "summary"})


def _print_refusal(tool: str, result: "CallResult") -> None:
    """The code and message of the failure, and evidence such as the file's content, all on standard error."""
    error = result.body.get("error")
    envelope = error if isinstance(error, dict) else result.body
    message = envelope.get("human_message") or envelope.get("message") or envelope.get("reason") or ""
    output.print_error(f"kaiza: {tool}: {escape(result.error_code or '')}: {escape(str(message))}")
    cause = envelope.get("cause")
    for line in (*format_members({"cause": cause} if cause else {}), *_format_texts(result, 1 if result.body else 0)):
        output.print_error(line)


def _format_texts(result: "CallResult", first: int) -> Iterator[str]:
    for block in result.document.get("content", ())[first:]:
        yield from format_text(str(block.get("text", block)))


def _read_arguments(words: Iterable[str], file: str | None, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The members of the file's object, then the words, which replace members of the same name."""
    arguments = {} if file is None else _read_file(file)
    properties = schema["properties"]
    named: set[str] = set()
    for word in words:
        if any("\ud800" <= char <= "\udfff" for char in word):  # how Python shows bytes that are not UTF-8
            raise _usage_error(f"{escape(word)} is not UTF-8, and JSON can carry nothing else. Give the text in UTF-8.")
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise _usage_error(f"{escape(word)} is not an argument. Write NAME=VALUE.")
        if name in named:
            raise _usage_error(f"{escape(name)} is given twice. Give it once.")
        named.add(name)
        arguments[name] = _parse_value(name, text, properties.get(name, {}).get("type", "string"))
    return arguments


def _parse_value(name: str, text: str, wanted: str) -> Any:
    """The text itself for a string, JSON for everything else."""
    if wanted == "string":
        return text
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        message = f"{escape(name)} takes JSON, a value of type {wanted}, and {escape(text)} is not JSON."
        raise _usage_error(f"{message} Quote it for the shell.") from None


def _read_file(name: str) -> dict[str, Any]:
    try:
        content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        value = orjson.loads(content)
    except OSError as error:
        raise _usage_error(
            f"{escape(name)}: {error.strerror}. Name a file with a JSON object, or - for standard input."
        ) from None
    except orjson.JSONDecodeError as error:
        raise _usage_error(f"{escape(name)} is not JSON: {error}. Correct it.") from None
    if not isinstance(value, dict):
        raise _usage_error(f"{escape(name)} does not hold a JSON object. Write the tool's arguments as one object.")
    return value


def _usage_error(message: str) -> output.CommandError:
    return output.CommandError(message, output.USAGE_ERROR)


def parse_server_url(text: str) -> ServerUrl:
    """The address that a person gave; a CommandError if it is not one."""
    try:
        return parse_url(text)
    except ValueError:
        raise _usage_error(
            f"{escape(text)} is not the address of a server. Write it as the server printed it, such as "
            "http://127.0.0.1:8765."
        ) from None


def read_token(server: ServerUrl) -> str | None:
    """The token for this server from the environment; a CommandError if it would be sent unencrypted."""
    token = os.environ.get(TOKEN_VARIABLE, "")
    if not token:
        return None
    if not _TOKEN.fullmatch(token):
        raise output.CommandError(
            f"{TOKEN_VARIABLE} does not hold a token. Set it to what `kaiza token new` printed.", output.USAGE_ERROR
        )
    if not server.is_loopback and not server.is_encrypted:
        message = f"The token would be sent unencrypted. Use https://, or unset {TOKEN_VARIABLE}."
        raise output.CommandError(message, output.USAGE_ERROR)
    return token
