"""Context tools from frame to answer, in every dialect, with the real application and real caches."""

import hashlib
import json
import os
import random
import re
import subprocess
import sys

import jsonschema
import pytest
from context_caches import MINIMAL, file_of, write_cache
from doors import request
from exchange import Exchange

from kaiza.store.config.schema_registry import find_directory
from kaiza.tools.registry import AGENT_TOOLS, Tool
from kaiza.tools.view import Answer

HELLO = {"cache": "minimal", "query": "hello", "budget": 100}
V0 = find_directory() / "mcp" / "error-v0.json"
V0_SHA256 = "69619013fef6575c79afdb1b91ee4fc72c3db58f89fce79226c94232c9d11112"
MESSAGES = {
    "cache_missing": "Cache does not exist",
    "cache_invalid": "Cache exists but is invalid",
    "invalid_query": "Query is invalid",
    "invalid_budget": "Budget is invalid",
    "io_error": "I/O error occurred",
    "internal_error": "Internal error",
}
TOOLS = ("context_resolve", "context_list_caches", "context_inspect_cache")


@pytest.fixture
def directory(workspace):
    return write_cache(workspace, "minimal", MINIMAL)


@pytest.fixture
def client(app, directory, faulty_registry):
    return Exchange(app, registry=faulty_registry)


def text_of(answer):
    (block,) = answer["result"]["content"]
    return block["text"]


def error_text(code):
    return f'{{"error":{{"code":"{code}","message":"{MESSAGES[code]}"}}}}'


def fail(client, tool="context_resolve", **arguments):
    """The v0 code of a failing MCP call, whose text is exactly the error object."""
    answer = client.mcp(tool, **arguments)
    text = text_of(answer)
    code = json.loads(text)["error"]["code"]
    assert re.fullmatch(r"[A-Z][A-Za-z/ .-]+", json.loads(text)["error"]["message"])
    assert answer["result"]["isError"] is True
    assert text == error_text(code)
    return code


def exchange_with(make_app, workspace, faulty_registry, run):
    """A client of an application whose `context_resolve` runs this instead."""
    real = AGENT_TOOLS["context_resolve"]
    app = make_app(workspace)
    broken = {**app._tools, "context_resolve": Tool("context_resolve", real.parse, run)}
    return Exchange(type(app)([os.path.realpath(workspace)], tools=broken, registry=faulty_registry))


@pytest.mark.rows("S0-2", "S0-35", "S0-36")
def test_the_error_schema_is_published_verbatim_and_never_changes():
    schema = json.loads(V0.read_text())

    assert schema["$id"] == "https://context.dev/schemas/mcp/error-v0.json"
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"] == "MCP Error Response v0"
    assert hashlib.sha256(V0.read_bytes()).hexdigest() == V0_SHA256


@pytest.mark.rows("S0-4", "S0-31")
def test_a_success_is_the_document_and_a_newline_and_never_has_an_error(client):
    for tool, arguments in (("context_resolve", HELLO), ("context_list_caches", {}), (TOOLS[2], {"cache": "minimal"})):
        result = client.mcp(tool, **arguments)["result"]

        assert result["isError"] is False
        assert (
            result["content"][0]["text"]
            == json.dumps(result["structuredContent"], separators=(",", ":"), ensure_ascii=False) + "\n"
        )
        assert "error" not in result["structuredContent"]
        assert "_meta" not in result


@pytest.mark.rows("S0-28", "S0-29", "S0-23")
def test_each_code_has_its_message(client, directory, make_app, workspace, faulty_registry):
    assert fail(client, **{**HELLO, "cache": "no"}) == "cache_missing"
    assert fail(client, **{**HELLO, "query": 5}) == "invalid_query"
    assert fail(client, **{**HELLO, "budget": -1}) == "invalid_budget"
    (directory / "index.json").write_text("not-json")
    assert fail(client, **HELLO) == "cache_invalid"


