"""A journal's operations are compared with its intent: same kinds, paths and hashes, in order, none protected."""

import json
import os
import signal
from contextlib import closing
from hashlib import sha256

import pytest
from announcing import recover_changes
from children import run_child
from transactions import open_transactions

from kaiza.domain.change import Change
from kaiza.domain.paths.rel_path import parse
from kaiza.store.changes.operation import temporary_name
from kaiza.store.changes.recovery import JournaledOperations
from kaiza.store.files.confined_root import ConfinedRoot

A, B = "a" * 64, "b" * 64
CREATE = Change(parse("new/n"), "create", None, A, 1)
MODIFY = Change(parse("m"), "modify", A, B, 1)
DELETE = Change(parse("d"), "delete", A)
MOVE = Change(parse("to"), "move", A, A, 1, source=parse("from"))
EDITED_MOVE = Change(parse("to"), "move", A, B, 1, source=parse("from"))


def step(do, path, before=None, after=None, source=None):
    parts = None if source is None else source.split("/")
    return {"do": do, "path": path.split("/"), "before": before, "after": after, "source": parts, "facts": None}


JOURNALED = {
    "create": ([step("put", "new/n", after=A)], CREATE),
    "modify": ([step("swap", "m", A, B)], MODIFY),
    "delete": ([step("take", "d", A)], DELETE),
    "move": ([step("move", "to", A, source="from")], MOVE),
    "copied move": ([step("put", "to", A, A, "from"), step("take", "from", A)], MOVE),
    "edited move": ([step("put", "to", A, B, "from"), step("take", "from", A)], EDITED_MOVE),
}


def read(steps, made=()):
    return JournaledOperations.from_lines([{"steps": steps, "made": [list(parts) for parts in made]}], "t")


@pytest.mark.parametrize("kind", JOURNALED)
def test_the_operations_of_a_change_match_its_intent(kind):
    steps, change = JOURNALED[kind]

    assert read(steps).is_announced_by([change.as_record()])


@pytest.mark.parametrize("kind", JOURNALED)
@pytest.mark.parametrize("member", ["do", "path", "before", "after", "source"])
def test_an_operation_that_differs_in_one_member_does_not_match(kind, member):
    steps, change = JOURNALED[kind]
    for number, step_of_change in enumerate(steps):
        others = {"do": ["put", "swap", "take", "move"], "path": [["x"]], "source": [None, ["x"]]}
        for other in others.get(member, [None, A, B, "c" * 64]):
            if other == step_of_change[member]:
                continue
            changed = [*steps[:number], {**step_of_change, member: other}, *steps[number + 1 :]]

            assert not read(changed).is_announced_by([change.as_record()]), (member, other)


@pytest.mark.parametrize("kind", JOURNALED)
def test_a_surplus_or_missing_operation_does_not_match(kind):
    steps, change = JOURNALED[kind]
    recorded = [change.as_record()]

    assert not read([*steps, step("take", "more", A)]).is_announced_by(recorded)
    assert not read([step("take", "more", A), *steps]).is_announced_by(recorded)
    assert not read(steps[:-1]).is_announced_by(recorded)
    assert not read(steps).is_announced_by([*recorded, DELETE.as_record()])
    assert not read(steps).is_announced_by([])


@pytest.mark.parametrize(
    "path", [".git/hooks/pre-commit", "plans/PLAN-1.md", "audit/audit-log.jsonl", ".kaiza/x", "kaiza.toml"]
)
def test_a_protected_path_is_found_as_source_and_as_target(path):
    assert read([step("put", path, after=A)]).has_protected_path()
    assert read([step("move", "x", A, source=path)]).has_protected_path()
    assert not read([step("put", "x", after=A)]).has_protected_path()


def test_recovery_touches_no_file_of_an_announced_change_with_a_protected_path(tmp_path):
    (tmp_path / ".git/hooks").mkdir(parents=True)
    content = b"#!/bin/sh\n"
    change = Change(parse(".git/hooks/pre-commit"), "create", None, sha256(content).hexdigest(), content=content)
    with ConfinedRoot(str(tmp_path)) as workspace, closing(open_transactions(workspace)) as manager:
        run_child(lambda: manager.apply(manager.prepare("t", [change])) or os.kill(os.getpid(), signal.SIGKILL))
        recovered = recover_changes(manager, [change])

    assert [(each.result, each.unresolved[0]["reason"]) for each in recovered] == [("set_aside", "not_as_announced")]
    assert (tmp_path / ".git/hooks/pre-commit").read_bytes() == content


@pytest.mark.parametrize("made", [["other"], ["new", "n"], [".git"]])
def test_a_created_directory_that_no_operation_needs_is_refused(made):
    with pytest.raises(ValueError, match="directory"):
        read(JOURNALED["create"][0], [made])

    assert read(JOURNALED["create"][0], [["new"]]).created_directories == (parse("new"),)


def test_temporary_names_are_derived_and_never_read_from_a_journal(tmp_path):
    planted = {**step("put", "x", after=A), "temp": "../../victim"}

    assert [each.temp_name for each in read([planted, planted]).operations] == [
        temporary_name("t", 0),
        temporary_name("t", 1),
    ]
    with ConfinedRoot(str(tmp_path)) as workspace:
        prepared = open_transactions(workspace).prepare("t", [])
        assert prepared.operations == ()
    assert "temp" not in json.dumps([each.as_json() for each in read([planted]).operations])


@pytest.mark.parametrize("path", [[], [".."], ["a", "..", "b"], [""], ["a/b"], ["/etc"], ["a\0b"], "a", None, [7]])
def test_a_journaled_path_that_could_leave_the_workspace_is_refused(path):
    with pytest.raises(ValueError):  # noqa: PT011  its text is not part of the behaviour
        read([{**step("put", "x", after=A), "path": path}])
