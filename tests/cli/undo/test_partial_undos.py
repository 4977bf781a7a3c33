"""A person's undo of a session, after undos of some of its changes and after exchanged names."""

import json
import os
import stat

import pytest
from agents import WIDE, plan, sha

from kaiza.app import App
from kaiza.domain.audit import undo_batches
from kaiza.domain.caps import Caps
from kaiza.store.changes.transaction import TransactionManager
from kaiza.store.human_decisions import record_decision
from kaiza.store.workspace import Workspace


class Sessions:
    """Agents' calls under one plan, each in a session of its own that is begun with its first call."""

    def __init__(self, root):
        self.root = root
        self.plan_hash = plan(root, scope=WIDE)
        self.app = App([os.path.realpath(root)])
        self.ids = {}

    def call(self, session, tool, **arguments):
        """Make a call; return its request id."""
        if session not in self.ids:
            self.ids[session] = self.app.call("begin_session", {"role": "WINDSURF"}).output["session_id"]
        members = {"plan_hash": self.plan_hash, "session_id": self.ids[session]}
        outcome = self.app.call(tool, {**arguments, **members})
        assert outcome.envelope is None, outcome.envelope
        return outcome.output["request_id"]

    def write(self, path, content, session="own"):
        file = self.root / path
        known = {"expected_hash": sha(file.read_bytes())} if file.exists() else {}
        return self.call(session, "write_file", path=path, content=content, **known)

    def move(self, source, destination, session="own"):
        expected = sha((self.root / source).read_bytes())
        return self.call(session, "move_file", source=source, destination=destination, expected_hash=expected)

    def delete(self, path, session="own"):
        return self.call(session, "delete_file", path=path, expected_hash=sha((self.root / path).read_bytes()))

    def undo(self, *request_ids, session="own"):
        return self.call(session, "undo_changes", request_ids=list(request_ids))


def tree(root):
    files = [path for path in (root / "src").rglob("*") if path.is_file()]
    return {str(path.relative_to(root)): (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) for path in files}


@pytest.fixture
def agents(workspace):
    (workspace / "src").mkdir()
    for name, mode in (("a", 0o644), ("b", 0o755), ("c", 0o600)):
        (workspace / "src" / name).write_text(f"{name}\n")
        (workspace / "src" / name).chmod(mode)
    sessions = Sessions(workspace)
    yield sessions
    sessions.app.close()


@pytest.fixture
def undo(kaiza, agents):
    """A person's undo of the session's changes, or of other ones; what it printed."""

    def run(*words):
        result = kaiza("undo", *(words or ("--session", agents.ids["own"])), "--yes", "--json")
        return json.loads(result.out)

    return run


@pytest.mark.parametrize("words", [(), ("--plan", "PLAN-1")], ids=["session", "plan"])
def test_an_undo_of_some_files_of_a_call_does_not_hide_its_other_files(agents, undo, workspace, words):
    before = tree(workspace)
    first = agents.write("src/b", "other\n")
    bad = agents.write("src/a", "EVIL\n")
    worse = agents.write("src/a", "EVIL 2\n")
    agents.undo(first, bad)  # `a` is kept, since it was changed after the call
    agents.undo(worse)
    hidden = (workspace / "src/a").read_text()
    result = undo(*words)

    assert hidden == "EVIL\n"
    assert result["kept"] == []
    assert tree(workspace) == before


def test_an_undo_of_a_later_change_with_an_older_one_does_not_hide_those_between(agents, undo, workspace, kaiza):
    before = tree(workspace)
    bad = agents.write("src/a", "EVIL\n")
    agents.write("src/a", "EVIL 2\n")
    worse = agents.write("src/a", "EVIL 3\n")
    agents.undo(bad, worse)
    listed = json.loads(kaiza("undo", "--json").out)["changes"]
    attested = json.loads(kaiza("attest", "--session", agents.ids["own"]).out)

    assert [each["request_id"] for each in listed][-1] == bad
    assert len(listed) == 2
    assert [each["name"] for each in attested["subject"]] == ["src/a"]
    assert undo()["kept"] == []
    assert tree(workspace) == before


def test_a_change_that_an_agent_made_again_by_undoing_its_undo_is_undone(agents, undo, workspace):
    before = tree(workspace)
    made = agents.write("src/a", "EVIL\n")
    agents.undo(agents.undo(made))
    undo()

    assert tree(workspace) == before


def test_an_undo_of_another_sessions_change_is_taken_back_with_the_session_that_made_it(agents, undo, workspace):
    good = agents.write("src/a", "good\n", session="other")
    before = tree(workspace)
    agents.undo(good)
    after_undo = (workspace / "src/a").read_text()
    result = undo()

    assert after_undo == "a\n"
    assert result["kept"] == []
    assert tree(workspace) == before


