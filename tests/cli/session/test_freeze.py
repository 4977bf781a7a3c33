"""`kaiza freeze`, `thaw`, `session unlock` and `status`: a person stops agents, and lets them go on."""

import json

import pytest

from kaiza.domain.audit import record

SESSION, OTHER = "3f2b1c00-0000-4000-8000-000000000001", "9a9a9a9a-0000-4000-8000-000000000002"
NO = {"outcome": "error", "error_code": "PLAN_SCOPE_VIOLATION", "human_message": "No."}


def records(log):
    return [json.loads(line) for line in log.read_bytes().splitlines()]


def status(kaiza):
    return json.loads(kaiza("status", "--json").out)


@pytest.fixture
def locked(written, body):
    """Both roles are locked, the executor by the third record."""
    fresh = {"timestamp": "2999-01-01T00:00:00.000Z"}
    written(
        body("begin_session", **fresh),
        body("begin_session", session=OTHER, role="ANTIGRAVITY", **fresh),
        body("write_file", **NO, **fresh),
        body("write_file", session=OTHER, role="ANTIGRAVITY", **NO, **fresh),
    )


def test_a_freeze_needs_no_word_and_is_recorded_with_its_reason(kaiza, log, workspace):
    told = kaiza("freeze", "release in progress", "--as", "Ann", "--json")
    (one,) = records(log)

    assert (told.status, json.loads(told.out)["frozen"]) == (0, True)
    assert one["kind"] == "person"
    assert one["detail"] == {"action": "freeze", "person": "Ann", "reason": "release in progress"}
    assert status(kaiza)["frozen"]["reason"] == "release in progress"
    assert "none: frozen" in kaiza("status").out


def test_settings_that_cannot_be_read_keep_nobody_from_freezing(kaiza, log, workspace):
    (workspace / "kaiza.toml").write_text("[approval\n")

    assert kaiza("freeze", "now").status == 0
    assert [one["detail"]["action"] for one in records(log)] == ["freeze"]
    assert kaiza("thaw").status != 0


@pytest.mark.parametrize("words", [[], [""], ["  "], ["x" * 1001]])
def test_a_freeze_without_a_reason_is_a_wrong_command_line(kaiza, workspace, log, words):
    assert kaiza("freeze", *words).status == 2
    assert not log.exists()


def test_a_thaw_shows_who_froze_and_why_and_takes_the_word(kaiza, log, screen):
    kaiza("freeze", "release \x1b[31m", "--as", "Ann")
    asked = screen("thaw", "--as", "Bob")
    shown = asked.until("Type thaw")
    asked.type("thaw\n")

    assert asked.end() == 0
    assert "by Ann: release \\x1b[31m" in shown
    assert records(log)[-1]["detail"]["action"] == "thaw"
    assert records(log)[-1]["detail"]["person"] == "Bob"
    assert status(kaiza)["frozen"] is None


def test_no_member_of_a_freeze_can_steer_the_terminal(kaiza, written, screen):
    detail = {"action": "freeze", "person": "A\x1b[2Jnn", "reason": "r\x1b[2J"}
    written(record.new_body("person", timestamp="2999\x1b[2J", detail=detail))
    told = kaiza("status").out
    asked = screen("thaw", NO_COLOR="1")
    shown = asked.until("Type thaw")
    asked.type("no\n")
    asked.end()

    assert shown.count("\\x1b[2J") == 3
    assert "\x1b" not in shown + told


@pytest.mark.parametrize("word", ["yes", "THAW", "\x04"])
def test_any_other_word_leaves_it_frozen(kaiza, log, screen, word):
    kaiza("freeze", "stop")
    asked = screen("thaw")
    asked.until("Type thaw")
    asked.type(word if word == "\x04" else f"{word}\n")

    assert asked.end() == 1
    assert len(records(log)) == 1