@pytest.mark.rows("S0-15", "S0-27", "S0-28")
def test_a_bug_is_an_internal_error_without_a_trace_even_when_debugging(
    make_app, workspace, directory, faulty_registry, monkeypatch
):
    def run(_request, _view):
        raise RuntimeError("boom")

    monkeypatch.setenv("DEBUG_STACK", "true")
    client = exchange_with(make_app, workspace, faulty_registry, run)

    assert fail(client, **HELLO) == "internal_error"
    assert client.editor("context_resolve", **HELLO)["error"]["data"]["details"] == json.loads(
        error_text("internal_error")
    )


@pytest.mark.rows("S0-37", "S0-31")
@pytest.mark.parametrize(
    "output",
    [
        {"error": {"code": "x"}},
        {"documents": [], "error": {"code": "internal_error", "message": "Internal error"}},
        {"documents": [], "selection": {}, "error": {}},
    ],
)
def test_an_output_outside_its_schema_is_an_internal_error(make_app, workspace, directory, faulty_registry, output):
    client = exchange_with(make_app, workspace, faulty_registry, lambda _request, _view: Answer(output))

    assert fail(client, **HELLO) == "internal_error"


def random_arguments(rng):
    """Good arguments with some of them wrong, missing or unknown; sometimes no object at all."""
    values = [None, True, 5, -1, 1.5, "", "minimal", "../x", "x" * 600, [], {}, "\x00", "ü", 10**18]
    if rng.random() < 0.1:
        return rng.choice(values)
    names = ["cache", "query", "budget", "root", "session_id", "", "\x1b"]
    wrong = {name: rng.choice(values) for name in rng.sample(names, rng.randrange(3))}
    return {name: value for name, value in {**HELLO, **wrong}.items() if rng.random() < 0.9}


@pytest.mark.rows("S0-1", "S0-3", "S0-5", "S0-6", "S0-7", "S0-8", "S0-9", "S0-30")
def test_whatever_the_arguments_a_failure_is_one_of_six_errors_of_the_schema(client):
    rng, schema, seen = random.Random(7), json.loads(V0.read_text()), set()
    for number in range(200):
        frame = request(number, "tools/call", name=rng.choice(TOOLS), arguments=random_arguments(rng))
        result = client.ask(frame)["result"]
        body = json.loads(result["content"][0]["text"])
        assert ("error" in body) is result["isError"]
        if result["isError"]:
            jsonschema.validate(body, schema)
            assert body.keys() == {"error"}
            assert body["error"] == {"code": body["error"]["code"], "message": MESSAGES[body["error"]["code"]]}
            seen.add(body["error"]["code"])

    assert seen == {"cache_missing", "invalid_query", "invalid_budget"}


@pytest.mark.rows("S0-20", "S0-24", "S0-32", "S0-33", "S0-34")
def test_the_whole_line_is_the_same_each_time_in_every_dialect_and_after_a_restart(
    make_app, workspace, directory, faulty_registry
):
    (write_cache(workspace, "damaged", MINIMAL) / "index.json").write_text("not-json")
    calls = [
        ("context_resolve", HELLO),
        ("context_resolve", {**HELLO, "cache": "no"}),
        ("context_resolve", {**HELLO, "query": 5}),
        ("context.resolve", {**HELLO, "budget": -1}),
        ("context_resolve", {**HELLO, "cache": "damaged"}),
        ("context_list_caches", {}),
        ("context.inspect_cache", {"cache": "minimal"}),
    ]
    lines = []
    for _ in range(2):
        client = Exchange(make_app(workspace), registry=faulty_registry)
        for _ in range(5):
            said = []
            for tool, arguments in calls:
                for dialect in ("mcp", "editor", "canonical"):
                    getattr(client, dialect)(tool, **arguments)
                    said.append(client.line)
            lines.append(said)

    assert len(lines[0]) == 21
    assert all(said == lines[0] for said in lines)


