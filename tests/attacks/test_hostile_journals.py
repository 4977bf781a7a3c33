"""Journals that came with a clone, were tampered with, or belong to another state directory change nothing."""

import json
import os
import shutil
import stat

import pytest
from agents import person
from agents import plan as plan_for
from boundary.test_changes import code, manifest, sha
from boundary.test_recovery import files, lay_out, run_with_patch
from children import run_child
from logs import write_bodies
from scenes import bind, make_ready, records

from kaiza.app import App
from kaiza.boundary import change
from kaiza.domain.audit import record
from kaiza.store import crash_recovery
from kaiza.store.audit.verification.verify import verify_log
from kaiza.store.changes.directory_handles import DirectoryHandles
from kaiza.store.changes.transaction import TransactionManager
from kaiza.store.disk import state_dir

TXN = "3f2b9a52-0000-4000-8000-000000000000"


def begin_session(root):
    """The output of begin_session in an application of its own."""
    app = App([os.path.realpath(root)])
    try:
        outcome = app.call("begin_session", {"role": "WINDSURF"})
    finally:
        app.close()
    assert outcome.envelope is None, outcome.envelope
    return outcome.output


def step(do, path, *, temp, before=None, after=None, source=None):
    return {
        "do": do,
        "path": path.split("/"),
        "temp": temp,
        "before": before,
        "after": after,
        "source": source.split("/") if source else None,
        "facts": None,
    }


