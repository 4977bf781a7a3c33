"""`kaiza session`: what agents did, from the log."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from agents import Agent

from kaiza.app import App
from kaiza.domain.audit import record
from kaiza.render import terminal

SESSION, OTHER = "3f2b1c00-0000-4000-8000-000000000001", "9a9a9a9a-0000-4000-8000-000000000002"


def now(**ago):
    return (datetime.now(UTC) - timedelta(**ago)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def test_sessions_are_listed_with_what_they_did(kaiza, story):
    result = json.loads(kaiza("session", "list", "--json").out)["sessions"]

    assert [(one["session_id"], one["role"], one["state"]) for one in result] == [
        (SESSION, "WINDSURF", "expired"),
        (OTHER, "ANTIGRAVITY", "ended"),
    ]
    assert result[0]["counts"] == {"calls": 5, "changes": 1, "refusals": 1}
    assert result[1]["ended_at"] == "2025-03-18T09:02:00.000Z"
    assert SESSION in kaiza("session", "list").out


def test_a_session_in_use_is_active_or_locked(kaiza, write_log, body):
    refused = {"outcome": "error", "error_code": "PLAN_SCOPE_VIOLATION", "human_message": "No."}
    write_log(
        body("begin_session", timestamp=now(hours=13)),
        body("begin_session", session=OTHER, role="ANTIGRAVITY", timestamp=now(minutes=3)),
        body("read_file", timestamp=now(minutes=2)),
        body("write_file", timestamp=now(minutes=1), **refused),
    )
    result = json.loads(kaiza("session", "list", "--json").out)["sessions"]

    assert [one["state"] for one in result] == ["locked", "active"]


def test_one_session_is_shown_with_its_changes_and_refusals(kaiza, story):
    result = json.loads(kaiza("session", "show", "3f2b", "--json").out)

    assert [(one["seq"], one["path"], one["lines_added"]) for one in result["changes"]] == [(4, "src/app.py", 3)]
    assert [(one["seq"], one["error_code"], one["paths"]) for one in result["refusals"]] == [
        (6, "PLAN_SCOPE_VIOLATION", ["src/other.py"])
    ]
    shown = kaiza("session", "show", "3f2b").out
    assert f"kaiza audit show --session {SESSION}" in shown
    assert "modify" in shown
    assert "PLAN_SCOPE_VIOLATION" in shown


@pytest.mark.parametrize("odd", ["\x1b[2J", "\x1b]0;t\x07", "\x9b2J", "\r", "\n", "\b", "\u202e", "\u200b"], ids=ascii)
def test_a_client_name_cannot_control_the_terminal(kaiza, workspace, odd):
    app = App([str(workspace)])
    begun = app.call("begin_session", {"role": "WINDSURF", "client": f"a{odd}b"}).output
    app.call(f"a{odd}b", {})
    app.close()
    shown = [kaiza(*words).out for words in (["session", "show", begun["session_id"]], ["session", "list"], ["status"])]

    for text in shown:
        assert f"a{terminal.escape(odd)}b" in text
        assert not [char for char in text.replace("\n", "") if not char.isprintable()]
    assert f"client        a{terminal.escape(odd)}b" in shown[0].splitlines()[3]


def test_a_lock_cannot_control_the_terminal(write_log, body, kaiza, screen):
    refused = {"outcome": "error", "error_code": "PLAN_SCOPE_VIOLATION", "human_message": "No."}
    write_log(body("begin_session"), {**body("write_file", session=OTHER, **refused), "role": "2999\x1b[2J"})
    result = kaiza("status").out
    prompt = screen("session", "unlock", NO_COLOR="1")
    prompt.answer("y")
    prompt.end()

    assert "2999\\x1b[2J" in prompt.shown
    assert "\x1b" not in prompt.shown + result


def test_an_unknown_or_ambiguous_session_is_a_failure(kaiza, story):
    assert kaiza("session", "show", "0000").status == 1
    assert kaiza("session", "show", "").status == 1


def test_an_ambiguous_session_is_refused_with_the_candidates(kaiza, write_log, body):
    twin = SESSION[:-1] + "7"
    write_log(body("begin_session"), body("begin_session", session=twin))
    result = kaiza("session", "show", "3f2b")

    assert (result.status, result.out) == (1, "")
    assert SESSION in result.err
    assert twin in result.err
    assert kaiza("session", "show", SESSION).status == 0


def test_a_session_is_idle_once_its_server_has_ended_and_active_while_any_server_has_it(kaiza, workspace):
    def states():
        listed = json.loads(kaiza("session", "list", "--json").out)["sessions"]
        shown = json.loads(kaiza("status", "--json").out)["sessions"]
        assert [one["state"] for one in listed] == [one["state"] for one in shown]
        return [one["state"] for one in listed]

    first, second = App([str(workspace)]), App([str(workspace)])
    try:
        session = first.call("begin_session", {"role": "WINDSURF"}).output["session_id"]
        begun = states()
        first.close()
        ended = states()
        second.call("session_status", {"session_id": session})
        continued = states()
    finally:
        first.close()
        second.close()

    assert [begun, ended, continued, states()] == [["active"], ["idle"], ["active"], ["idle"]]


def test_a_session_of_a_killed_server_is_idle(kaiza, workspace):
    agent = Agent(workspace)
    try:
        assert [one["state"] for one in json.loads(kaiza("status", "--json").out)["sessions"]] == ["active"]
        agent.door.process.kill()
        agent.door.process.wait()
    finally:
        agent.close()

    assert [one["state"] for one in json.loads(kaiza("status", "--json").out)["sessions"]] == ["idle"]


def test_without_a_place_to_say_so_no_session_is_called_idle(kaiza, workspace):
    (workspace / ".kaiza").mkdir(exist_ok=True)
    (workspace / ".kaiza/live").write_text("in the way")
    app = App([str(workspace)])
    app.call("begin_session", {"role": "WINDSURF"})
    app.close()

    assert [one["state"] for one in json.loads(kaiza("status", "--json").out)["sessions"]] == ["active"]


def test_without_sessions_the_list_is_empty(kaiza, workspace):
    result = kaiza("session", "list", "--json")

    assert (result.status, json.loads(result.out)) == (0, {"sessions": []})
    assert kaiza("session", "list").out == ""


def test_records_without_some_members_do_not_stop_the_list(kaiza, write_log):
    write_log({"kind": "call", "session_id": SESSION}, {"kind": "odd"}, record.new_body("person"))

    assert kaiza("session", "list", "--json").status in {0, 3}