def test_what_a_person_undid_before_is_not_made_again_by_undoing_the_session(agents, undo, workspace):
    before = tree(workspace)
    first = agents.write("src/a", "1\n")
    agents.write("src/a", "2\n")
    agents.write("src/b", "1\n")
    second = agents.write("src/b", "2\n")
    undo("--request", second)
    undo("--request", first)  # changed since: left alone
    between = (workspace / "src/a").read_text(), (workspace / "src/b").read_text()
    result = undo()

    assert between == ("2\n", "1\n")
    assert result["kept"] == []
    assert tree(workspace) == before


def test_what_somebody_else_changed_is_kept_and_named(agents, undo, workspace):
    agents.write("src/a", "1\n")
    (workspace / "src/a").write_text("a person's\n")
    agents.write("src/a", "2\n")
    agents.write("src/b", "1\n")
    agents.write("src/b", "another's\n", session="other")
    agents.write("src/c", "1\n")
    (workspace / "src/c").chmod(0o640)
    result = undo()

    assert {each["path"]: each["reason"] for each in result["kept"]} == dict.fromkeys(
        map("src/{}".format, "abc"), "changed_since"
    )
    assert [(workspace / "src" / name).read_text() for name in "abc"] == ["a person's\n", "another's\n", "1\n"]


def swap(agents):
    agents.move("src/a", "src/t")
    agents.move("src/b", "src/a")
    agents.move("src/t", "src/b")


def turn(agents):
    agents.move("src/a", "src/t")
    agents.move("src/b", "src/a")
    agents.move("src/c", "src/b")
    agents.move("src/t", "src/c")


def chain(agents):
    agents.move("src/a", "src/new")
    agents.move("src/c", "src/a")


def move_onto_deleted(agents):
    agents.delete("src/a")
    agents.move("src/b", "src/a")
    agents.move("src/c", "src/b")


def move_write_and_chmod(agents):
    swap(agents)
    agents.write("src/a", "EVIL\n")
    agents.call("own", "apply_patch", patch="diff --git a/src/b b/src/b\nold mode 100644\nnew mode 100755\n")
    agents.move("src/b", "src/deep/b")


@pytest.mark.parametrize(
    "act", [swap, turn, chain, move_onto_deleted, move_write_and_chmod], ids=lambda act: act.__name__
)
@pytest.mark.parametrize("by", ["person", "agent"])
def test_exchanged_names_are_undone_in_one_go(agents, undo, workspace, act, by):
    before = tree(workspace)
    act(agents)
    if by == "person":
        result = undo()
    else:
        result = agents.app.call("undo_changes", {"all_of_session": True, "plan_hash": agents.plan_hash}).output

    assert result["kept"] == []
    assert tree(workspace) == before


def test_exchanged_names_of_read_only_and_of_large_files_are_undone(agents, undo, workspace):
    (workspace / "src/a").write_bytes(os.urandom(1 << 20) + b"more than is packed")
    (workspace / "src/a").chmod(0o444)
    (workspace / "src/b").chmod(0o400)
    before = tree(workspace)
    swap(agents)
    result = undo()

    assert result["kept"] == []
    assert tree(workspace) == before


def test_exchanged_names_keep_attributes_of_the_files(agents, undo, workspace):
    os.setxattr(workspace / "src/a", "user.of", b"a")
    os.setxattr(workspace / "src/b", "user.of", b"b")
    swap(agents)
    undo()

    assert [os.getxattr(workspace / "src" / name, "user.of") for name in "ab"] == [b"a", b"b"]


def test_a_missing_content_is_blamed_on_gc_only_if_it_ran(agents, kaiza, workspace):
    agents.write("src/a", "1\n")
    for blob in (workspace / ".kaiza/objects").iterdir():
        blob.unlink()
    words = ("undo", "--session", agents.ids["own"], "--dry-run")
    before = kaiza(*words)
    opened = Workspace(str(workspace), Caps())
    record_decision(opened, "gc", "Ann")
    opened.close("2026-11-18T09:00:00.000Z")
    after = kaiza(*words)

    assert (before.status, after.status) == (1, 1)
    assert ("kaiza gc" in before.out, "kaiza gc" in after.out) == (False, True)
    assert "src/a" in before.out


def test_a_damaged_content_is_named_and_does_not_stop_the_others(agents, undo, workspace):
    agents.write("src/a", "1\n")
    agents.write("src/b", "1\n")
    (workspace / ".kaiza/objects" / f"{sha(b'a' + bytes([10]))}.z").chmod(0o600)
    (workspace / ".kaiza/objects" / f"{sha(b'a' + bytes([10]))}.z").write_bytes(b"damaged")
    result = undo()

    assert result["kept"] == [{"path": "src/a", "reason": "not_kept"}]
    assert (workspace / "src/b").read_text() == "b\n"


def test_nothing_to_restore_is_said_of_what_is_undone_already(agents, undo, kaiza, workspace):
    agents.undo(agents.write("src/a", "1\n"))
    (workspace / "src/a").write_text("a person's\n")
    result = kaiza("undo", "--session", agents.ids["own"], "--yes")

    assert result.status == 0
    assert "Nothing to restore" in result.out
    assert (workspace / "src/a").read_text() == "a person's\n"


