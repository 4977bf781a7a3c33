"""`kaiza doctor --fix` settles a journal of another state directory by the log, never by the journal."""

import fcntl
import json
import os
import shutil

import pytest
from boundary.test_changes import sha
from boundary.test_recovery import files, lay_out, run_with_patch
from scenes import bind, records

from kaiza.app import App
from kaiza.boundary import change
from kaiza.domain.audit import record
from kaiza.store.audit import log as audit_log
from kaiza.store.changes.operation import ActiveOperation
from kaiza.store.changes.transaction import TransactionManager
from kaiza.store.disk.kaiza_dir import KaizaDir
from kaiza.store.disk.process_liveness import LivenessLock

TXN = "3f2b9a52-0000-4000-8000-000000000000"
AFTER = {"src/new.py", "src/changed.py"}


@pytest.fixture
def interrupted(workspace, monkeypatch, tmp_path):
    """Interrupts a change, and takes its state directory away; returns its id."""

    def interrupt(target=change, name="record_outcome", act=lambda *_, **__: os._exit(0)):
        (workspace / "src").mkdir(exist_ok=True)
        shutil.rmtree(workspace / "src")
        plan_hash = lay_out(workspace)
        run_with_patch(workspace, plan_hash, monkeypatch, target, name, act)
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
        bind(workspace)
        (journal,) = (workspace / ".kaiza/journal").iterdir()
        return journal.name

    return interrupt


def after_first(number=1):
    """Ends the process when so many files are changed."""
    done, perform = [], ActiveOperation.perform

    def act(operation):
        if len(done) == number:
            os._exit(0)
        done.append(operation)
        perform(operation)

    return {"target": ActiveOperation, "name": "perform", "act": act}


def ship_journal(root, name=TXN, *, live="1-a", state="ab" * 8, steps=()):
    """A journal that came with the workspace and names another state directory."""
    (root / ".kaiza/journal").mkdir(parents=True, exist_ok=True)
    line = json.dumps({"state": state, "live": live, "steps": list(steps), "made": []})
    (root / ".kaiza/journal" / name).write_text(f"{line} {'0' * 64}\n")


def ship_intent(root, *paths, txn=TXN, tool_name="write_file", timestamp="2026-11-18T09:00:00.000Z"):
    """An open intent in the log that creates these files."""
    shape = {"source": None, "operation": "create", "before_hash": None, "after_hash": sha(b"new\n")}
    numbers = {"size": 0, "lines_added": 0, "lines_removed": 0, "mode": None}
    changes = [{"path": path, **shape, **numbers} for path in paths]
    body = record.new_body(
        "intent", timestamp=timestamp, request_id=txn, tool_name=tool_name, changes=changes, detail={"live": "1-a"}
    )  # fmt: skip
    log = audit_log.AuditLog(str(root), follow=lambda _: None)
    log.append(lambda: body, durable=True)
    log.close()


def everything(root):
    """Contents of all files at and above the workspace, without the state directories and `.kaiza`."""
    kept = [path for path in root.parent.rglob("*") if path.is_file()]
    skipped = {"state", "another", ".kaiza", "audit"}
    return {path: path.read_bytes() for path in kept if skipped.isdisjoint(path.relative_to(root.parent).parts)}


def journals(root):
    return sorted(path.name for path in (root / ".kaiza/journal").iterdir())


def settle(screen, *words, answer="y"):
    shown = screen("doctor", "--fix", "--as", "Ann", *words)
    shown.answer(answer)
    return shown.end(), shown.shown


def test_a_change_that_was_made_is_recorded_as_made_by_the_person(screen, workspace, interrupted):
    txn = interrupted()
    (journal,) = [path.read_bytes() for path in (workspace / ".kaiza/journal").iterdir()]
    status, shown = settle(screen)
    last = records(workspace)[-1]

    assert status == 0
    assert "src/changed.py: as after the change" in shown
    assert set(files(workspace)) == AFTER
    assert (last["kind"], last["request_id"], last["detail"]["result"]) == ("recovery", txn, "applied")
    assert last["detail"]["person"] == "Ann"
    assert journals(workspace) == []
    assert (workspace / ".kaiza/set-aside/journal-1").read_bytes() == journal
    assert [path for path in workspace.rglob(".kaiza-*") if path.is_file()] == []


