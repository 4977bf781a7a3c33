"""The editor and canonical dialects, from frame to answer, with the real application behind them."""

import json

import pytest
from agents import plan, sha
from exchange import Exchange, request
from scenes import records

from kaiza.domain import error_envelope
from kaiza.domain.caps import Caps
from kaiza.domain.tool_card import ToolOffer

FILE = {"path": "a.txt"}
SEED_REQUESTS = [
    request("tools/call", tool="scene.hierarchy.dump", arguments={"scenePath": "Assets/Scenes/Main.unity"}),
    request("tools/list", category="scene"),
    request("tools/describe", tool="project.info"),
]


@pytest.fixture
def root(workspace):
    (workspace / "a.txt").write_text("hello\n")
    return workspace


@pytest.fixture
def app(make_app, root):
    return make_app(root)


@pytest.fixture
def client(app, faulty_registry):
    return Exchange(app, registry=faulty_registry)


@pytest.fixture
def session(client):
    return client.mcp("begin_session", role="WINDSURF")["result"]["structuredContent"]["session_id"]


@pytest.fixture
def fail(client, session):
    """Make `debug_fault` fail, in the editor dialect; its error."""
    return lambda kind: client.editor("debug_fault", kind=kind, session_id=session)["error"]


@pytest.fixture
def canonical_error(client, session):
    return lambda tool, arguments: client.canonical(tool, **arguments, session_id=session)["error"]


@pytest.mark.rows("S4-18", "S4-19", "S4-20", "S3-12")
@pytest.mark.parametrize("dialect", ["editor", "canonical"])
@pytest.mark.parametrize("tool", ["server_info", "mcp.server.info"])
def test_a_result_has_the_requested_tool_and_the_output_that_mcp_carries(client, dialect, tool):
    answer = getattr(client, dialect)(tool)

    assert answer.keys() == {"jsonrpc", "id", "result"}
    assert answer["result"].keys() == {"tool", "output"}
    assert answer["result"]["tool"] == tool
    assert answer["result"]["output"] == client.mcp("server_info")["result"]["structuredContent"]


def test_a_call_by_alias_is_recorded_under_the_name_of_the_tool(client, root):
    client.editor("mcp.server.info")
    client.canonical("mcp.server.info", nope=1)
    written = records(root)

    assert [record["tool_name"] for record in written] == ["server_info", "server_info"]


@pytest.mark.rows("S4-26", "S4-27", "S4-39", "S4-40", "S4-41")
def test_every_error_has_a_code_a_message_and_typed_data(client, session, root):
    calls = [("read_file", {}), ("nope", {}), ("read_file", {"path": "no"}), ("read_file", {"path": "../a"})]
    errors = [client.editor(tool, session_id=session, **arguments)["error"] for tool, arguments in calls]
    types = {"validation", "execution", "unity", "permission", "timeout", "not_found"}

    for error in errors:
        assert error.keys() == {"code", "message", "data"}
        assert isinstance(error["code"], int)
        assert error["message"].strip()
        assert error["data"].keys() == {"tool", "errorType", "details"}
        assert error["data"]["errorType"] in types
        assert isinstance(error["data"]["details"], dict)
    assert len({error["data"]["errorType"] for error in errors}) == 4


@pytest.mark.rows("S4-35", "S4-42", "S4-43", "S4-44", "S4-70")
def test_an_error_of_the_arguments_names_what_is_wrong(client):
    error = client.editor("read_file")["error"]
    worse = client.editor("read_file", path=5, max_lines=0, nope=1)["error"]

    assert (error["code"], error["message"]) == (-32002, "Invalid tool arguments: path is required")
    assert error["data"]["errorType"] == "validation"
    assert error["data"]["details"]["missingParameters"] == ["path"]
    assert error["data"]["details"].keys() == {"missingParameters", "envelope"}
    assert worse["message"] == "Invalid tool arguments: path must be a string"
    details = {key: names for key, names in worse["data"]["details"].items() if key != "envelope"}
    assert details == {
        "typeMismatches": ["path"],
        "constraintViolations": ["max_lines"],
        "unknownParameters": ["nope"],
    }


