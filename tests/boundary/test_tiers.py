"""Tiers and aliases: what one server offers, and by which names."""

import pytest
from scenes import records

from kaiza.domain.call import CallRequest
from kaiza.store.config.schema_registry import SchemaRegistry

CHANGING = [row["id"] for row in SchemaRegistry().catalog() if row["safety_level"] != "read" and "only_with" not in row]
READING = [row["id"] for row in SchemaRegistry().catalog() if row["safety_level"] == "read"]


@pytest.mark.rows("S1-29")
@pytest.mark.parametrize("name", CHANGING)
def test_a_core_server_refuses_and_records_every_tool_that_writes(make_app, workspace, name):
    app = make_app(workspace, tier="core")
    app.call("begin_session", {"role": "WINDSURF"})
    outcome = app.call(name, {})

    assert outcome.envelope["error_code"] == "INSUFFICIENT_PERMISSIONS"
    assert outcome.envelope["cause"] == {"required_tier": "governed", "current_tier": "core"}
    assert (outcome.code.editor_code, outcome.code.error_type) == (-32005, "permission")
    assert records(workspace)[-1]["error_code"] == "INSUFFICIENT_PERMISSIONS"
    assert records(workspace)[-1]["tool_name"] == name


def test_the_tier_is_judged_before_arguments_and_session(make_app, workspace):
    core = make_app(workspace, tier="core")

    for arguments in ({}, {"zzz": 1}, [], {"path": "../x", "content": ""}):
        assert core.call("write_file", arguments).envelope["error_code"] == "INSUFFICIENT_PERMISSIONS"


def test_a_refused_tier_does_not_lock_the_role(make_app, workspace):
    app = make_app(workspace, tier="core")
    app.call("begin_session", {"role": "WINDSURF"})
    app.call("delete_file", {})

    assert app.call("session_status", {}).output["state"] == "active"


def test_a_core_server_offers_every_tool_that_reads(make_app, workspace):
    app = make_app(workspace, tier="core")
    codes = {name: (app.call(name, {}).envelope or {}).get("error_code") for name in READING}

    assert {"INSUFFICIENT_PERMISSIONS", "TOOL_NOT_FOUND"}.isdisjoint(codes.values()), codes


def test_the_server_says_its_tier_and_the_categories_that_it_offers(make_app, workspace):
    core, governed = (make_app(workspace, tier=tier).call("server_info", {}).output for tier in ("core", "governed"))

    assert (core["tier"], governed["tier"]) == ("core", "governed")
    assert "changes" in governed["categories"]
    assert "changes" not in core["categories"]


def test_an_alias_is_recorded_and_answered_under_the_tools_own_name(app, workspace):
    outcome = app.answer(app.stamp(CallRequest("mcp.server.info", {})))

    assert outcome.tool_name == "server_info"
    assert outcome.output == app.call("server_info", {}).output
    assert [record["tool_name"] for record in records(workspace)] == ["server_info", "server_info"]