def test_a_file_of_which_only_the_newest_changes_are_undone_is_named_so(agents, kaiza, workspace):
    agents.write("src/a", "1\n")
    (workspace / "src/a").write_text("a person's\n")
    agents.write("src/a", "2\n")
    result = kaiza("undo", "--session", agents.ids["own"], "--yes")

    assert result.status == 1
    assert "Restored 1 file, left 1 file alone" in result.out
    assert "modified in between" in " ".join(result.out.split())
    assert (workspace / "src/a").read_text() == "a person's\n"


def test_contents_that_only_another_batch_has_are_kept_before_it_is_made(agents, undo, workspace, monkeypatch):
    monkeypatch.setattr(undo_batches, "MAX_BATCH_BYTES", 1)  # each file in a batch of its own
    before = tree(workspace)
    turn(agents)
    result = undo()

    assert len(result["request_ids"]) == 3
    assert tree(workspace) == before


def test_a_private_file_that_was_deleted_and_created_again_is_private_again(agents, undo, workspace):
    agents.delete("src/c")
    agents.write("src/c", "c\n")
    made = stat.S_IMODE((workspace / "src/c").stat().st_mode)
    undo()

    assert made != 0o600
    assert stat.S_IMODE((workspace / "src/c").stat().st_mode) == 0o600


def make_directory_of(agents, path):
    agents.delete(path)
    agents.write(f"{path}/x", "1\n")


@pytest.mark.parametrize("words", [(), ("--plan", "PLAN-1")], ids=["session", "plan"])
@pytest.mark.parametrize("is_left_empty", [True, False])
def test_a_file_is_restored_where_the_agent_made_a_directory(agents, undo, workspace, words, is_left_empty):
    before = tree(workspace)
    make_directory_of(agents, "src/a")
    agents.write("src/a/deep/y", "2\n")
    if is_left_empty:
        agents.delete("src/a/x")
        agents.delete("src/a/deep/y")
    result = undo(*words)

    assert result["kept"] == []
    assert tree(workspace) == before


def test_files_that_were_moved_into_directories_with_their_names_are_restored(agents, undo, workspace):
    before = tree(workspace)
    agents.move("src/a", "src/aside")
    agents.move("src/b", "src/a/x")
    agents.move("src/aside", "src/b/x")
    result = undo()

    assert result["kept"] == []
    assert tree(workspace) == before


def test_an_undo_that_replaced_a_directory_by_a_file_is_undone(agents, undo, workspace):
    make_directory_of(agents, "src/a")
    before = tree(workspace)
    request_ids = undo()["request_ids"]
    result = undo("--request", *request_ids)

    assert result["kept"] == []
    assert tree(workspace) == before


@pytest.mark.parametrize("name", ["x/mine", ".hidden", "empty"])
def test_a_directory_with_something_else_in_it_stays_and_is_named(agents, undo, workspace, kaiza, name):
    make_directory_of(agents, "src/a")
    agents.delete("src/a/x")
    if name == "empty":
        (workspace / "src/a/empty").mkdir()
    else:
        (workspace / "src/a" / name).parent.mkdir(exist_ok=True)
        (workspace / "src/a" / name).write_text("mine\n")
    before = tree(workspace)
    result = undo()
    shown = kaiza("undo", "--session", agents.ids["own"], "--dry-run").out

    assert result["kept"] == [{"path": "src/a", "reason": "directory_in_place"}]
    assert "src/a: a directory is in its place" in shown
    assert tree(workspace) == before
    assert (workspace / "src/a" / name).exists()


def test_an_empty_directory_that_kaiza_did_not_make_is_not_removed(agents, undo, workspace):
    agents.delete("src/a")
    (workspace / "src/a").mkdir()
    result = undo()

    assert result["kept"] == [{"path": "src/a", "reason": "directory_in_place"}]
    assert (workspace / "src/a").is_dir()


def test_a_failed_undo_leaves_the_empty_directory_that_it_was_to_replace(agents, workspace, kaiza, monkeypatch):
    make_directory_of(agents, "src/a")
    agents.delete("src/a/x")

    def fail(*_arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(TransactionManager, "apply", fail)
    result = kaiza("undo", "--session", agents.ids["own"], "--yes")

    assert result.status == 3
    assert (workspace / "src/a").is_dir()


def test_a_directory_stays_for_a_file_in_it_that_was_modified_since(agents, undo, workspace):
    make_directory_of(agents, "src/a")
    (workspace / "src/a/x").write_text("mine\n")
    before = tree(workspace)
    result = undo()

    assert {each["path"]: each["reason"] for each in result["kept"]} == {
        "src/a/x": "changed_since",
        "src/a": "directory_in_place",
    }
    assert tree(workspace) == before


def test_of_a_file_and_another_sessions_file_below_its_name_one_is_restored(agents, undo, workspace):
    agents.move("src/a", "src/aside")
    made = agents.write("src/a/x", "other\n", session="other")
    agents.undo(made)
    result = undo()

    assert result["kept"] == [{"path": "src/a/x", "reason": "directory_in_place"}]
    assert (workspace / "src/a").read_text() == "a\n"
