"""Progress on a terminal, and the memory that long logs take."""

import contextlib
import os
import subprocess
import sys

import pytest

from kaiza.cli.console import audit_reader, output
from kaiza.domain.audit import record

LONG = 1_000_000 if os.environ.get("KAIZA_LONG") else 20_000


def shown_at_a_terminal(act):
    """What the action writes to a terminal on standard error."""
    master, slave = os.openpty()
    with open(slave, "w") as screen, contextlib.redirect_stderr(screen):
        act()
    result = b""
    with open(master, "rb", buffering=0) as shown, contextlib.suppress(OSError):
        while more := shown.read(1000):
            result += more
    return result


def verifying():
    with output.Progress("verifying") as progress:
        progress(1, 4)
        progress(2, 4)
    output.print_error("end")


def test_progress_is_shown_on_a_terminal_and_erased_at_the_end(monkeypatch):
    monkeypatch.setattr(output, "_FIRST_AFTER_SECONDS", 0)

    assert shown_at_a_terminal(verifying) == b"\rverifying 25 %\x1b[K\r\x1b[Kend\r\n"


def test_short_work_shows_no_progress():
    assert shown_at_a_terminal(verifying) == b"end\r\n"


def test_progress_is_erased_before_other_output(monkeypatch):
    monkeypatch.setattr(output, "_FIRST_AFTER_SECONDS", 0)

    def searching():
        with output.Progress("searching") as progress:
            progress(1, 4)
            progress.clear()
            output.print_error("found")

    assert shown_at_a_terminal(searching) == b"\rsearching 25 %\x1b[K\r\x1b[Kfound\r\n"


def test_a_search_erases_its_progress_before_each_result(monkeypatch, write_log, body, workspace):
    monkeypatch.setattr(output, "_FIRST_AFTER_SECONDS", 0)
    write_log(body("read_file"), body("write_file"))

    def searching():
        records = audit_reader.read_forward(str(workspace))
        for record_found in audit_reader.filter_records(
            records, lambda one: one.tool_name == "write_file", str(workspace)
        ):
            output.print_error(record_found.tool_name)

    assert shown_at_a_terminal(searching) == b"\rsearching 50 %\x1b[K\r\x1b[Kwrite_file\r\n"


def test_without_a_terminal_there_is_no_progress(monkeypatch, capfd):
    monkeypatch.setattr(output, "_FIRST_AFTER_SECONDS", 0)
    with output.Progress("verifying") as progress:
        progress(1, 4)

    assert capfd.readouterr().err == ""


@pytest.mark.long
@pytest.mark.parametrize("words", [["audit", "show"], ["audit", "verify"], ["audit", "export"], ["session", "list"]])
def test_a_long_log_is_read_in_little_memory(workspace, log, body, words):
    link = record.GENESIS
    with log.open("wb") as file:
        for seq in range(1, LONG + 1):
            line, whole = record.serialize_and_hash(body(at=seq % 3600), seq, link)
            link = whole.entry_hash
            file.write(line)
    program = "import re, sys; from kaiza.cli import dispatch; status = dispatch.main(sys.argv[1:]); "
    program += "sys.stderr.write(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]); sys.exit(status)"
    result = subprocess.run(
        [sys.executable, "-c", program, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True
    )

    assert int(result.stderr.split()[-1]) < 100 * 1024
