"""`kaiza freeze`, `thaw`, `session unlock` and `status`: a person stops agents and lets them continue."""

import json
import shutil

import pytest

from kaiza.domain.audit import record

SESSION, OTHER = "3f2b1c00-0000-4000-8000-000000000001", "9a9a9a9a-0000-4000-8000-000000000002"
NO = {"outcome": "error", "error_code": "PLAN_SCOPE_VIOLATION", "human_message": "No."}


def records(log):
    return [json.loads(line) for line in log.read_bytes().splitlines()]


def status(kaiza):
    return json.loads(kaiza("status", "--json").out)


def frozen_by(kaiza):
    """Every freeze in force, oldest first."""
    frozen = status(kaiza)["frozen"]
    return [frozen, *frozen["more"]]


@pytest.fixture
def locked(write_log, body):
    """Both roles are locked: the executor by record 3, the planner by record 4."""
    fresh = {"timestamp": "2999-01-01T00:00:00.000Z"}
    write_log(
        body("begin_session", **fresh),
        body("begin_session", session=OTHER, role="ANTIGRAVITY", **fresh),
        body("write_file", **NO, **fresh),
        body("write_file", session=OTHER, role="ANTIGRAVITY", **NO, **fresh),
    )


def test_a_freeze_needs_no_confirmation_and_is_recorded_with_its_reason(kaiza, log, workspace):
    result = kaiza("freeze", "release in progress", "--as", "Ann", "--json")
    (one,) = records(log)

    assert (result.status, json.loads(result.out)["frozen"]) == (0, True)
    assert one["kind"] == "person"
    assert one["detail"] == {"action": "freeze", "person": "Ann", "reason": "release in progress"}
    assert status(kaiza)["frozen"]["reason"] == "release in progress"
    assert "none: frozen" in kaiza("status").out


def test_invalid_settings_do_not_prevent_a_freeze(kaiza, log, workspace):
    (workspace / "kaiza.toml").write_text("[approval\n")

    assert kaiza("freeze", "now").status == 0
    assert [one["detail"]["action"] for one in records(log)] == ["freeze"]
    assert kaiza("thaw").status != 0


@pytest.mark.parametrize("words", [[], [""], ["  "], ["x" * 1001]])
def test_a_freeze_without_a_reason_is_a_usage_error(kaiza, workspace, log, words):
    assert kaiza("freeze", *words).status == 2
    assert not log.exists()


def test_a_thaw_shows_who_froze_and_why_and_needs_confirmation(kaiza, log, screen):
    kaiza("freeze", "release \x1b[31m", "--as", "Ann")
    prompt = screen("thaw", "--as", "Bob")
    shown = prompt.answer("y")

    assert prompt.end() == 0
    assert "by Ann: release \\x1b[31m" in shown
    assert records(log)[-1]["detail"]["action"] == "thaw"
    assert records(log)[-1]["detail"]["person"] == "Bob"
    assert status(kaiza)["frozen"] is None


def test_no_member_of_a_freeze_can_control_the_terminal(kaiza, write_log, screen):
    detail = {"action": "freeze", "person": "A\x1b[2Jnn", "reason": "r\x1b[2J"}
    write_log(record.new_body("person", timestamp="2999\x1b[2J", detail=detail))
    result = kaiza("status").out
    prompt = screen("thaw", NO_COLOR="1")
    shown = prompt.answer("no")
    prompt.end()

    assert shown.count("\\x1b[2J") == 3
    assert "\x1b" not in shown + result


def test_a_second_freeze_adds_its_reason_and_one_thaw_lifts_both(kaiza, log, screen):
    kaiza("freeze", "release", "--as", "Ann")
    second = json.loads(kaiza("freeze", "look at src", "--as", "Bob", "--json").out)
    shown = kaiza("status").out
    prompt = screen("thaw")
    asked = prompt.answer("y")

    assert prompt.end() == 0
    assert second["reasons"] == ["release", "look at src"]
    for text in (shown, asked):
        assert "by Ann: release" in text
        assert "by Bob: look at src" in text
    assert records(log)[-1]["detail"]["more_reasons"] == ["look at src"]
    assert status(kaiza)["frozen"] is None


def test_the_reasons_of_a_freeze_survive_the_snapshot_and_a_lost_log(kaiza, workspace, log):
    for reason in ("one", "two"):
        kaiza("freeze", reason)
    kept = [one["reason"] for one in frozen_by(kaiza)]
    shutil.rmtree(workspace / "audit")
    shutil.rmtree(workspace / ".kaiza")
    (workspace / "audit").mkdir()
    kaiza("freeze", "three")

    assert kept == ["one", "two"]
    assert [one["reason"] for one in frozen_by(kaiza)] == ["one", "two", "three"]


