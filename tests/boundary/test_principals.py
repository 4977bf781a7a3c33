"""Callers over HTTP: a session belongs to the token that began it, and to nothing else."""

import os
from pathlib import Path

import pytest
from agents import plan
from scenes import bind, make_ready, records

from kaiza.app import App
from kaiza.domain.call import CallRequest, Principal
from kaiza.domain.error_envelope import KEYS
from kaiza.store.human_decisions import record_decision

UNKNOWN = "00000000-0000-4000-8000-000000000000"
PER_CALL = {"request_id", "timestamp"}


@pytest.fixture
def roots(tmp_path):
    return [os.path.realpath(bind(make_ready(tmp_path / name))) for name in ("first", "second")]


@pytest.fixture
def app(roots):
    app = App(roots)
    yield app
    app.close()


def principal(root, name="ann", role=None):
    return Principal(f"{name}#0a1b2c3d", root, role)


def ask(app, who, tool, **arguments):
    """The outcome of a call over HTTP, or on stdio where there is no principal."""
    return app.answer(app.stamp(CallRequest(tool, arguments, conversational=False, principal=who)))


def begin(app, who, **arguments):
    return ask(app, who, "begin_session", **{"role": "WINDSURF", **arguments}).output["session_id"]


def refusal(outcome):
    """The envelope without what differs in each call."""
    return {name: value for name, value in outcome.envelope.items() if name not in PER_CALL}


def test_every_record_of_a_call_over_http_names_its_principal_and_none_on_stdio(app, roots):
    ann = principal(roots[0])
    session = begin(app, ann)
    ask(app, ann, "read_file", path="missing", session_id=session)
    ask(app, ann, "no_such_tool")
    ask(app, None, "server_info")

    calls = [each for each in records(roots[0]) if each["kind"] == "call"]
    assert [each["principal"] for each in calls] == [ann.label, ann.label, ann.label, None]


def test_a_change_over_http_names_its_principal_in_intent_seal_and_outcome(app, roots):
    ann, approved = principal(roots[0]), plan(roots[0], scope='{create: ["a.txt"]}')
    session = begin(app, ann)
    ask(app, ann, "write_file", path="a.txt", content="x\n", plan_hash=approved, session_id=session)

    changed = [each for each in records(roots[0]) if each["request_id"] and each["tool_name"] != "begin_session"]
    assert [each["kind"] for each in changed] == ["plan", "intent", "call"]
    assert {each["principal"] for each in changed} == {ann.label}


@pytest.mark.parametrize("tool", ["read_file", "session_status", "end_session", "undo_changes", "read_audit_log"])
def test_another_principals_session_is_refused_exactly_as_an_unknown_one(app, roots, tool):
    ann, bob = principal(roots[0]), principal(roots[0], "bob")
    more = {
        "read_file": {"path": "a.txt"},
        "undo_changes": {"all_of_session": True, "plan_hash": "0" * 64, "phase_id": "P1"},
    }.get(tool, {})
    sessions = [begin(app, ann), begin(app, None, workspace_root=roots[0]), UNKNOWN]
    refusals = [refusal(ask(app, bob, tool, **more, session_id=session)) for session in sessions]

    assert refusals[0]["error_code"] == "SESSION_NOT_INITIALIZED"
    assert refusals[0] == refusals[1] == refusals[2]
    assert refusals[0].keys() == set(KEYS) - PER_CALL
    assert ask(app, ann, "session_status", session_id=sessions[0]).output["counts"]["refusals"] == 0


def test_a_session_over_http_is_unknown_to_stdio_and_never_implied_there(app, roots):
    session = begin(app, principal(roots[0]))
    named = ask(app, None, "session_status", session_id=session)
    implied = app.call("session_status", {})

    assert named.envelope["error_code"] == implied.envelope["error_code"] == "SESSION_NOT_INITIALIZED"


def test_the_principal_of_a_session_survives_the_snapshot(roots):
    ann = principal(roots[0])
    first = App(roots)
    session = begin(first, ann)
    first.close()
    second = App(roots)
    outcomes = [ask(second, who, "session_status", session_id=session) for who in (ann, None)]
    second.close()

    assert outcomes[0].output["counts"]["calls"] == 1
    assert outcomes[1].envelope["error_code"] == "SESSION_NOT_INITIALIZED"


