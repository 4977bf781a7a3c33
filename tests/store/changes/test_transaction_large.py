"""Large files are streamed: moving, deleting and putting them back needs no more memory than a small one."""

import os
import subprocess
import sys

import pytest

MEGABYTES = 100 if os.environ.get("KAIZA_LONG") else 24
SCRIPT = """
import hashlib, os, resource, sys
from transactions import open_transactions
from kaiza.domain.change import Change
from kaiza.domain.paths.rel_path import parse
from kaiza.store.files.confined_root import ConfinedRoot

check = hashlib.sha256()
with open(os.path.join(sys.argv[1], "big"), "wb") as big:
    for _ in range(int(sys.argv[2])):
        chunk = os.urandom(1 << 20)
        check.update(chunk)
        big.write(chunk)
digest = check.hexdigest()
workspace = ConfinedRoot(sys.argv[1])
manager = open_transactions(workspace)

def commit(txn, change, undoes=()):
    manager.apply(manager.prepare(txn, [change], undoes=undoes))
    manager.finalize(txn)

commit("warm", Change(parse("small"), "create", None, hashlib.sha256(b"x").hexdigest(), content=b"x"))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
commit("move", Change(parse("there"), "move", digest, digest, source=parse("big")))
commit("delete", Change(parse("there"), "delete", digest))
commit("undo", Change(parse("there"), "create", None, digest), ("delete",))
commit("edit", Change(parse("there"), "modify", digest, hashlib.sha256(b"y").hexdigest(), content=b"y"))
commit("undo2", Change(parse("there"), "modify", hashlib.sha256(b"y").hexdigest(), digest), ("edit",))
with open(os.path.join(sys.argv[1], "there"), "rb") as there:
    same = hashlib.file_digest(there, "sha256").hexdigest() == digest
print(same, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.long
def test_a_large_file_is_moved_deleted_and_restored_in_little_memory(tmp_path):
    completed = subprocess.run(
        [sys.executable, "-c", SCRIPT, tmp_path, str(MEGABYTES)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    same, growth = completed.stdout.split()

    assert same == "True"
    assert int(growth) < 10 * 1024