@pytest.mark.rows("S0-25", "S0-26")
def test_no_error_holds_a_path_or_a_hash(client, directory, workspace):
    document = directory / file_of("Hello world")
    document.write_text(document.read_text().replace("Hello world", "Hello World"))
    for arguments in (HELLO, {**HELLO, "cache": "weird/../name"}, {**HELLO, "cache": str(workspace)}):
        text = text_of(client.mcp("context_resolve", **arguments))

        assert text in (error_text("cache_invalid"), error_text("cache_missing"))
        assert "/" not in text.replace("I/O", "")
        assert not re.search("[0-9a-f]{12}", text)


@pytest.mark.rows("S0-28")
def test_a_log_that_cannot_be_written_is_an_io_error(client, workspace):
    (workspace / "audit/audit-log.jsonl").mkdir(parents=True)

    assert fail(client, **HELLO) == "io_error"
    assert fail(client, "context_list_caches") == "io_error"


AS_NOBODY = """
import os, sys
sys.path[:0] = {path!r}
from kaiza.domain import errors
from kaiza.tools.context import context_list_caches, context_resolve
from kaiza.queries.context_caches import UntimedView
fd = os.open({root!r}, os.O_RDONLY)  # before: pytest makes the directories above unreachable for others
if os.geteuid() == 0:
    os.setgid(65534); os.setuid(65534)
try:
    {call}
    print("ok")
except errors.SystemError as error:
    print(error.error_code)
"""


@pytest.mark.rows("S0-14", "S0-21")
def test_denied_inside_a_cache_is_an_io_error_and_on_the_way_to_it_a_missing_cache(directory, workspace):
    def code():
        resolve = 'context_resolve.run(context_resolve.Request("minimal", "hello", 100), UntimedView(fd))'
        return run_as_nobody(workspace, resolve).strip()

    make_readable(workspace)
    codes = [code()]
    for path in (
        directory / "manifest.json",
        directory / file_of("Hello world"),
        directory / "documents",
        directory,
        directory.parent,
    ):
        before = path.stat().st_mode
        path.chmod(0)
        codes.append(code())
        path.chmod(before)

    assert codes == ["ok", *["CONTEXT_IO_ERROR"] * 3, *["CONTEXT_CACHE_MISSING"] * 2]


def test_a_cache_that_cannot_be_reached_is_listed_beside_the_others(directory, workspace):
    write_cache(workspace, "closed", MINIMAL)
    make_readable(workspace)
    (directory.parent / "closed").chmod(0)
    printed = run_as_nobody(
        workspace, "print(context_list_caches.run(context_list_caches.Request(), UntimedView(fd)).output)"
    )
    (directory.parent / "closed").chmod(0o755)

    assert printed.splitlines() == [
        "{'caches': [{'path': 'closed', 'has_manifest': False}, {'path': 'minimal', 'has_manifest': True}]}",
        "ok",
    ]


def run_as_nobody(workspace, call):
    """Run a line as a user who owns nothing; what it prints."""
    script = AS_NOBODY.format(path=sys.path, root=str(workspace), call=call)
    return subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=True).stdout


def make_readable(workspace):
    """Let every user read the workspace."""
    for path in (workspace, *workspace.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def listed_by(door):
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    door.ask(request(0, "initialize", **hello))
    return {tool["name"] for tool in door.ask(request(1, "tools/list"))["result"]["tools"]}


def test_resolve_is_listed_where_there_was_a_cache_at_the_start_and_the_others_never(open_door, workspace):
    command = [sys.executable, "-m", "kaiza", "serve", "--workspace", str(workspace)]
    (workspace / ".kaiza/context/.new-0123").mkdir(parents=True)  # left by a build that was interrupted
    without = open_door(command)
    assert not listed_by(without) & set(TOOLS)
    write_cache(workspace, "minimal", MINIMAL)

    assert not listed_by(without) & set(TOOLS)
    assert listed_by(open_door(command)) & set(TOOLS) == {"context_resolve"}