def test_a_token_begins_sessions_in_its_own_workspace_only(app, roots):
    second = principal(roots[1])
    unnamed = ask(app, second, "begin_session", role="WINDSURF")
    other = ask(app, second, "begin_session", role="WINDSURF", workspace_root=roots[0])
    nowhere = ask(app, second, "begin_session", role="WINDSURF", workspace_root="/nowhere")

    assert unnamed.output["workspace_root"] == roots[1]
    assert (other.envelope["error_code"], other.envelope["invariant_id"]) == (
        "SESSION_INITIALIZATION_FAILED",
        "ROOT_NOT_SERVED",
    )
    assert refusal(other) == refusal(nowhere)


def test_calls_without_a_session_are_recorded_in_the_principals_workspace(app, roots):
    ask(app, principal(roots[1]), "read_file", path="a.txt")
    ask(app, principal(roots[1]), "begin_session", role="WINDSURF", workspace_root=roots[0])

    assert records(roots[0]) == []
    assert [each["tool_name"] for each in records(roots[1])][-2:] == ["read_file", "begin_session"]


def test_a_principal_learns_of_no_workspace_but_its_own(app, roots):
    shown = ask(app, principal(roots[1]), "server_info").output["workspace_roots"]

    assert shown == [roots[1]]
    assert ask(app, None, "server_info").output["workspace_roots"] == roots


def test_a_token_for_one_role_begins_no_session_of_the_other(app, roots):
    planner = principal(roots[0], role="ANTIGRAVITY")
    refused = ask(app, planner, "begin_session", role="WINDSURF")

    assert refused.envelope["error_code"] == "ROLE_MISMATCH"
    assert ask(app, planner, "begin_session", role="ANTIGRAVITY").output["role"] == "planner"


def test_the_end_of_a_token_ends_its_sessions_and_no_others(app, roots):
    ann, bob = principal(roots[0]), principal(roots[0], "bob")
    sessions = {who: begin(app, who) for who in (ann, bob)}
    workspace = app.services.workspaces[roots[0]]
    record_decision(workspace, "revoke_token", "A Person", detail={"token": ann.label})
    outcomes = {who: ask(app, who, "session_status", session_id=sessions[who]) for who in (ann, bob)}

    assert outcomes[ann].envelope["error_code"] == "SESSION_NOT_INITIALIZED"
    assert outcomes[bob].output["session_id"] == sessions[bob]


def test_the_summary_of_a_session_never_exceeds_its_limit(roots):
    (Path(roots[0]) / ".kaiza/id").write_text("f" * 32 + "\n")
    (Path(roots[0]) / "kaiza.toml").write_text('[approval]\nrequire = "edit"\n')
    app = App(roots)
    summary = ask(app, None, "begin_session", role="ANTIGRAVITY", workspace_root=roots[0]).output["summary"]
    app.close()

    assert "kaiza adopt" in summary
    assert len(summary) <= 200


def test_an_undo_follows_the_plan_and_names_who_asked_for_it(app, roots):
    ann, bob = principal(roots[0]), principal(roots[0], "bob")
    approved = plan(roots[0], scope='{create: ["a.txt"], delete: ["a.txt"]}')
    sessions = {who: begin(app, who) for who in (ann, bob)}
    made = ask(app, ann, "write_file", path="a.txt", content="x\n", plan_hash=approved, session_id=sessions[ann])
    bobs = {"plan_hash": approved, "session_id": sessions[bob]}
    own = ask(app, bob, "undo_changes", all_of_session=True, **bobs)
    named = ask(app, bob, "undo_changes", request_ids=[made.output["request_id"]], **bobs)

    assert own.output["changes"] == []
    assert [change["path"] for change in named.output["changes"]] == ["a.txt"]
    assert records(roots[0])[-1]["principal"] == bob.label


def test_calls_of_one_workspaces_principal_cannot_undo_anothers(app, roots):
    ann, other = principal(roots[0]), principal(roots[1])
    approved = [plan(root, scope='{create: ["a.txt"]}') for root in roots]
    session = begin(app, ann)
    made = ask(app, ann, "write_file", path="a.txt", content="x\n", plan_hash=approved[0], session_id=session)
    ids = [[made.output["request_id"]], [UNKNOWN]]
    asked = {"plan_hash": approved[1], "session_id": begin(app, other)}
    refusals = [ask(app, other, "undo_changes", request_ids=each, **asked).envelope for each in ids]

    assert [each["error_code"] for each in refusals] == ["INVALID_INPUT_VALUE"] * 2
    assert [each["cause"]["request_ids"] for each in refusals] == ids