def test_of_many_freezes_the_first_and_the_latest_reasons_are_kept(write_log, kaiza):
    freezes = [{"action": "freeze", "person": "Ann", "reason": f"r{number}" + "x" * 5000} for number in range(40)]
    write_log(*(record.new_body("person", timestamp="2025-03-18T09:00:00.000Z", detail=each) for each in freezes))
    reasons = [one["reason"] for one in frozen_by(kaiza)]

    assert [reason.rstrip("x") for reason in reasons] == ["r0", *(f"r{number}" for number in range(30, 40))]
    assert max(map(len, reasons[1:])) == 1000


def test_any_other_answer_leaves_the_workspace_frozen(kaiza, log, screen):
    kaiza("freeze", "stop")
    prompt = screen("thaw")
    prompt.answer("thaw")

    assert prompt.end() == 1
    assert len(records(log)) == 1


def test_a_freeze_made_during_the_question_is_not_lifted(kaiza, log, screen):
    kaiza("freeze", "first")
    prompt = screen("thaw")
    prompt.until("Thaw?")
    kaiza("freeze", "second")
    prompt.answer("y")

    assert prompt.end() == 1
    assert [one["reason"] for one in frozen_by(kaiza)] == ["first", "second"]


def test_nothing_to_thaw_or_unlock_is_a_failure(kaiza, workspace):
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
def test_unlock_shows_why_and_unlocks_only_the_selected_roles(kaiza, locked, screen, log, words, left):
    prompt = screen("session", "unlock", *words, "--as", "Ann")
    shown = prompt.answer("y")
    ended = prompt.end()
    decisions = [one for one in records(log) if one["kind"] == "person"]

    assert ended == 0
    assert "PLAN_SCOPE_VIOLATION" in shown
    assert {one["role"] for one in decisions} == {"WINDSURF", "ANTIGRAVITY"} - left
    assert all((one["detail"]["action"], one["detail"]["person"]) == ("unlock", "Ann") for one in decisions)
    assert {lock["role"] for lock in status(kaiza)["locks"]} == left


def test_any_other_answer_leaves_the_roles_locked(kaiza, locked, screen):
    prompt = screen("session", "unlock")
    prompt.answer("ok")

    assert prompt.end() == 1
    assert len(status(kaiza)["locks"]) == 2


def test_an_unknown_session_unlocks_nothing(kaiza, locked):
    assert kaiza("session", "unlock", "0000").status == 1
    assert kaiza("session", "unlock", "--role", "WINDSURF", "3f2b").status == 2


def test_status_shows_everything_on_one_screen(kaiza, locked, workspace):
    result = status(kaiza)
    shown = kaiza("status")

    assert result["workspace"] == str(workspace)
    assert (result["record"]["verdict"], result["record"]["records"]) == ("intact", 4)
    assert [(one["session_id"], one["state"]) for one in result["sessions"]] == [(SESSION, "locked"), (OTHER, "locked")]
    assert [(lock["role"], lock["seq"]) for lock in result["locks"]] == [("WINDSURF", 3), ("ANTIGRAVITY", 4)]
    assert (result["plans"], result["intents"], result["frozen"]) == ([], [], None)
    assert shown.status == 0
    assert shown.out.count("\n") < 24
    assert "kaiza session unlock" in shown.out


def test_status_shows_changes_left_unfinished_by_a_crash(kaiza, write_log):
    change = {"path": "src/a", "source": None, "operation": "create", "before_hash": None, "after_hash": "1" * 64}
    change |= {"size": 1, "lines_added": 1, "lines_removed": 0, "mode": None}
    write_log(record.new_body("intent", timestamp="2025-03-18T09:00:00.000Z", request_id="r", changes=[change]))

    assert status(kaiza)["intents"] == [{"request_id": "r", "seq": 1, "paths": ["src/a"]}]
    assert "src/a" in kaiza("status").out


def test_a_damaged_log_allows_a_freeze_but_no_thaw_and_no_unlock(kaiza, log, workspace):
    log.write_bytes(b"{}\n")

    assert kaiza("status").status == 1
    assert status(kaiza)["record"]["verdict"] == "broken"
    assert kaiza("freeze", "look into it").status == 0
    assert kaiza("thaw").status == 1
    assert kaiza("session", "unlock").status == 1


def test_outside_a_workspace_a_freeze_exits_with_3_and_writes_nothing(kaiza, workspace, tmp_path):
    (tmp_path / "bare").mkdir()

    assert kaiza("freeze", "x", "--workspace", str(tmp_path / "bare")).status == 3
    assert not list((tmp_path / "bare").iterdir())