def test_a_change_that_touched_no_file_is_recorded_as_not_made(screen, workspace, interrupted):
    interrupted(**after_first(0))
    before = files(workspace)
    status, shown = settle(screen)

    assert status == 0
    assert "src/new.py: as before the change" in shown
    assert records(workspace)[-1]["detail"]["result"] == "not_applied"
    assert {path for path in files(workspace) if ".kaiza-" not in path} == {"src/changed.py", "src/gone.py"}
    assert files(workspace).items() <= before.items()


def test_a_change_made_in_part_is_recorded_as_unclear_and_undone_by_its_id(screen, kaiza, workspace, interrupted):
    txn = interrupted(**after_first(2))
    status, _ = settle(screen)
    result = records(workspace)[-1]["detail"]["result"]
    undone = kaiza("undo", "--request", txn, "--yes")

    assert (status, result, undone.status) == (0, "unknown", 0)
    assert {path: (workspace / path).read_text() for path in files(workspace)} == {
        "src/changed.py": "before\n",
        "src/gone.py": "gone\n",
    }


def test_a_change_from_before_the_adoption_counts_for_no_session_and_no_plan(screen, workspace, interrupted, log):
    txn = interrupted()
    bind(workspace, adopted=len(log.read_bytes().splitlines()))
    status, _ = settle(screen)
    last = records(workspace)[-1]

    assert status == 0
    assert (last["request_id"], last["detail"]["result"]) == (txn, "applied")
    assert (last["session_id"], last["plan_id"], last["plan_hash"]) == (None, None, None)


def test_a_change_with_a_recorded_outcome_is_only_set_aside(screen, workspace, interrupted):
    interrupted(TransactionManager, "finalize", lambda *_: os._exit(0))
    status, shown = settle(screen)

    assert status == 0
    assert "its outcome is recorded" in shown
    assert (records(workspace)[-1]["detail"]["result"], records(workspace)[-1]["changes"]) == ("set_aside", [])
    assert [path for path in workspace.rglob(".kaiza-*") if path.is_file()] == []


def test_a_journal_without_an_intent_is_set_aside_and_names_no_files(screen, workspace):
    ship_journal(workspace, steps=[{"do": "take", "path": ["mine"], "temp": "../../victim"}])
    (workspace / "mine").write_text("mine")
    before = everything(workspace)
    status, shown = settle(screen)

    assert status == 0
    assert "its files are not known" in shown
    assert "mine" not in shown.replace(str(workspace), "")
    assert everything(workspace) == before
    assert records(workspace)[-1]["detail"]["result"] == "set_aside"
    assert journals(workspace) == []


@pytest.mark.parametrize("path", ["../victim.txt", "/etc/passwd", ".git/hooks/pre-commit", "plans/PLAN-1.md", ".env"])
def test_an_intent_for_a_file_outside_or_protected_changes_and_reveals_nothing(screen, workspace, path):
    (workspace.parent / "victim.txt").write_text("new\n")
    for name in (f".kaiza-{TXN}-0", ".env"):
        (workspace / name).write_text("new\n")
    (workspace.parent / f".kaiza-{TXN}-0").write_text("not ours")
    ship_intent(workspace, path)
    ship_journal(workspace)
    before = everything(workspace)
    status, shown = settle(screen)

    assert status == 0
    assert "as after the change" not in shown
    assert records(workspace)[-1]["detail"]["result"] == "unknown"
    assert everything(workspace) == before


def test_a_file_that_cannot_be_read_does_not_count_as_missing(screen, workspace):
    (workspace / "a.py").symlink_to("/etc/passwd")
    ship_intent(workspace, "a.py")
    ship_journal(workspace)
    status, _ = settle(screen)

    assert status == 0
    assert records(workspace)[-1]["detail"]["result"] == "unknown"


