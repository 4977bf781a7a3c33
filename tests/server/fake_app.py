"""Fake application behind the real transport: `python fake_app.py RECORD [NAME=SECONDS ...]` serves it over stdio.

`NAME=SECONDS` changes a time limit of the shutdown.
Writes one line for each call to the file RECORD before the answer, as the real application does to its log.
"""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from kaiza.domain import error_codes, errors
from kaiza.domain.call import Outcome, Receipt
from kaiza.server.serve import serve
from kaiza.server.stdio import transport
from kaiza.wire.dialect import ServerDescription

INSTRUCTIONS = "Echo, or hold."
SCHEMA = "https://json-schema.org/draft/2020-12/schema"
TOOLS = [
    {
        "name": name,
        "title": name.title(),
        "description": f"Does {name}.",
        "inputSchema": {"$schema": SCHEMA, "type": "object", "properties": {}, "additionalProperties": True},
        "outputSchema": {"$schema": SCHEMA, "type": "object", "properties": {}, "additionalProperties": True},
        "annotations": {
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        },
    }
    for name in (
        *("echo", "hold", "begin_session", "fail", "patch", "crash", "noise"),
        *("server_info", "session_status", "read_file", "write_file", "run_checks"),
    )
]
OPENING = ServerDescription("0.1.0", INSTRUCTIONS, lambda: TOOLS)
TIMEOUT = 30.0


class Call:
    def __init__(self, request, number):
        self.request = request
        self.request_id = f"call-{number}"
        self.deadline = time.monotonic() + self.timeout()
        self._claimed = threading.Lock()

    def timeout(self):
        arguments = self.request.arguments
        seconds = arguments.get("timeout", TIMEOUT) if isinstance(arguments, dict) else TIMEOUT
        return seconds if isinstance(seconds, int | float) else TIMEOUT

    def claim(self):
        return self._claimed.acquire(blocking=False)


class FakeApp:
    def __init__(self, record):
        self.record = Path(record)
        self.lock = threading.Lock()
        self.count = 0
        Path(f"{record}.built").touch()

    def stamp(self, request):
        with self.lock:
            self.count += 1
            return Call(request, self.count)

    def answer(self, call):
        outcome = self.run_tool(call)
        if outcome.receipt is not None:
            return outcome
        return self.record_outcome(call, outcome) if call.claim() else None

    def expire(self, call, cap="timeout"):
        if not call.claim():
            return None
        time.sleep(0.003)  # as slow as a disk
        return self.record_outcome(call, failure(call, "CAP_EXCEEDED", {"cap": cap}))

    def close(self):
        self.write({"closed": True})

    def run_tool(self, call):
        arguments = call.request.arguments
        name = call.request.tool_name
        if call.request.fault is not None:
            return failure(call, call.request.fault.error_code)
        if name not in {tool["name"] for tool in TOOLS}:
            return failure(call, "TOOL_NOT_FOUND")
        if not isinstance(arguments, dict):
            return failure(call, "INVALID_PARAMS")
        return getattr(self, name)(call, arguments)

    def echo(self, call, arguments):
        return Outcome(
            "echo",
            output={**arguments, "client": call.request.client, "said": call.request.conversational, "summary": "ok"},
        )

    def hold(self, call, arguments):
        """Return once there is a byte in the FIFO; `past_intent`: the call cannot be expired."""
        if call.request.report_progress is not None:
            for done in range(1, arguments.get("progress", 0) + 1):
                call.request.report_progress(done, None if arguments.get("endless") else 9)
        if "begun" in arguments:
            Path(arguments["begun"]).touch()
        if arguments.get("past_intent"):
            call.claim()
        with Path(arguments["fifo"]).open("rb", buffering=0) as fifo:
            fifo.read(1)
        if arguments.get("crash"):
            raise RuntimeError("a bug in a tool")
        outcome = Outcome("hold", output={"text": arguments.get("letter", "") * 300_000, "summary": "held"})
        return self.record_outcome(call, outcome) if arguments.get("past_intent") else outcome

    begin_session = read_file = write_file = run_checks = hold
    server_info = session_status = echo

    def fail(self, call, arguments):
        return failure(call, arguments.get("error_code", "FILE_NOT_FOUND"))

    def patch(self, call, arguments):
        failed = failure(call, "PATCH_APPLY_FAILED")
        return Outcome("patch", envelope=failed.envelope, code=failed.code, evidence={"expected": "a", "found": "b"})

    def crash(self, call, arguments):
        raise RuntimeError("a bug in a tool")

    def noise(self, call, arguments):
        print("this is not for the wire")
        sys.stdout.write("nor this\n")
        sys.__stdout__.write("nor this\n")
        sys.__stdout__.flush()
        subprocess.run(["sh", "-c", "cat; echo nor this"], check=True)
        os.write(1, b"nor this\n")
        return Outcome("noise", output={"summary": "quiet"})

    def record_outcome(self, call, outcome):
        seq = self.write({"tool": outcome.tool_name, "code": outcome.code.name if outcome.code else None})
        return Outcome(
            outcome.tool_name, outcome.output, outcome.envelope, outcome.evidence, outcome.code, Receipt(seq, "0" * 64)
        )

    def write(self, line):
        with self.lock, self.record.open("a") as file:
            file.write(json.dumps(line) + "\n")
            return file.tell()


def failure(call, error_code, cause=None):
    row = error_codes.lookup(error_code, (cause or {}).get("cap"))
    envelope = {
        "error_code": error_code,
        "human_message": row.meaning,
        "tool_name": call.request.tool_name,
        "cause": cause,
    }
    return Outcome(call.request.tool_name, envelope=envelope, code=row)


class LingeringApp(FakeApp):
    """Its `close` never returns, and a thread of it would keep the process alive."""

    def close(self):
        threading.Thread(target=threading.Event().wait, daemon=False).start()
        threading.Event().wait()


class UnclosableApp(FakeApp):
    """Its `close` fails, as if an expired call still held the lock of the log."""

    def close(self):
        raise errors.SystemError.tool_failure("AUDIT_LOCK_FAILED")


def broken():
    raise errors.SystemError.startup_failure("BOOTSTRAP_FAILURE")


def buggy():
    raise RuntimeError("a bug while building the app")


def slow(record, fifo):
    """Build the app once there is a byte in the FIFO."""
    with Path(fifo).open("rb", buffering=0) as pipe:
        pipe.read(1)
    return FakeApp(record)


def main(record, *options):
    for name, seconds in (option.split("=") for option in options if "_SECONDS=" in option):
        assert hasattr(transport, name)
        setattr(transport, name, float(seconds))
    factories = {"broken": broken, "buggy": buggy, "lingering": lambda: LingeringApp(record)}
    factories |= {"unclosable": lambda: UnclosableApp(record), "slow": lambda: slow(record, options[1])}
    make_app = factories.get(options[0] if options else "", lambda: FakeApp(record))
    opening = OPENING._replace(tools=buggy) if "listless" in options else OPENING
    try:
        return serve(make_app, opening, summary="summary" in options)
    except errors.SystemError as error:
        sys.stderr.write(json.dumps({"error_code": error.error_code}) + "\n")
        return 3


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