def ship_journal(root, *steps, staged=(None,), name=TXN, more=()):
    """A journal without codes."""
    lines = [{"steps": list(steps), "made": []}, {"staged": list(staged)}, *more]
    (root / ".kaiza/journal").mkdir(parents=True, exist_ok=True)
    (root / ".kaiza/journal" / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return root / ".kaiza/journal" / name


def ship_log(root, *changes):
    """A valid log with an open intent of these changes."""
    write_bodies(root, [intent_body(*changes, plan_id="PLAN-1")])


def recorded_change(path, operation, *, before=None, after=None, source=None):
    return {
        "path": path,
        "source": source,
        "operation": operation,
        "before_hash": before,
        "after_hash": after,
        "size": 0,
        "lines_added": 0,
        "lines_removed": 0,
        "mode": None,
    }


@pytest.fixture
def clone(tmp_path):
    root = make_ready(tmp_path / "clone")
    (root / ".git/hooks").mkdir(parents=True)
    (root / "hook").write_text("#!/bin/sh\necho taken\n")
    (tmp_path / "victim.txt").write_text("mine")
    # A person has adopted it: otherwise nothing in `.kaiza` is even read.
    return bind(root)


def snapshot_of_victims(root):
    return manifest(root.parent / "victim.txt"), (root.parent / "victim.txt").read_bytes(), manifest(root / ".git")


def deletes_outside(root, temp):
    ship_journal(root, step("put", "x", temp=temp, after="0" * 64))
    return recorded_change("x", "create", after="0" * 64)


def plants_a_hook(root):
    inode = (root / "hook").stat().st_ino
    ours = sha((root / "hook").read_bytes())
    put = step("move", ".git/hooks/pre-commit", temp=f".kaiza-{TXN}-0", before=ours, source="hook")
    ship_journal(root, put, staged=[inode], more=[{"committed": True}])
    return recorded_change(".git/hooks/pre-commit", "move", before=ours, after=ours, source="hook")


def puts_a_file_in_place(root):
    (root / f".kaiza-{TXN}-0").write_text("evil")
    inode = (root / f".kaiza-{TXN}-0").stat().st_ino
    put = step("put", "setup.py", temp=f".kaiza-{TXN}-0", after=sha(b"evil"))
    ship_journal(root, put, staged=[inode], more=[{"committed": True}])
    return recorded_change("setup.py", "create", after=sha(b"evil"))


ATTACKS = {
    "relative": lambda root: deletes_outside(root, "../victim.txt"),
    "absolute": lambda root: deletes_outside(root, str(root.parent / "victim.txt")),
    "hook": plants_a_hook,
    "file": puts_a_file_in_place,
}


@pytest.mark.parametrize(
    ("attack", "with_intent", "before"),
    [
        *((attack, with_intent, "") for attack in ATTACKS for with_intent in (True, False)),
        *(("hook", True, words) for words in ("freeze wait --as Ann", "status", "undo --plan PLAN-1 --yes")),
    ],
)
def test_a_journal_that_came_with_a_clone_moves_and_deletes_nothing(clone, attack, with_intent, before):
    change = ATTACKS[attack](clone)
    if with_intent:
        ship_log(clone, change)
    victims = snapshot_of_victims(clone)
    if before:
        person(clone, *before.split())
    begin_session(clone)
    begin_session(clone)

    assert snapshot_of_victims(clone) == victims
    assert (clone / "hook").exists()
    assert not (clone / "setup.py").exists()
    assert not (clone / f".kaiza/journal/{TXN}").exists()


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_journal_that_came_with_a_clone_is_left_unread_until_the_clone_is_adopted(clone, attack):
    ship_log(clone, ATTACKS[attack](clone))
    (clone / ".kaiza/id").unlink()
    victims = snapshot_of_victims(clone)
    journal = (clone / ".kaiza/journal" / TXN).read_bytes()
    reported = begin_session(clone)["recovered"]

    assert reported == []
    assert snapshot_of_victims(clone) == victims
    assert (clone / ".kaiza/journal" / TXN).read_bytes() == journal


def test_a_journal_that_is_set_aside_is_reported_and_recorded(clone):
    ATTACKS["relative"](clone)
    reported = begin_session(clone)["recovered"]
    (written,) = [each for each in records(clone) if each["kind"] == "recovery"]

    assert reported == [
        {
            "request_id": TXN,
            "result": "set_aside",
            "paths": [],
            "left": [{"path": ".kaiza/set-aside/journal-1", "reason": "malformed"}],
        }
    ]
    assert written["detail"]["result"] == "set_aside"
    assert written["detail"]["journal"] == TXN
    assert (clone / ".kaiza/set-aside/journal-1").exists()
    assert begin_session(clone)["recovered"] == []


def plant_link(path):
    path.symlink_to("/etc/hostname")


def write_deep_json(path):
    path.write_text("[" * 100_000 + "]" * 100_000 + "\n")


SHAPES = {
    "fifo": os.mkfifo,
    "directory": lambda path: (path / "x").mkdir(parents=True),
    "link": plant_link,
    "binary": lambda path: path.write_bytes(bytes(range(256)) * 40),
    "no-newline": lambda path: path.write_text('{"steps": []'),
    "list": lambda path: path.write_text("[1, 2]\n"),
    "strings": lambda path: path.write_text('{"steps": "x", "made": 7}\n'),
    "no-members": lambda path: path.write_text("{}\n{}\n"),
    "bad-step": lambda path: path.write_text('{"steps": [{"do": "rm"}], "made": []}\n'),
    "deep": write_deep_json,
    "huge": lambda path: os.truncate(os.open(path, os.O_WRONLY | os.O_CREAT), 100 << 30),
    "odd-name": lambda path: path.with_name("a b\nc\udcff").write_text("{}\n"),
    "hidden": lambda path: path.with_name(".x").write_text("{}\n"),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_anything_else_among_the_journals_is_set_aside_and_stops_no_session(clone, shape):
    (clone / ".kaiza/journal").mkdir(parents=True)
    SHAPES[shape](clone / ".kaiza/journal/x")
    (reported,) = begin_session(clone)["recovered"]

    assert reported["result"] == "set_aside"
    assert list((clone / ".kaiza/journal").iterdir()) == []
    assert len(list((clone / ".kaiza/set-aside").iterdir())) == 1
    assert begin_session(clone)["recovered"] == []


@pytest.mark.parametrize("directory", [".kaiza", ".kaiza/journal", ".kaiza/set-aside", ".kaiza/live", ".kaiza/done"])
@pytest.mark.parametrize("shape", ["link", "file", "fifo"])
def test_a_link_file_or_fifo_in_place_of_a_kaiza_directory_stops_no_session(clone, directory, shape):
    elsewhere = clone.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine").write_text("mine")
    change = recorded_change("x", "create", after="0" * 64)
    if directory not in {".kaiza/journal", ".kaiza"}:
        change = ATTACKS["relative"](clone)
    ship_log(clone, change)
    if directory == ".kaiza":
        shutil.rmtree(clone / directory)
    (clone / directory).parent.mkdir(exist_ok=True)
    if shape == "link":
        (clone / directory).symlink_to(elsewhere)
    elif shape == "fifo":
        os.mkfifo(clone / directory)
    else:
        (clone / directory).write_text("x")
    before = manifest(elsewhere)
    begin_session(clone)

    assert manifest(elsewhere) == before
    assert (clone.parent / "victim.txt").read_text() == "mine"


@pytest.mark.parametrize(("path", "operation"), [("../victim.txt", "delete"), (".env", "create")])
def test_a_shipped_intent_neither_reaches_outside_nor_reveals_what_an_unreadable_file_has(clone, path, operation):
    (clone / ".env").write_text("TOKEN=guess")
    guess = {"before" if operation == "delete" else "after": sha(b"TOKEN=guess")}
    ship_log(clone, recorded_change(path, operation, **guess))
    (reported,) = begin_session(clone)["recovered"]

    assert reported["result"] == "unknown"
    assert (clone.parent / "victim.txt").exists()


def test_the_open_intents_of_a_shipped_log_are_recovered_a_few_at_a_time(clone, monkeypatch):
    monkeypatch.setattr(crash_recovery, "MAX_RECOVERED", 3)
    write_bodies(clone, (intent_body(request_id=f"{TXN[:-2]}{number:02}") for number in range(10)))

    assert [len(begin_session(clone)["recovered"]) for _ in range(5)] == [3, 3, 3, 1, 0]


def intent_body(*changes, **members):
    defaults = {"timestamp": "2026-11-18T09:00:00.000Z", "request_id": TXN, "detail": {"live": "1-a"}}
    body = record.new_body("intent", changes=changes or [recorded_change("x", "create", after="0" * 64)])
    return {**body, **defaults, **members}


def without(members, name):
    return {key: value for key, value in members.items() if key != name}


def test_shipped_journals_and_intents_do_not_delay_the_recovery_of_our_own(tmp_path, monkeypatch):
    root = tmp_path / "project"
    plan_hash = lay_out(root)
    shipped = [f"00000000-0000-4000-8000-{number:012}" for number in range(201)]
    write_bodies(root, (intent_body(request_id=name) for name in shipped))
    (root / ".kaiza/journal").mkdir(parents=True)
    for name in shipped:
        (root / ".kaiza/journal" / name).write_text('{"state": "another"} ' + "0" * 64 + "\n")
    before = files(root)
    run_with_patch(root, plan_hash, monkeypatch, DirectoryHandles, "sync", lambda *_: os._exit(0))
    begin_session(root)

    assert files(root) == before


@pytest.fixture
def movable(tmp_path, monkeypatch):
    """A workspace, a function that moves a file in it, and one that does so and is killed before the commit line."""
    root = make_ready(tmp_path / "project")
    plan_hash = plan_for(root, scope='{move: [{from: "**", to: "**"}]}')
    (root / "a.txt").write_text("mine\n")
    ask = {"source": "a.txt", "destination": "b.txt", "expected_hash": sha(b"mine\n"), "plan_hash": plan_hash}

    def move():
        app = App([os.path.realpath(root)])
        app.call("begin_session", {"role": "WINDSURF"})
        result = code(app, "move_file", **ask)
        app.close()
        return result

    def move_and_die():
        def die_in_sync():
            monkeypatch.setattr(DirectoryHandles, "sync", lambda *_: os._exit(0))
            move()

        assert run_child(die_in_sync) == 0

    return root, move, move_and_die


def test_an_old_copy_of_a_rolled_back_journal_undoes_no_later_change(movable):
    root, move, move_and_die = movable
    move_and_die()
    journal = journal_of(root)
    copy = journal.read_bytes()
    assert [each["result"] for each in begin_session(root)["recovered"]] == ["taken_back"]
    assert move() == "ok"
    journal.write_bytes(copy)
    (reported,) = begin_session(root)["recovered"]

    assert (reported["result"], reported["left"][0]["reason"]) == ("set_aside", "taken_back_before")
    assert (root / "b.txt").exists()
    assert not (root / "a.txt").exists()


@pytest.fixture
def crashed(tmp_path, monkeypatch):
    """A workspace with a committed change whose process died before it recorded the outcome."""
    root = tmp_path / "project"
    plan_hash = lay_out(root)
    (root / "mine").write_text("mine")
    run_with_patch(root, plan_hash, monkeypatch, change, "record_outcome", lambda *_, **__: os._exit(0))
    return root


def journal_of(root):
    (journal,) = (root / ".kaiza/journal").iterdir()
    return journal


def rewrite(root, edit):
    """Edit the journal without renewing its codes."""
    journal = journal_of(root)
    journal.write_bytes(edit(journal.read_bytes()))


def test_a_journal_of_another_state_directory_is_left_in_place_and_reported(crashed, monkeypatch, tmp_path):
    before = files(crashed)
    name = journal_of(crashed).name
    content = journal_of(crashed).read_bytes()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
    bind(crashed)
    reported = begin_session(crashed)["recovered"]

    assert [(each["request_id"], each["result"]) for each in reported] == [(name, "left")]
    assert reported[0]["left"] == [{"path": f".kaiza/journal/{name}", "reason": "foreign"}]
    assert journal_of(crashed).read_bytes() == content
    assert files(crashed) == before


@pytest.mark.parametrize("old", [b'"src","changed.py"', b'"do":"swap"', b'"made":[]', b'"live":"'])
def test_a_journal_that_was_tampered_with_is_not_acted_on(crashed, old):
    new = old.replace(b"changed", b"chamged").replace(b"swap", b"take").replace(b"[]", b'[["src"]]')
    rewrite(crashed, lambda content: content.replace(old, new.replace(b'"live":"', b'"live":"9'), 1))
    before = files(crashed)
    reported = begin_session(crashed)["recovered"]

    assert "set_aside" in [each["result"] for each in reported]
    assert {name: each for name, each in files(crashed).items() if ".kaiza-" not in name} == {
        name: each for name, each in before.items() if ".kaiza-" not in name
    }


def test_a_journal_without_an_intent_in_the_log_is_set_aside(crashed):
    log = crashed / "audit/audit-log.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    assert json.loads(lines[-1])["kind"] == "intent"
    log.write_bytes(b"".join(lines[:-1]))
    state_path = state_dir.path_of(os.path.realpath(crashed))
    for checkpoint in state_path.glob("anchor*"):
        checkpoint.unlink()
    reported = begin_session(crashed)["recovered"]

    assert [each["left"][0]["reason"] for each in reported] == ["not_announced"]


def test_a_recovery_is_recorded_even_where_the_outcome_was(tmp_path, monkeypatch):
    root = tmp_path / "project"
    plan_hash = lay_out(root)
    run_with_patch(root, plan_hash, monkeypatch, TransactionManager, "finalize", lambda *_: os._exit(0))
    begin_session(root)
    (written,) = [each for each in records(root) if each["kind"] == "recovery"]

    assert written["detail"]["result"] == "applied"
    assert written["changes"] == []
    assert verify_log(os.path.realpath(root)).verdict == "intact"


def test_a_journal_whose_operations_differ_from_the_intent_is_set_aside(crashed, monkeypatch):
    real_new_body = change.record.new_body
    root = crashed.parent / "other"
    plan_hash = lay_out(root)

    def body_with_another_path(kind, **members):
        if kind == "intent":
            members["changes"] = [{**each, "path": each["path"] + "x"} for each in members["changes"]]
        return real_new_body(kind, **members)

    def end_process(*_, **__):
        os._exit(0)

    def write_and_die():
        app = App([os.path.realpath(root)])
        app.call("begin_session", {"role": "WINDSURF"})
        monkeypatch.setattr(change.record, "new_body", body_with_another_path)
        monkeypatch.setattr(change, "record_outcome", end_process)
        app.call("write_file", {"path": "src/new.py", "content": "x", "plan_hash": plan_hash})

    assert run_child(write_and_die) == 0
    reported = begin_session(root)["recovered"]

    assert reported[0]["left"][0]["reason"] == "not_as_announced"
    assert (root / "src/new.py").read_text() == "x"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_an_undo_takes_no_metadata_from_a_finished_journal_that_was_tampered_with(tmp_path):
    root = tmp_path / "project"
    plan_hash = lay_out(root)
    app = App([os.path.realpath(root)])
    app.call("begin_session", {"role": "WINDSURF"})
    os.setxattr(root / "src/gone.py", "user.note", b"mine")  # else there is nothing that only the journal has
    done = app.call("delete_file", {"path": "src/gone.py", "expected_hash": sha(b"gone\n"), "plan_hash": plan_hash})
    (journal,) = (root / ".kaiza/done").iterdir()
    head, rest = journal.read_bytes().split(b"\n", 1)
    forged = json.loads(head.rsplit(b" ", 1)[0])
    forged["steps"][0]["facts"] |= {"uid": 4711, "mode": 0o6777}
    journal.write_bytes(json.dumps(forged).encode() + head[-65:] + b"\n" + rest)
    app.call("undo_changes", {"request_ids": [done.output["request_id"]], "plan_hash": plan_hash})
    app.close()
    status = (root / "src/gone.py").stat()

    assert status.st_uid == os.geteuid()
    assert not stat.S_IMODE(status.st_mode) & 0o6000
