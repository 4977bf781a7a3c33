"""Logs to judge, and processes that write them."""

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
    told = {
        "timestamp": "2026-11-18T09:00:00.000Z",
        "tool_name": "read_file",
        "outcome": "ok",
        "arguments": {"path": "a.py"},
        "duration_ms": 3,
    }
    return record.new_body("call", **(told | members))


def intent():
    return record.new_body("intent", timestamp="2026-11-18T09:00:00.000Z", tool_name="write_file")


def log_path(root):
    return log_file.path_of(str(root))


def open_log(root, told=None, **options):
    options.setdefault("follow", (told if told is not None else []).append)
    return AuditLog(str(root), **options)


def chained(count, *, link=record.GENESIS, first=1, **members):
    """So many lines of a sound log."""
    lines = []
    for seq in range(first, first + count):
        line, whole = record.serialize_and_hash(body(arguments={"path": f"src/{seq}.py"}, **members), seq, link)
        link = whole["entry_hash"]
        lines.append(line)
    return lines


def head_of(lines):
    *_, last = lines
    size = sum(map(len, lines))
    return record.LogHead(len(lines), last[-67:-3].decode(), size)


def write(root, content):
    path = log_path(root)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def anchor_at(root, head):
    """The state directory as if exactly this head had been made durable."""
    place = state_dir.path_of(str(root), create=True)
    for old in (*place.glob("anchor*"), place / "damage.json"):
        old.unlink(missing_ok=True)
    if head is not None:
        anchor = Checkpoint(place)
        anchor.write(anchor.prepare(head, 0))
        anchor.close()


def error_code_of(app, tool, **arguments):
    """The error code of one tool call, or "ok"."""
    envelope = app.call(tool, arguments).envelope
    return envelope["error_code"] if envelope else "ok"


def python(script, *arguments, before=(), **options):
    """A process of its own that runs this; it speaks in lines."""
    command = [*before, sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)


def strace_works():
    """Whether what a process asks of the kernel can be watched, and made to fail."""
    if shutil.which("strace") is None:
        return False
    return subprocess.run(["strace", "-qq", "true"], capture_output=True, check=False).returncode == 0
