"""Fixtures of the command line: a workspace with a real log; commands in a process or at a terminal."""

import codecs
import contextlib
import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from scenes import bind

from kaiza.cli import dispatch
from kaiza.domain.audit import record

SESSION = "3f2b1c00-0000-4000-8000-000000000001"
OTHER = "9a9a9a9a-0000-4000-8000-000000000002"


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    root = tmp_path / "project"
    for name in ("plans", "audit"):
        (root / name).mkdir(parents=True)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)
    monkeypatch.chdir(root)
    return bind(root)


@pytest.fixture
def write_log(workspace):
    """Appends bodies to the log as a hash chain; returns the records."""

    def write(*bodies):
        seq, link, records = 0, record.GENESIS, []
        with (workspace / "audit" / "audit-log.jsonl").open("ab") as log:
            for body in bodies:
                seq += 1
                line, whole = record.serialize_and_hash(body, seq, link)
                log.write(line)
                link = whole.entry_hash
                records.append(whole)
        return records

    return write


def call(tool="read_file", *, at=0, session=SESSION, role="WINDSURF", outcome="ok", **members):
    """The body of a call at a second of one day."""
    given = {"arguments": {"path": "src/app.py"}, "request_id": f"r{at}", "client": "a-client", "workspace_root": "/w"}
    when = f"2025-03-18T{9 + at // 3600:02d}:{at // 60 % 60:02d}:{at % 60:02d}.000Z"
    given |= {"timestamp": when, "tool_name": tool, "session_id": session, "role": role, "outcome": outcome}
    return record.new_body("call", **(given | members))


@pytest.fixture
def story(write_log):
    """A log of two sessions: one reads, changes a file and is refused; the other begins and ends."""
    change = {
        "path": "src/app.py",
        "source": None,
        "operation": "modify",
        "before_hash": "0" * 64,
        "after_hash": "1" * 64,
        "size": 10,
        "lines_added": 3,
        "lines_removed": 1,
        "mode": 0o644,
    }
    intent = record.new_body(
        "intent", timestamp="2025-03-18T09:00:02.000Z", request_id="r2", session_id=SESSION, role="WINDSURF",
        tool_name="write_file", changes=[change], plan_id="PLAN-1", detail={},
    )  # fmt: skip
    return write_log(
        call("begin_session", at=0, arguments={"role": "WINDSURF"}),
        call("read_file", at=1),
        intent,
        call("write_file", at=2, changes=[change], plan_id="PLAN-1"),
        call("read_file", at=3, arguments={"path": "docs/guide.md"}),
        call("write_file", at=4, outcome="error", error_code="PLAN_SCOPE_VIOLATION", human_message="No.",
             arguments={"path": "src/other.py"}, plan_id="PLAN-1"),
        call("begin_session", at=60, session=OTHER, role="ANTIGRAVITY", arguments={"role": "ANTIGRAVITY"}),
        call("end_session", at=120, session=OTHER, role="ANTIGRAVITY", arguments={}),
    )  # fmt: skip


@pytest.fixture
def kaiza(capfdbinary):
    """Runs a command in this process; exit status, standard output and standard error."""

    def run(*words):
        capfdbinary.readouterr()
        try:
            status = dispatch.main(list(words))
        except SystemExit as ended:
            status = ended.code
        sys.stdout.flush()
        streams = capfdbinary.readouterr()
        return SimpleNamespace(status=status, out=streams.out.decode(), raw=streams.out, err=streams.err.decode())

    return run


_AT_A_TERMINAL = """
import fcntl, os, runpy, signal, termios
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell starts with it ignored
with open(os.environ["KAIZA_TEST_TERMINAL"]) as terminal:
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
runpy.run_module("kaiza", run_name="__main__", alter_sys=True)
"""


class Screen:
    """A command that runs at its own pseudo-terminal."""

    def __init__(self, words, columns, environment, stdin, out, ahead=""):
        self.master, slave = os.openpty()
        self.type(ahead)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))

        self.child = subprocess.Popen(
            [sys.executable, "-c", _AT_A_TERMINAL, *words],
            stdin=slave if stdin is None else subprocess.PIPE, stdout=out or slave, stderr=slave,
            env=environment | {"KAIZA_TEST_TERMINAL": os.ttyname(slave)}, start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        self.shown = ""
        self.decode = codecs.getincrementaldecoder("utf-8")().decode
        if stdin is not None:
            with self.child.stdin as pipe:
                pipe.write(stdin)

    def until(self, text, seconds=20):
        """Wait until the text is shown; everything shown so far."""
        end = time.monotonic() + seconds
        while text not in self.shown:
            assert time.monotonic() < end, self.shown
            if not self._more(end - time.monotonic()):
                raise AssertionError(self.shown)
        return self.shown

    def type(self, text):
        """Type now. With `ahead`, the text is in the terminal before the command starts."""
        os.write(self.master, text.encode())

    def answer(self, text, question="[y/N] "):
        """Answer a question once it is shown; everything shown until then."""
        shown = self.until(question)
        self.type(text if text == "\x04" else f"{text}\n")
        return shown

    def end(self, seconds=20):
        """Wait for the end of the command and read everything; the exit status."""
        end = time.monotonic() + seconds
        while self._more(max(0.0, end - time.monotonic())):
            pass
        status = self.child.wait(max(0.1, end - time.monotonic()))
        os.close(self.master)
        return status

    def _more(self, seconds):
        if not select.select([self.master], [], [], max(0.0, seconds))[0]:
            return False
        try:
            shown = os.read(self.master, 65536)
        except OSError:
            return False
        self.shown += self.decode(shown).replace("\r\n", "\n")
        return bool(shown)


@pytest.fixture
def screen(workspace):
    """Starts a command at a terminal; it is killed if it is still running afterwards."""
    started = []

    def start(*words, columns=120, stdin=None, out=None, ahead="", **environment):
        kept = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "COLUMNS", "LINES"}}
        with out.open("wb") if out else contextlib.nullcontext() as file:
            started.append(Screen(words, columns, kept | {"TERM": "xterm", **environment}, stdin, file, ahead))
        return started[-1]

    yield start
    for screen in started:
        if screen.child.poll() is None:
            screen.child.send_signal(signal.SIGKILL)
            screen.child.wait()


def run_process(*words, **how):
    """Run a command in a new process."""
    return subprocess.run([sys.executable, "-m", "kaiza", *words], capture_output=True, check=False, timeout=60, **how)


@pytest.fixture
def process():
    return run_process


@pytest.fixture
def body():
    return call


@pytest.fixture
def log(workspace):
    return Path(workspace, "audit", "audit-log.jsonl")
