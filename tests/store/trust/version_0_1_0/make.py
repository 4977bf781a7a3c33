"""Makes workspace.tar.gz with version 0.1.0 itself: CHECKOUT/.venv/bin/python make.py CHECKOUT, in an empty directory.

`project` and `state` are what it left, but for two things that differ at each place: in init.json the workspace's path
is written `@ROOT@`, and in the journals an inode number is written as the path of its file.
"""

import gzip
import io
import os
import re
import sys
import tarfile
from pathlib import Path

CHECKOUT, HERE = Path(sys.argv[1]).resolve(), Path.cwd()
ROOT = HERE / "project"
os.environ |= {"XDG_STATE_HOME": str(HERE / "state"), "HOME": str(HERE), "USER": "ann"}
sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "tests")]

from agents import Agent, hash_of, person, plan, word  # noqa: E402
from kaiza.store.directories import Directories  # noqa: E402
from test_recovery import PATCH  # noqa: E402

from kaiza.app import App  # noqa: E402
from kaiza.boundary import commit  # noqa: E402

FILES = {"src/changed.py": "before\n", "src/gone.py": "gone\n", "secret/a": "s\n", "tests/.env": "A=1\n"}
SETTINGS = 'deny_read = ["secret/**"]\nallow_read = ["tests/.env"]\n'
SCOPE = '{modify: ["src/**"], create: ["src/**"], delete: ["src/**"]}'


def start_doomed(place, name, tool, arguments):
    """Start a server with a session, and return a function that lets it be killed in the middle of a change."""
    wait, go = os.pipe()
    begun, begin = os.pipe()
    child = os.fork()
    if child == 0:
        app = App([str(ROOT)])
        app.call("begin_session", {"role": "WINDSURF"})
        os.write(begin, b".")
        os.read(wait, 1)
        setattr(place, name, lambda *_, **__: os.kill(os.getpid(), 9))
        app.call(tool, arguments)
        os._exit(1)
    os.read(begun, 1)

    def kill():
        os.write(go, b".")
        assert os.WIFSIGNALED(os.waitpid(child, 0)[1])

    return kill


def lay_down():
    """What a person and agents do with version 0.1.0. The lock is the last record."""
    for path, content in FILES.items():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(content)
    assert person(ROOT, "init", "--yes") == 0
    (ROOT / "kaiza.toml").write_text(SETTINGS)
    edited = plan(ROOT, "PLAN-1", scope=SCOPE, more="limits: {files: 5}\n")
    for plan_id in ("PLAN-2", "PLAN-3"):
        plan(ROOT, plan_id, status="DRAFT", scope=SCOPE)
        assert word(ROOT, plan_id, "plan", "approve", plan_id, "--as", "Ann") == 0
    plan(ROOT, "PLAN-4", scope=SCOPE)  # approved in an editor, and never used
    plan(ROOT, "PLAN-5", status="DRAFT", scope=SCOPE)
    agent = Agent(ROOT)
    for plan_id, path in {"PLAN-1": "src/one.py", "PLAN-2": "src/two.py", "PLAN-3": "src/three.py"}.items():
        assert agent.write(path, hash_of(ROOT, plan_id)) == "ok"
    assert person(ROOT, "plan", "revoke", "PLAN-3", "--as", "Ann") == 0
    assert person(ROOT, "freeze", "a look") == 0
    assert agent.write("src/four.py", edited) == "POLICY_VIOLATION"
    assert word(ROOT, "thaw", "thaw", "--as", "Ann") == 0
    half = {"path": "src/half.py", "content": "half\n", "plan_hash": edited}
    first = start_doomed(commit, "conclude", "apply_patch", {"patch": PATCH, "plan_hash": edited})
    second = start_doomed(Directories, "sync", "write_file", half)
    first()
    second()
    assert agent.write("docs/x", edited) == "PLAN_SCOPE_VIOLATION"
    agent.close()


def pack():
    """Write the archive."""
    (slot,) = (HERE / "state/kaiza").iterdir()
    manifest = slot / "init.json"
    manifest.write_text(manifest.read_text().replace(str(ROOT), "@ROOT@"))
    inodes = {path.stat().st_ino: path.relative_to(ROOT) for path in (ROOT / "src").iterdir()}
    for journal in (ROOT / ".kaiza/journal").iterdir():
        head, staged, rest = journal.read_text().partition('{"staged":')
        journal.write_text(head + staged + re.sub("[0-9]+", lambda found: f'"{inodes[int(found[0])]}"', rest))
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, top in {"project": ROOT, "state": slot}.items():
            archive.add(top, name, filter=without_time)
    (HERE / "workspace.tar.gz").write_bytes(gzip.compress(packed.getvalue(), mtime=0))


def without_time(member):
    """The member as everyone would have made it."""
    member.mtime = member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    lay_down()
    pack()