def test_a_freeze_that_came_meanwhile_is_not_lifted_unseen(kaiza, log, screen):
    kaiza("freeze", "first")
    asked = screen("thaw")
    asked.until("Type thaw")
    kaiza("freeze", "second")
    asked.type("thaw\n")

    assert asked.end() == 1
    assert status(kaiza)["frozen"]["reason"] == "second"


def test_what_is_not_frozen_or_locked_is_a_no(kaiza, workspace):
    assert kaiza("thaw").status == 1
    assert kaiza("session", "unlock").status == 1


@pytest.mark.parametrize(
    ("words", "left"),
    [
        ([], set()),
        (["--role", "WINDSURF"], {"ANTIGRAVITY"}),
        (["3f2b"], {"ANTIGRAVITY"}),
        ([OTHER], {"WINDSURF"}),
    ],
)
def test_a_person_unlocks_what_they_name_and_is_shown_why_it_is_locked(kaiza, locked, screen, log, words, left):
    asked = screen("session", "unlock", *words, "--as", "Ann")
    shown = asked.until("Type unlock")
    asked.type("unlock\n")
    ended = asked.end()
    said = [one for one in records(log) if one["kind"] == "person"]

    assert ended == 0
    assert "PLAN_SCOPE_VIOLATION" in shown
    assert {one["role"] for one in said} == {"WINDSURF", "ANTIGRAVITY"} - left
    assert all((one["detail"]["action"], one["detail"]["person"]) == ("unlock", "Ann") for one in said)
    assert {lock["role"] for lock in status(kaiza)["locks"]} == left


def test_any_other_word_leaves_it_locked(kaiza, locked, screen):
    asked = screen("session", "unlock")
    asked.until("Type unlock")
    asked.type("ok\n")

    assert asked.end() == 1
    assert len(status(kaiza)["locks"]) == 2


def test_a_session_that_is_not_there_or_not_clear_unlocks_nothing(kaiza, locked):
    assert kaiza("session", "unlock", "0000").status == 1
    assert kaiza("session", "unlock", "--role", "WINDSURF", "3f2b").status == 2


def test_status_tells_everything_on_one_screen(kaiza, locked, workspace):
    told = status(kaiza)
    shown = kaiza("status")

    assert told["workspace"] == str(workspace)
    assert (told["record"]["verdict"], told["record"]["records"]) == ("intact", 4)
    assert [(one["session_id"], one["state"]) for one in told["sessions"]] == [(SESSION, "locked"), (OTHER, "locked")]
    assert [(lock["role"], lock["seq"]) for lock in told["locks"]] == [("WINDSURF", 3), ("ANTIGRAVITY", 4)]
    assert (told["plans"], told["intents"], told["frozen"]) == ([], [], None)
    assert shown.status == 0
    assert shown.out.count("\n") < 24
    assert "kaiza session unlock" in shown.out


def test_status_tells_of_changes_that_a_crash_left_open(kaiza, written):
    change = {"path": "src/a", "source": None, "operation": "create", "before_hash": None, "after_hash": "1" * 64}
    change |= {"size": 1, "lines_added": 1, "lines_removed": 0, "mode": None}
    written(record.new_body("intent", timestamp="2025-03-18T09:00:00.000Z", request_id="r", changes=[change]))

    assert status(kaiza)["intents"] == [{"request_id": "r", "seq": 1, "paths": ["src/a"]}]
    assert "src/a" in kaiza("status").out


def test_a_damaged_record_is_told_and_nothing_is_loosened_but_a_freeze_still_holds(kaiza, log, workspace):
    log.write_bytes(b"{}\n")

    assert kaiza("status").status == 1
    assert status(kaiza)["record"]["verdict"] == "broken"
    assert kaiza("freeze", "look into it").status == 0
    assert kaiza("thaw").status == 1
    assert kaiza("session", "unlock").status == 1


def test_outside_of_a_workspace_there_is_nothing_to_decide(kaiza, workspace, tmp_path):
    (tmp_path / "bare").mkdir()

    assert kaiza("freeze", "x", "--workspace", str(tmp_path / "bare")).status == 3
    assert not list((tmp_path / "bare").iterdir())