def test_arguments_that_only_the_tool_can_judge_are_an_error_of_the_arguments(client, session):
    error = client.editor("list_directory", path=".", cursor="forged", session_id=session)["error"]

    assert (error["code"], error["data"]["errorType"]) == (-32002, "validation")
    assert error["message"].startswith("Invalid tool arguments: ")
    assert error["data"]["details"]["constraintViolations"] == ["CURSOR_INVALID"]


@pytest.mark.rows("S4-34", "S4-45", "S4-70")
@pytest.mark.parametrize("method", ["tools/call", "tools/describe"])
def test_an_unknown_tool_is_not_found(client, method):
    answer = client.ask(
        {"jsonrpc": "2.0", "id": "req-002", "method": method, "params": {"tool": "invalid.tool.id", "arguments": {}}}
    )

    assert answer == {
        "jsonrpc": "2.0",
        "id": "req-002",
        "error": {
            "code": -32001,
            "message": "Tool not found: invalid.tool.id",
            "data": {"tool": "invalid.tool.id", "errorType": "not_found", "details": {}},
        },
    }


@pytest.mark.parametrize("method", ["tools/call", "tools/describe"])
def test_a_long_name_of_an_unknown_tool_is_cut(client, method):
    error = client.ask(request(method, tool="x" * 10_000, arguments={}))["error"]

    assert error["message"] == "Tool not found: " + "x" * 200
    assert error["data"]["tool"] == "x" * 200


def test_a_long_name_of_a_tool_is_not_repeated_whole_where_its_call_cannot_be_recorded(client, root):
    client.mcp("server_info")
    log = root / "audit/audit-log.jsonl"
    log.unlink()
    log.mkdir()
    answer = client.editor("x" * 100_000)

    assert answer["error"]["data"]["errorType"] == "unity"
    assert len(client.line) < 2_000


@pytest.mark.rows("S4-33", "S4-46", "S4-70", "S4-72")
def test_a_failed_execution_has_the_details_of_its_cause(client, session, fail):
    unforeseen, stale = fail("raise"), fail("legacy")

    assert (unforeseen["code"], unforeseen["message"]) == (-32000, "Tool execution failed")
    assert unforeseen["data"]["errorType"] == "execution"
    details = unforeseen["data"]["details"]
    assert details["reason"] == "UNKNOWN_TOOL_FAILURE"
    assert (details["name"], details["message"]) == ("OwnError", "boom")
    assert stale["data"]["details"]["reason"] == "HASH_MISMATCH"


@pytest.mark.rows("S4-32")
def test_a_fault_of_kaiza_is_an_internal_error(fail):
    error = fail("surplus")

    assert (error["code"], error["message"], error["data"]["errorType"]) == (-32603, "Internal error", "execution")
    assert error["data"]["details"]["reason"] == "INTERNAL_ERROR"


@pytest.mark.rows("S4-37", "S4-47", "S4-70")
def test_a_failure_of_the_host_repeats_the_hosts_message(client, session, root):
    error = client.editor("read_file", path="missing.txt", session_id=session)["error"]
    details = error["data"]["details"]

    assert error["code"] == -32004
    assert error["message"] == f"Host error: {details['hostError']}"
    assert error["data"]["errorType"] == "unity"
    assert details["hostError"]
    assert details["path"] == "missing.txt"
    assert str(root) not in json.dumps(
        {**error, "data": {**error["data"], "details": {"hostError": details["hostError"]}}}
    )


