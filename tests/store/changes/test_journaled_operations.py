"""A journal's operations are compared with its intent: same kinds, paths and hashes, in order, none protected."""

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
