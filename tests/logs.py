"""Sample logs, checkpoints, and processes that write to a log."""

import os
import shutil
import subprocess
import sys

from kaiza.domain.audit import record
from kaiza.store.audit import log_file
from kaiza.store.audit.checkpoint import Checkpoint
from kaiza.store.audit.log import AuditLog
from kaiza.store.disk import state_dir

LONG = bool(os.environ.get("KAIZA_LONG"))


def body(**members):
    defaults = {
        "timestamp": "2026-11-18T09:00:00.000Z",
        "tool_name": "read_file",
        "outcome": "ok",
        "arguments": {"path": "a.py"},
        "duration_ms": 3,
    }
    return record.new_body("call", **(defaults | members))


def intent():
    return record.new_body("intent", timestamp="2026-11-18T09:00:00.000Z", tool_name="write_file")


def log_path(root):
    return log_file.path_of(str(root))


def open_log(root, followed=None, **options):
    """The log; records that it follows are appended to `followed`."""
    options.setdefault("follow", (followed if followed is not None else []).append)
    return AuditLog(str(root), **options)


def chained(count, *, link=record.GENESIS, first=1, **members):
    """Lines of a valid log."""
    lines = []
    for seq in range(first, first + count):
        line, written = record.serialize_and_hash(body(arguments={"path": f"src/{seq}.py"}, **members), seq, link)
        link = written.entry_hash
        lines.append(line)
    return lines


def write_bodies(root, bodies):
    """Make the log consist of records with these bodies, in a valid chain."""
    lines, link = [], record.GENESIS
    for seq, each in enumerate(bodies, 1):
        line, whole = record.serialize_and_hash(each, seq, link)
        link = whole.entry_hash
        lines.append(line)
    write_log(root, b"".join(lines))


def head_of(lines):
    *_, last = lines
    size = sum(map(len, lines))
    return record.LogHead(len(lines), last[-67:-3].decode(), size)


def write_log(root, content):
    path = log_path(root)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def write_checkpoint(root, head):
    """Make the state directory know exactly this head, and no damage."""
    directory = state_dir.path_of(str(root), create=True)
    for old in (*directory.glob("anchor*"), directory / "damage.json"):
        old.unlink(missing_ok=True)
    if head is not None:
        checkpoint = Checkpoint(directory)
        checkpoint.write(checkpoint.prepare(head, 0))
        checkpoint.close()


def error_code_of(app, tool, **arguments):
    """Error code of one tool call, or "ok"."""
    envelope = app.call(tool, arguments).envelope
    return envelope["error_code"] if envelope else "ok"


def start_python(script, *arguments, before=(), **options):
    """Run a script in another process, whose output is piped."""
    command = [*before, sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)


def strace_works():
    """Whether strace can observe a process's system calls and make them fail."""
    if shutil.which("strace") is None:
        return False
    return subprocess.run(["strace", "-qq", "true"], capture_output=True, check=False).returncode == 0