@pytest.mark.rows("S4-38", "S4-48", "S4-70", "S1-29")
def test_a_tool_of_another_tier_is_refused_with_both_tiers(make_app, root, faulty_registry):
    offer = ToolOffer(tier="core")
    client = Exchange(make_app(root, **offer._asdict()), offer=offer, registry=faulty_registry)
    error = client.editor("write_file")["error"]
    details = error["data"]["details"]

    assert (error["code"], error["message"]) == (-32005, "Tool not available in current tier")
    assert error["data"]["errorType"] == "permission"
    assert (details["requiredTier"], details["currentTier"]) == ("governed", "core")
    assert details["envelope"]["error_code"] == "INSUFFICIENT_PERMISSIONS"
    assert records(root)[-1]["error_code"] == "INSUFFICIENT_PERMISSIONS"


@pytest.mark.rows("S4-38")
def test_any_other_refusal_says_why(client, session):
    error = client.editor("read_file", path="../a", session_id=session)["error"]

    assert error["code"] == -32005
    assert error["message"] == error["data"]["details"]["envelope"]["human_message"]
    assert error["data"]["details"]["reason"] == "PATH_TRAVERSAL_BLOCKED"
    other = client.editor("save_plan", plan_id="PLAN-2", content="x", session_id=session)["error"]
    assert other["data"]["details"].keys() == {"reason", "envelope"}


@pytest.mark.rows("S4-36", "S4-49", "S4-70")
def test_a_call_past_its_deadline_has_its_limit_and_its_tool(make_app, root, faulty_registry):
    app = make_app(root, caps=Caps(tool_timeout_ms=200))
    client = Exchange(app, registry=faulty_registry)
    app.answer = app.expire
    error = client.editor("server_info")["error"]

    assert (error["code"], error["message"]) == (-32003, "Tool execution timed out")
    assert error["data"]["errorType"] == "timeout"
    assert error["data"]["details"]["timeoutMs"] == 200
    assert error["data"]["details"]["tool"] == "server_info"


@pytest.mark.rows("S4-21", "S4-58", "S4-60", "S4-61")
def test_diagnostics_are_texts_beside_the_output_and_left_out_when_there_are_none(client, session, root):
    (root / ".gitignore").write_text("build/\n")
    (root / "build").mkdir()
    noted = client.editor("project.references.missing", session_id=session)["result"]
    over_mcp = client.mcp("project.references.missing", session_id=session)["result"]
    plain = client.editor("read_file", path="a.txt", session_id=session)["result"]

    assert noted.keys() == {"tool", "output", "diagnostics"}
    assert noted["diagnostics"] == ["Ignored by .gitignore: 1 directories."]
    assert over_mcp["_meta"]["kaiza/diagnostics"] == noted["diagnostics"]
    assert over_mcp["isError"] is False
    assert plain.keys() == {"tool", "output"}


def test_the_envelope_of_the_details_is_the_record_cut_down(client, session, root):
    for dialect in (client.editor, client.canonical):
        envelope = dialect("read_file", path="../a", session_id=session)["error"]["data"]["details"]["envelope"]

        assert envelope == error_envelope.from_record(records(root)[-1])


@pytest.mark.rows("S3-21", "S3-23", "S3-25")
@pytest.mark.parametrize(
    ("tool", "arguments", "code", "message", "status"),
    [
        ("read_file", {}, -32602, "Invalid tool input", 422),
        ("read_file", {"path": 5}, -32602, "Invalid tool input", 422),
        ("nope", {}, -32001, "Unknown tool", 404),
        ("debug_fault", {"kind": "surplus"}, -32603, "Internal error", 500),
        ("read_file", {"path": "no"}, -32004, "The file does not exist", 404),
        ("read_file", {"path": "../a"}, -32005, "The path contains '..'", 403),
    ],
)
def test_canonical_errors_are_those_of_the_table(canonical_error, tool, arguments, code, message, status):
    error = canonical_error(tool, arguments)

    assert (error["code"], error["message"]) == (code, message)
    assert error["data"].keys() == {"canonical", "error_code", "http_status", "details"}
    assert error["data"]["http_status"] == status
    assert ("envelope" in error["data"]["details"]) == (tool != "nope")


