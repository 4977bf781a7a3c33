"""A workspace that version 0.1.0 left, with its state directory, under this version: nothing of it is lost.

`version_0_1_0/make.py` made the archive with that version.
"""

import json
import tarfile
from pathlib import Path

import pytest
from agents import edit, hash_of, person, word
from scenes import records

from kaiza.app import App
from kaiza.cli import dispatch
from kaiza.store.audit.verification.verify import verify_log
from kaiza.store.disk import state_dir

ARCHIVE = Path(__file__).parent / "version_0_1_0/workspace.tar.gz"


@pytest.fixture
def root(tmp_path):
    """The workspace at another path: in init.json its path and in the journals the inodes are those of the copy."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    root = (tmp_path / "project").resolve()
    slot = state_dir.path_of(str(root))
    slot.parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "state").rename(slot)
    manifest = slot / "init.json"
    manifest.write_text(manifest.read_text().replace("@ROOT@", str(root)))
    for journal in (root / ".kaiza/journal").iterdir():
        text = journal.read_text()
        for path in (root / "src").iterdir():
            text = text.replace(f'"src/{path.name}"', str(path.stat().st_ino))
        journal.write_text(text)
    return root


@pytest.fixture
def begin(root):
    """Begins a session in an application of its own; `output` is that of begin_session."""
    apps = []

    def run():
        apps.append(App([str(root)]))
        return apps[-1], apps[-1].call("begin_session", {"role": "WINDSURF"}).output

    yield run
    for app in apps:
        app.close()


def write(app, root, plan_id, path):
    """The error code of a change, or its invariant if it names one; None if it was made."""
    arguments = {"path": path, "content": "new\n", "plan_hash": hash_of(root, plan_id)}
    refusal = app.call("write_file", arguments).envelope
    return refusal and (refusal["invariant_id"] or refusal["error_code"])


def bindings(root):
    return [each["detail"] for each in records(root) if (each["detail"] or {}).get("result") == "workspace_bound"]


def test_it_is_bound_without_a_question_and_says_so_once(root, begin):
    looked = person(root, "doctor"), person(root, "adopt", "--show"), person(root, "audit", "verify")
    before = records(root)
    first, second = begin()[1], begin()[1]

    assert looked == (0, 0, 0)
    assert len(before) == 21
    assert "0.1.0" in first["summary"]
    assert "0.1.0" not in second["summary"]
    assert bindings(root) == [{"result": "workspace_bound", "from": "0.1.0"}]
    assert records(root)[:21] == before
    assert verify_log(str(root)).verdict == "intact"
    assert person(root, "doctor") == 0


@pytest.mark.parametrize("is_command_first", [False, True])
def test_interrupted_changes_are_settled_once_and_as_their_journals_say(root, begin, is_command_first):
    if is_command_first:
        assert person(root, "freeze", "an upgrade") == 0
    settled = {each["result"]: sorted(each["paths"]) for each in begin()[1]["recovered"]}

    assert settled == {"applied": ["src/changed.py", "src/gone.py", "src/new.py"], "taken_back": ["src/half.py"]}
    assert begin()[1]["recovered"] == []
    assert sorted(path.name for path in (root / "src").iterdir()) == [
        "changed.py",
        "new.py",
        "one.py",
        "three.py",
        "two.py",
    ]
    assert (root / "src/changed.py").read_text() == "after\n"


def test_locks_limits_approvals_and_withdrawals_are_as_they_were(root, begin):
    app, begun = begin()
    locked = write(app, root, "PLAN-2", "src/a")
    unlocked = word(root, "unlock", "session", "unlock")
    edit(root, "status: REVOKED", "status: APPROVED", "PLAN-3")
    outcomes = [
        write(app, root, plan_id, path)
        for plan_id, path in [("PLAN-1", "src/a"), ("PLAN-1", "src/b"), ("PLAN-2", "src/b"), ("PLAN-3", "src/c")]
    ]

    assert begun["state"] == "locked"
    assert locked == "SESSION_LOCKED"
    assert unlocked == 0
    assert outcomes == [None, "PLAN_LIMIT_REACHED", None, "PLAN_WITHDRAWN"]


def test_a_plan_edited_to_approved_but_never_used_needs_one_command(root, begin):
    app, _ = begin()
    word(root, "unlock", "session", "unlock")
    edit(root, "status: DRAFT", "status: APPROVED", "PLAN-5")
    before = write(app, root, "PLAN-4", "src/a")
    approved = word(root, "PLAN-4", "plan", "approve", "PLAN-4")

    assert before == "PLAN_ARRIVED_APPROVED"
    assert approved == 0
    assert write(app, root, "PLAN-4", "src/a") is None
    assert write(app, root, "PLAN-5", "src/b") is None


@pytest.mark.parametrize("words", [(), ("freeze", "x"), ("plan", "reject", "PLAN-5")])
def test_its_settings_stay_in_force_whichever_command_is_first(root, begin, words):
    if words:
        person(root, *words)
    app, begun = begin()
    secret, exempt = (app.call("read_file", {"path": path}).envelope for path in ("secret/a", "tests/.env"))

    assert secret["error_code"] == "POLICY_VIOLATION"
    assert exempt is None
    assert "kaiza adopt" not in begun["summary"]


def test_a_person_and_an_agent_undo_what_was_changed_under_0_1_0(root, begin):
    app, _ = begin()
    word(root, "unlock", "session", "unlock")
    (made,) = [each for each in records(root) if each["kind"] == "call" and each["plan_id"] == "PLAN-2"]
    undone = app.call("undo_changes", {"request_ids": [made["request_id"]], "plan_hash": hash_of(root, "PLAN-2")})
    restored = person(root, "undo", "--plan", "PLAN-1", "--yes")

    assert undone.envelope is None
    assert restored == 0
    assert {path.name: path.read_text() for path in (root / "src").iterdir()} == {
        "changed.py": "before\n",
        "gone.py": "gone\n",
        "three.py": "x\n",
    }


def test_settings_that_cannot_be_read_do_not_stop_a_freeze(root):
    (root / "kaiza.toml").write_text("?")

    assert person(root, "freeze", "x") == 0
    assert bindings(root)


def test_one_whose_directories_were_made_by_hand_waits_for_one_adoption(root, begin, monkeypatch, capsys):
    (state_dir.path_of(str(root)) / "init.json").unlink()
    monkeypatch.chdir(root)
    shown = dispatch.main(["adopt", "--show", "--json"])
    waiting = json.loads(capsys.readouterr().out)
    app, begun = begin()
    before = write(app, root, "PLAN-2", "src/a")
    adopted = word(root, "adopt", "adopt")
    # Its records only restrict: a thaw and an approval in them have to be given again.
    again = [word(root, *words) for words in (["thaw", "thaw"], ["unlock", "session", "unlock"])]
    unapproved = write(app, root, "PLAN-2", "src/a")
    approved = word(root, "PLAN-2", "plan", "approve", "PLAN-2")
    exempt = begin()[0].call("read_file", {"path": "tests/.env"}).envelope

    assert shown == 1
    assert waiting["journals"] == 2
    assert [setting["key"] for setting in waiting["settings"]] == ["allow_read"]
    assert waiting["approved"] == ["PLAN-1", "PLAN-2", "PLAN-4"]
    assert begun["recovered"] == []
    assert before == "WORKSPACE_NOT_ADOPTED"
    assert (adopted, *again, approved) == (0, 0, 0, 0)
    assert unapproved == "PLAN_ARRIVED_APPROVED"
    assert write(app, root, "PLAN-2", "src/a") is None
    assert exempt is None
    assert person(root, "adopt", "--show") == 0
