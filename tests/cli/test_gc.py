"""`kaiza gc`: clears what no undo and no review of recent changes needs."""

import hashlib
import json
import os
from datetime import datetime, timedelta

import pytest
from agents import plan
from scenes import records, write_adopted_settings

from kaiza.app import App
from kaiza.decisions import clear_objects
from kaiza.store import human_decisions


def sha(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def in_the_future(monkeypatch):
    """Lets so many days pass; the times of files cannot be set back."""

    def wait(days):
        class Later(datetime):
            @classmethod
            def now(cls, tz=None):
                return datetime.now(tz) + timedelta(days=days)

        monkeypatch.setattr(clear_objects, "datetime", Later)

    return wait


@pytest.fixture
def changed(workspace):
    """One change of src/a from "1" to "2"; its request id."""
    (workspace / "src").mkdir()
    (workspace / "src/a").write_text("1\n")
    approved = plan(workspace)
    app = App([str(workspace)])
    app.call("begin_session", {"role": "WINDSURF"})
    arguments = {"path": "src/a", "content": "2\n", "expected_hash": sha(b"1\n"), "plan_hash": approved}
    request_id = app.call("write_file", arguments).output["request_id"]
    app.close()
    return request_id


def stored(workspace):
    return f"{sha(b'1' + bytes([10]))}.z" in os.listdir(workspace / ".kaiza/objects")


def test_recent_changes_are_kept_and_old_ones_cleared_and_recorded(kaiza, workspace, changed, in_the_future):
    recent = json.loads(kaiza("gc", "--json").out)
    in_the_future(31)
    dry = json.loads(kaiza("gc", "--dry-run", "--json").out)
    is_kept, count = stored(workspace), len(records(workspace))
    cleared = kaiza("gc", "--as", "Ann")
    last = records(workspace)[-1]

    assert (recent["objects"], dry["objects"] >= 1, dry["dry_run"]) == (0, True, True)
    assert (is_kept, count + 1) == (True, len(records(workspace)))
    assert cleared.status == 0
    assert not stored(workspace)
    assert (last["kind"], last["detail"]["action"], last["detail"]["person"]) == ("person", "gc", "Ann")
    assert (last["detail"]["objects"], last["detail"]["keep_days"]) == (dry["objects"], 30)
    assert kaiza("gc").out.startswith("Nothing to clear")


def test_an_undo_of_what_was_cleared_says_so_and_changes_nothing(kaiza, workspace, changed, in_the_future):
    in_the_future(31)
    kaiza("gc")
    shown = kaiza("undo", "--request", changed, "--yes")
    listed = json.loads(kaiza("undo", "--request", changed, "--yes", "--json").out)

    assert shown.status == 1
    assert "`kaiza gc`" in shown.out
    assert listed["kept"] == [{"path": "src/a", "reason": "not_kept"}]
    assert (workspace / "src/a").read_text() == "2\n"


@pytest.mark.parametrize("case", [([], 40, True), ([], 64, False), (["--keep", "5w"], 40, False)])
def test_the_time_is_that_of_the_option_else_of_the_settings(kaiza, workspace, changed, in_the_future, case):
    words, days, is_kept = case
    write_adopted_settings(workspace, '[objects]\nkeep = "9w"\n')
    in_the_future(days)

    assert kaiza("gc", *words).status == 0
    assert stored(workspace) is is_kept


def test_a_setting_that_came_with_a_clone_shortens_nothing(kaiza, workspace, changed, in_the_future):
    (workspace / "kaiza.toml").write_text('[objects]\nkeep = "1d"\n')
    in_the_future(5)

    assert json.loads(kaiza("gc", "--json").out)["keep_days"] == 30
    assert stored(workspace)


@pytest.mark.parametrize("time", ["0d", "-1d", "30", "1h", "", "30D", "٣d", "99999d"])
def test_an_invalid_time_is_a_usage_error(kaiza, workspace, time):
    assert kaiza("gc", "--keep", time).status == 2


def test_nothing_is_cleared_while_the_log_is_damaged(kaiza, workspace, changed, in_the_future, log):
    log.write_bytes(log.read_bytes().replace(b"src/a", b"src/b", 1))
    in_the_future(31)

    assert kaiza("gc").status == 1
    assert stored(workspace)


def test_nothing_is_cleared_if_it_cannot_be_recorded(kaiza, workspace, changed, in_the_future, monkeypatch):
    def refuse(*_arguments, **_members):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(human_decisions, "record_decision", refuse)
    in_the_future(31)

    assert kaiza("gc").status == 3
    assert stored(workspace)


def test_a_journal_that_cannot_be_read_stops_it(kaiza, workspace, changed, in_the_future):
    os.mkfifo(workspace / ".kaiza/journal/pipe")
    in_the_future(31)

    assert kaiza("gc").status == 3
    assert stored(workspace)


def test_a_deterministic_log_has_no_times_to_go_by(kaiza, workspace):
    app = App([str(workspace)], deterministic=True)
    app.call("begin_session", {"role": "WINDSURF"})
    app.close()

    assert kaiza("gc").status == 1