def test_a_canonical_error_names_the_class_and_the_exact_code(client, session):
    data = client.canonical("read_file", path=5, session_id=session)["error"]["data"]

    assert (data["canonical"], data["error_code"]) == ("INVALID_TOOL_INPUT", "INVALID_INPUT_TYPE")


@pytest.mark.rows("S3-20", "S3-21", "S3-13")
def test_input_that_is_no_object_is_invalid_tool_input_and_recorded(client, root):
    error = client.ask(request("tools/call", tool="read_file", input="x"))["error"]

    assert (error["code"], error["message"]) == (-32602, "Invalid tool input")
    assert error["data"]["http_status"] == 422
    assert error["data"].keys() == {"error_code", "errorType", "http_status", "details"}
    assert [record["error_code"] for record in records(root)] == ["INVALID_TOOL_INPUT"]


@pytest.mark.rows("S4-9", "S4-10", "S4-11", "S4-14", "S4-31", "S3-5")
@pytest.mark.parametrize(
    ("frame", "error_code", "code"),
    [
        ({"jsonrpc": "2.0", "id": 1, "method": "server/info"}, "INVALID_ENVELOPE", -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/describe"}, "INVALID_ENVELOPE", -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/call"}, "INVALID_PARAMS", -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "nope"}, "METHOD_NOT_FOUND", -32601),
        (request("tools/call", arguments={}), "INVALID_PARAMS", -32602),
        (request("tools/call", tool=5, arguments={}), "INVALID_PARAMS", -32602),
        (request("tools/call", tool="server_info"), "INVALID_PARAMS", -32602),
        (request("tools/call", tool="server_info", arguments="x"), "INVALID_PARAMS", -32602),
        (request("tools/describe"), "INVALID_PARAMS", -32602),
        (request("tools/describe", tool=5), "INVALID_PARAMS", -32602),
        (request("tools/list", category=5), "INVALID_PARAMS", -32602),
        (request("tools/list", tier=None, category=[]), "INVALID_PARAMS", -32602),
    ],
)
def test_a_failure_before_the_tool_says_why_and_has_no_envelope(client, frame, error_code, code):
    error = client.ask(frame)["error"]

    assert error["code"] == code
    assert error["data"].keys() == {"error_code", "errorType", "http_status", "details"}
    assert error["data"]["error_code"] == error_code
    assert error["data"]["details"].keys() == {"reason"}


@pytest.mark.rows("S4-7", "S4-12", "S4-13", "S4-15", "S4-22", "S4-23", "S4-25", "S4-66", "S4-71")
def test_the_methods_of_the_editor_dialect_are_answered(client):
    listed = client.ask(request("tools/list", category="search"))["result"]["tools"]
    core = client.ask(request("tools/list", tier="core"))["result"]["tools"]
    described = client.ask(request("tools/describe", tool="read_file"))["result"]["tool"]
    info = client.ask(request("server/info"))["result"]
    every = client.ask(request("tools/list", tier="governed"))["result"]["tools"] + core

    assert [tool["id"] for tool in listed] == ["find_files", "search_text"]
    assert {tool["tier"] for tool in core} == {"core"}
    assert described["inputs"]["path"]["required"] is True
    assert {type(described[key]) for key in ("id", "name", "description", "category", "safetyLevel", "tier")} == {str}
    assert info["enabledToolCategories"] == sorted({tool["category"] for tool in every})
    assert (info["schemaVersion"], info["jsonrpcVersion"], info["unityVersion"]) == ("0.1.0", "2.0", "none")
    assert info["serverVersion"]
    assert info["platform"]


