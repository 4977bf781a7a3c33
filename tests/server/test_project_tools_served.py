"""The project tools, diagnostics, progress and tiers as clients see them."""

import re

import pytest
from agents import Agent
from doors import call
from exchange import Exchange, request

from kaiza.domain.caps import Caps

ALIASES = {
    "project.info": "project_info",
    "project.assets.summary": "project_assets_summary",
    "project.references.missing": "project_references_missing",
}
GUARD_SENTENCE = re.compile(r"Scan stopped after \d+ms\. Processed \d+ of \d+ items\. Results may be partial\.")


@pytest.fixture
def client(app, workspace):
    (workspace / "a.md").write_text("[x](gone.md)")
    exchange = Exchange(app)
    exchange.session_id = exchange.mcp("begin_session", role="WINDSURF")["result"]["structuredContent"]["session_id"]
    return exchange


def project_names(answer):
    return {tool["name"] for tool in answer["result"]["tools"] if tool["name"].startswith("project_")}


def test_project_tools_are_in_the_editors_list_and_not_in_mcps(client):
    assert project_names(client.ask(request("tools/list", category="project"))) == set(ALIASES.values())
    assert project_names(client.ask(request("tools/list", tier="core"))) == set(ALIASES.values())
    assert project_names(client.ask(request("tools/list"))) == set()


@pytest.mark.rows("S4-23", "S4-64")
@pytest.mark.parametrize("alias", ALIASES)
def test_a_project_tool_is_described_by_its_alias(client, alias):
    tool = client.ask(request("tools/describe", tool=alias))["result"]["tool"]

    assert (tool["id"], tool["category"], tool["tier"]) == (ALIASES[alias], "project", "core")
    assert alias in tool["notes"]


@pytest.mark.rows("S4-19", "S4-20", "S4-65")
@pytest.mark.parametrize("alias", ALIASES)
def test_a_project_tool_answers_the_same_in_every_dialect(client, alias):
    editor = client.editor(alias, session_id=client.session_id)["result"]
    canonical = client.canonical(alias, session_id=client.session_id)["result"]
    output = client.mcp(ALIASES[alias], session_id=client.session_id)["result"]["structuredContent"]

    # Each call adds its record to the log, which is one of the files that are counted.
    for answer in (editor, canonical):
        assert answer["tool"] == alias
        assert answer["output"].keys() == output.keys()
    if alias == "project.references.missing":
        assert editor["output"] == canonical["output"] == output
        assert [row["target"] for row in output["brokenReferences"]] == ["gone.md"]


@pytest.mark.rows("S4-57", "S4-61", "S4-65")
@pytest.mark.parametrize("alias", ALIASES)
def test_a_guard_gives_partial_results_with_a_diagnostic_in_each_dialect(make_app, workspace, alias):
    none = dict.fromkeys(("find_guard_ms", "assets_guard_ms", "references_guard_ms"), 0)
    client = Exchange(make_app(workspace, caps=Caps()._replace(**none)))
    session_id = client.mcp("begin_session", role="WINDSURF")["result"]["structuredContent"]["session_id"]
    editor = client.editor(alias, session_id=session_id)["result"]
    mcp = client.mcp(alias, session_id=session_id)["result"]

    assert editor.keys() == {"tool", "output", "diagnostics"}
    assert GUARD_SENTENCE.fullmatch(editor["diagnostics"][0])
    assert not mcp["isError"]
    assert GUARD_SENTENCE.fullmatch(mcp["_meta"]["kaiza/diagnostics"][0])


@pytest.mark.rows("S4-53")
def test_a_scan_sends_progress_under_the_clients_token_before_its_answer(workspace):
    for number in range(200):
        (workspace / f"{number}.md").write_text("[x](gone.md)")
    agent = Agent(workspace, options=["--tier", "core"])
    try:
        asked = call("scan", "project.references.missing")
        asked["params"]["_meta"] = {"progressToken": "token"}
        agent.door.say(asked)
        heard = [agent.door.hear()]
        while "id" not in heard[-1]:
            heard.append(agent.door.hear())
        unasked = agent.door.ask(call("unasked", "project.references.missing"))
        refused = agent.call("write_file", path="a", content="")
    finally:
        agent.close()

    assert heard[-1]["id"] == "scan"
    assert unasked["id"] == "unasked"
    assert len(heard[-1]["result"]["structuredContent"]["brokenReferences"]) == 200
    notified = [message["params"] for message in heard[:-1]]
    assert notified
    assert {params["progressToken"] for params in notified} == {"token"}
    assert [params["progress"] for params in notified] == sorted({params["progress"] for params in notified})
    assert refused["error_code"] == "INSUFFICIENT_PERMISSIONS"


@pytest.mark.rows("S4-54")
def test_a_lower_guard_from_the_command_line_ends_a_scan_of_a_large_tree(workspace):
    for number in range(3_000):
        (workspace / f"{number}.md").write_text("[x](gone.md)")
    agent = Agent(workspace, options=["--scan-guard-ms", "1"])
    try:
        result = agent.door.ask(call("scan", "project_references_missing"))["result"]
    finally:
        agent.close()

    assert GUARD_SENTENCE.fullmatch(result["_meta"]["kaiza/diagnostics"][0])
    assert len(result["structuredContent"]["brokenReferences"]) < 1_000
