"""What the kernel was asked, by whom and in which order, while several processes shared their syncs."""

import os
import re
from typing import NamedTuple

import pytest
from logs import LONG, log_path, python, strace_works

from kaiza.store.log_file import LogFile

WRITERS = """
import os, sys
from logs import body, open_log
for number in range(4):
    if os.fork() == 0:
        log = open_log(sys.argv[1])
        for turn in range(int(sys.argv[2])):
            if turn % 3:
                log.report(body(), durable=True)
            else:
                log.append(body, durable=True)
        os._exit(0)
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
"""
LINE = re.compile(
    r"(\d+) +([0-9.]+) (?:(<\.\.\. )?(\w+)(?:\((\d+)<([^>]*)>| resumed>).*?)(?:(<unfinished) \.\.\.>|<([0-9.]+)>)$"
)
ROUNDING = 2e-6


class Done(NamedTuple):
    call: str
    file: str
    begin: float
    end: float


def traced(path):
    """What each process did, in its order."""
    done, open_calls = {}, {}
    for told in filter(None, map(LINE.match, path.read_text().splitlines())):
        process, at, resumed, call, _, file, unfinished, took = told.groups()
        if resumed:
            begun, file = open_calls.pop((process, call))
            done.setdefault(process, []).append(Done(call, file, begun, float(at)))
        elif unfinished:
            open_calls[process, call] = float(at), file
        else:
            done.setdefault(process, []).append(Done(call, file, float(at), float(at) + float(took)))
    return done


@pytest.mark.long
@pytest.mark.skipif(not strace_works(), reason="strace is not installed, or may not be used here")
def test_between_a_record_and_its_anchor_the_log_is_synced_by_somebody(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.path.dirname(os.path.dirname(__file__)))
    (tmp_path / "audit").mkdir()
    count, trace = 300 if LONG else 40, tmp_path / "trace"
    before = [
        "strace",
        "-f",
        "-qq",
        "-y",
        "-ttt",
        "-T",
        "-s",
        "0",
        "-e",
        "trace=write,fdatasync,pwrite64,sync_file_range",
        "-o",
        trace,
    ]
    process = python(WRITERS, tmp_path, count, before=list(map(str, before)))
    process.communicate()
    done = traced(trace)
    log = str(log_path(tmp_path))
    syncs = [one for mine in done.values() for one in mine if (one.call, one.file) == ("fdatasync", log)]
    written = lone = 0
    for mine in done.values():
        of_ours = [one for one in mine if one.file == log or os.path.basename(one.file).startswith("anchor")]
        records = [one for one in of_ours if (one.call, one.file) == ("write", log)]
        anchors = [one for one in of_ours if one.call == "pwrite64"]
        assert len(records) == len(anchors)
        for record, anchor in zip(records, anchors, strict=True):
            assert any(record.end <= sync.begin + ROUNDING and sync.end <= anchor.begin + ROUNDING for sync in syncs), (
                record,
                anchor,
            )
        written += len(records)
        lone += sum(one.call == "fdatasync" for one in of_ours)
    asked = trace.read_text().count(">, 0, 1, SYNC_FILE_RANGE_WAIT_BEFORE")

    assert process.returncode == 0
    assert written == 4 * count
    assert lone == len(syncs)
    if LogFile(os.open(log, os.O_RDONLY)).hears_losses:
        assert lone < written
        assert lone + asked >= written