@pytest.mark.rows("S4-64")
def test_the_requests_of_the_specification_are_answered_under_their_ids(client):
    called, listed, described = (
        client.ask({**frame, "id": f"req-00{number}"}) for number, frame in enumerate(SEED_REQUESTS, 1)
    )

    assert called["id"] == "req-001"
    assert (called["error"]["code"], called["error"]["message"]) == (-32001, "Tool not found: scene.hierarchy.dump")
    assert listed == {"jsonrpc": "2.0", "id": "req-002", "result": {"tools": []}}
    assert described["id"] == "req-003"
    assert described["result"]["tool"]["id"] == "project_info"


@pytest.mark.rows("S4-69", "S3-11")
def test_unknown_members_of_a_request_are_ignored(client):
    frame = {**request("server/info", more=1), "x-extra": {"a": 1}}
    call = request("tools/call", tool="server_info", arguments={}, more=[1])

    assert client.ask(frame)["result"]
    assert client.ask(call)["result"]


@pytest.mark.rows("S4-62", "S4-63")
@pytest.mark.parametrize(
    "frame",
    [
        json.dumps([request("tools/call", tool="server_info", arguments={})] * 2).encode(),
        {"jsonrpc": "2.0", "method": "tools/list", "params": {}},
        {"jsonrpc": "2.0", "method": "tools/call", "params": {"tool": "server_info", "arguments": {}}},
        {"jsonrpc": "2.0", "method": "tools/call", "params": {"tool": "server_info", "input": {}}},
    ],
)
def test_batches_and_requests_without_an_id_are_refused_and_not_executed(client, root, frame):
    answer = client.ask(frame)

    assert (answer["id"], answer["error"]["code"]) == (None, -32600)
    assert records(root) == []


@pytest.mark.rows("S4-33", "S4-46", "S4-72")
def test_a_patch_that_does_not_fit_has_its_file_and_hunk_in_the_details(client, session, root):
    plan_hash = plan(root, scope='{modify: ["a.txt"]}')
    patch = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-other\n+x\n"
    error = client.editor("apply_patch", patch=patch, plan_hash=plan_hash, session_id=session)["error"]
    details = error["data"]["details"]

    assert (error["code"], error["message"]) == (-32000, "Tool execution failed")
    assert error["data"]["errorType"] == "execution"
    assert (details["reason"], details["path"], details["hunk"]) == ("PATCH_APPLY_FAILED", "a.txt", 1)
    assert (details["evidence"]["expected"], details["evidence"]["found"]) == (["other\n"], ["hello\n"])


@pytest.mark.rows("S4-72")
@pytest.mark.parametrize("dialect", ["editor", "canonical"])
def test_evidence_is_in_the_details_and_not_in_the_record(client, session, root, dialect):
    plan_hash = plan(root, scope='{modify: ["a.txt"]}')
    edit = {"old_text": "missing-text", "new_text": "x"}
    arguments = {"path": "a.txt", "expected_hash": sha(b"hello\n"), "edits": [edit], "plan_hash": plan_hash}
    error = getattr(client, dialect)("edit_file", **arguments, session_id=session)["error"]

    assert error["data"]["details"]["envelope"]["error_code"] == "PATCH_APPLY_FAILED"
    assert error["data"]["details"]["evidence"]["expected"] == ["missing-text"]
    assert "missing-text" not in json.dumps(records(root)[-1])


@pytest.mark.rows("S4-22")
@pytest.mark.parametrize(
    "params", [{}, {"params": {}}, {"params": {"tier": "core"}}], ids=["none", "empty", "filtered"]
)
def test_every_list_of_tools_identifies_them_in_the_same_way(client, params):
    listed = client.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/list", **params})["result"]["tools"]
    members = ("id", "name", "description", "category", "safetyLevel", "tier")

    assert len(listed) > 10
    for tool in listed:
        assert all(isinstance(tool[member], str) and tool[member] for member in members)
        assert tool["id"] == tool["name"]
        described = client.ask(request("tools/describe", tool=tool["id"]))["result"]["tool"]
        assert [described[member] for member in members] == [tool[member] for member in members]