def test_names_that_came_with_the_workspace_are_escaped(screen, workspace):
    ship_intent(workspace, "a\x1b[2Jb", "c\u202ed")
    ship_journal(workspace, state="x\x1b]0;title\x07")
    _, shown = settle(screen)

    assert not {"\x1b", "\x07", "\u202e"} & set(shown)
    assert "a\\x1b[2Jb" in shown


def test_an_intent_without_a_time_or_a_tool_can_be_shown(screen, workspace):
    ship_intent(workspace, "a.py", tool_name=None, timestamp=None)
    ship_journal(workspace)

    assert settle(screen)[0] == 0


def test_a_time_that_no_date_has_does_not_stop_doctor(screen, kaiza, workspace):
    ship_journal(workspace)
    os.utime(workspace / ".kaiza/journal" / TXN, (1 << 40, 1 << 40))
    named = json.loads(kaiza("doctor", "--json").out)["checks"]

    assert {each["check"]: each["verdict"] for each in named}["foreign-journals"] == "warning"
    assert settle(screen)[0] == 0


@pytest.mark.parametrize("is_announced", [True, False])
def test_a_change_whose_writer_is_alive_is_left_alone(kaiza, workspace, is_announced):
    descriptor = os.open(workspace, os.O_RDONLY)
    kaiza_dir = KaizaDir(descriptor)
    writer = LivenessLock(kaiza_dir)
    try:
        if is_announced:
            ship_intent(workspace, "new.py")
        ship_journal(workspace, live=writer.id)
        result = kaiza("doctor", "--fix", "--json")
    finally:
        writer.close()
        kaiza_dir.close()
        os.close(descriptor)

    assert (result.status, json.loads(result.out)) == (1, {"settled": [], "left": [TXN]})
    assert journals(workspace) == [TXN]


def test_a_damaged_log_announces_nothing(kaiza, workspace, log):
    ship_intent(workspace, "a.py")
    ship_intent(workspace, "b.py", txn="other")
    ship_journal(workspace)
    log.write_bytes(log.read_bytes().replace(b"a.py", b"c.py"))
    refused = kaiza("doctor", "--fix")

    assert refused.status == 1
    assert journals(workspace) == [TXN]


def test_the_next_session_has_nothing_left_to_recover(screen, workspace, interrupted):
    interrupted()
    settle(screen)
    app = App([os.path.realpath(workspace)])
    recovered = app.call("begin_session", {"role": "WINDSURF"}).output["recovered"]
    app.close()

    assert recovered == []


def test_doctor_names_the_journal_and_changes_nothing(kaiza, workspace, interrupted):
    txn = interrupted()
    kaiza("doctor")
    before = {path: path.read_bytes() for path in workspace.rglob("*") if path.is_file()}
    result = kaiza("doctor", "--json")
    named = {each["check"]: each for each in json.loads(result.out)["checks"]}["foreign-journals"]

    assert named["verdict"] == "warning"
    assert txn in named["message"]
    assert "kaiza doctor --fix" in named["todo"]
    assert {path: path.read_bytes() for path in workspace.rglob("*") if path.is_file()} == before


def test_a_change_in_progress_does_not_stop_the_others(screen, workspace):
    ship_journal(workspace, "first")
    ship_journal(workspace, "second")
    with (workspace / ".kaiza/journal/first").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        status, shown = settle(screen)

    assert status == 1
    assert ".kaiza/journal/first is of a change that may be in progress" in shown
    assert journals(workspace) == ["first"]


@pytest.mark.parametrize("name", ["journal", "set-aside"])
def test_a_link_in_place_of_a_directory_of_kaizas_is_not_followed(screen, workspace, tmp_path, name):
    ship_journal(workspace)
    outside = tmp_path / "outside"
    outside.mkdir()
    if name == "journal":
        (workspace / ".kaiza/journal").rename(outside / "moved")
    target = outside / "moved" if name == "journal" else outside
    (workspace / ".kaiza" / name).symlink_to(target)
    before = everything(workspace)
    # Without a question where the journals cannot be read: the command would wait for its answer.
    status = screen("doctor", "--fix").end() if name == "journal" else settle(screen)[0]

    assert status == (3 if name == "journal" else 1)
    assert everything(workspace) == before
