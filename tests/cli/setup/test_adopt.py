"""`kaiza adopt` shows what came with a workspace, asks, and approves nothing."""

import json
import shutil

import pytest

from kaiza.store.disk import state_dir


@pytest.fixture
def foreign(workspace, story):
    shutil.rmtree(workspace / ".kaiza")
    shutil.rmtree(state_dir.path_of(str(workspace)))
    return workspace


def known(workspace):
    return json.loads((state_dir.path_of(str(workspace)) / "workspace.json").read_bytes())


def test_shows_where_the_records_were_written_and_changes_nothing(kaiza, foreign):
    shown = kaiza("adopt", "--show", "--json")
    arrival = json.loads(shown.out)

    assert shown.status == 1
    assert (arrival["standing"], arrival["records"], arrival["roots"]) == ("foreign", 8, ["/w"])
    assert arrival["log"]["verdict"] == "intact"
    assert not (foreign / ".kaiza").exists()


def test_a_bound_workspace_has_nothing_to_adopt(kaiza, workspace):
    assert kaiza("adopt").status == 0
    assert kaiza("adopt", "--show").status == 0


def test_any_other_answer_adopts_nothing(screen, foreign):
    shown = screen("adopt")
    shown.answer("no")

    assert shown.end() == 1
    assert not (foreign / ".kaiza").exists()


def test_settings_that_came_along_may_require_the_word(screen, foreign):
    (foreign / "kaiza.toml").write_text('[approval]\nconfirm = "id"\n')
    shown = screen("adopt")
    shown.answer("y", "Type adopt")

    assert shown.end() == 1


def test_a_yes_adopts_up_to_the_records_that_were_there(screen, kaiza, foreign, log):
    shown = screen("adopt", "--as", "Ann")
    shown.answer("y")
    status = shown.end()
    last = json.loads(log.read_bytes().splitlines()[-1])

    assert status == 0
    assert known(foreign)["adopted"] == 8
    assert (foreign / ".kaiza/id").read_text().strip() == known(foreign)["id"]
    assert (last["kind"], last["detail"]["action"], last["detail"]["person"]) == ("person", "adopt", "Ann")
    assert kaiza("adopt", "--show").status == 0


def test_an_id_that_came_with_the_workspace_is_kept(screen, foreign):
    (foreign / ".kaiza").mkdir()
    (foreign / ".kaiza/id").write_text("ab" * 16)
    shown = screen("adopt")
    shown.answer("y")

    assert shown.end() == 0
    assert known(foreign)["id"] == "ab" * 16


def test_a_damaged_log_has_to_be_accepted_first(kaiza, foreign, log):
    log.write_bytes(log.read_bytes() + b"no record\n")
    refused = kaiza("adopt")

    assert refused.status == 1
    assert "kaiza audit accept" in refused.err


@pytest.mark.parametrize("words", [["thaw"], ["session", "unlock"], ["undo", "--plan", "PLAN-1", "--yes"]])
def test_decisions_that_loosen_wait_for_the_adoption(kaiza, foreign, words):
    refused = kaiza(*words)

    assert refused.status == 1
    assert "kaiza adopt" in refused.err


def test_a_freeze_does_not_wait_for_the_adoption(kaiza, foreign):
    assert kaiza("freeze", "wait").status == 0
    assert json.loads(kaiza("status", "--json").out)["frozen"] is not None


def test_init_asks_for_the_adoption_and_yes_does_not_give_it(kaiza, screen, foreign):
    refused = kaiza("init", "--yes")
    shown = screen("init")
    shown.answer("y", "Adopt this workspace?")
    shown.answer("y", "Write this?")

    assert refused.status == 1
    assert shown.end() == 0
    assert known(foreign)["adopted"] == 8


def test_status_and_doctor_say_that_a_workspace_came_from_elsewhere(kaiza, foreign):
    status = json.loads(kaiza("status", "--json").out)
    doctor = json.loads(kaiza("doctor", "--json").out)

    assert status["standing"] == "foreign"
    assert {check["check"]: check["verdict"] for check in doctor["checks"]}["binding"] == "warning"


@pytest.fixture
def inner(workspace):
    """A directory inside a bound workspace that looks like a workspace of its own."""
    for name in ("plans", "audit"):
        (workspace / "sub" / name).mkdir(parents=True)
    return workspace / "sub"


def test_a_workspace_inside_a_bound_one_has_to_be_named(kaiza, inner, monkeypatch):
    monkeypatch.chdir(inner)

    assert kaiza("status").status == 2
    assert kaiza("status", "--workspace", ".").status == 0


def test_a_freeze_inside_a_bound_workspace_stops_both(kaiza, inner, monkeypatch, workspace):
    monkeypatch.chdir(inner)
    frozen = kaiza("freeze", "wait")

    assert frozen.status == 0
    for root in (inner, workspace):
        assert json.loads(kaiza("status", "--workspace", str(root), "--json").out)["frozen"] is not None
