"""A small house behind the real door: `python fake_app.py RECORD` serves it over standard input and output.

RECORD gets one line a call, written before the answer, as the real house does.
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
from kaiza.wire.dialects.mcp import ServerDescription

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
        *("server_info", "session_status"),
    )
]
OPENING = ServerDescription("0.1.0", INSTRUCTIONS, lambda: TOOLS)
TIMEOUT = 30.0


class Call:
    def __init__(self, ask, number):
        self.ask = ask
        self.request_id = f"call-{number}"
        self.deadline = time.monotonic() + self.patience()
        self._taken = threading.Lock()

    def patience(self):
        given = self.ask.arguments.get("timeout", TIMEOUT) if isinstance(self.ask.arguments, dict) else TIMEOUT
        return given if isinstance(given, int | float) else TIMEOUT

    def take(self):
        return self._taken.acquire(blocking=False)


class House:
    def __init__(self, record):
        self.record = Path(record)
        self.lock = threading.Lock()
        self.count = 0
        Path(f"{record}.built").touch()

    def stamp(self, ask):
        with self.lock:
            self.count += 1
            return Call(ask, self.count)

    def answer(self, call):
        outcome = self.outcome(call)
        if outcome.receipt is not None:
            return outcome
        return self.written(call, outcome) if call.take() else None

    def expire(self, call, cap="timeout"):
        if not call.take():
            return None
        time.sleep(0.003)  # as slow as a disk
        return self.written(call, failure(call, "CAP_EXCEEDED", {"cap": cap}))

    def close(self):
        self.write({"closed": True})

    def outcome(self, call):
        given = call.ask.arguments
        name = call.ask.tool_name
        if name not in {tool["name"] for tool in TOOLS}:
            return failure(call, "TOOL_NOT_FOUND")
        if not isinstance(given, dict):
            return failure(call, "INVALID_PARAMS")
        return getattr(self, name)(call, given)

    def echo(self, call, given):
        return Outcome(
            "echo", output={**given, "client": call.ask.client, "said": call.ask.conversational, "summary": "ok"}
        )

    def hold(self, call, given):
        """Go on when there is a byte in the FIFO; `past_intent`: the call can no longer be ended."""
        if given.get("past_intent"):
            call.take()
        with Path(given["fifo"]).open("rb", buffering=0) as fifo:
            fifo.read(1)
        if given.get("crash"):
            raise RuntimeError("a bug in the house")
        outcome = Outcome("hold", output={"text": given.get("letter", "") * 300_000, "summary": "held"})
        return self.written(call, outcome) if given.get("past_intent") else outcome

    begin_session = hold
    server_info = session_status = echo

    def fail(self, call, given):
        return failure(call, given.get("error_code", "FILE_NOT_FOUND"))

    def patch(self, call, given):
        found = failure(call, "PATCH_APPLY_FAILED")
        return Outcome("patch", envelope=found.envelope, code=found.code, evidence={"expected": "a", "found": "b"})

    def crash(self, call, given):
        raise RuntimeError("a bug in the house")

    def noise(self, call, given):
        print("this is not for the wire")
        sys.stdout.write("nor this\n")
        sys.__stdout__.write("nor this\n")
        sys.__stdout__.flush()
        subprocess.run(["sh", "-c", "cat; echo nor this"], check=True)
        os.write(1, b"nor this\n")
        return Outcome("noise", output={"summary": "quiet"})

    def written(self, call, outcome):
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
    envelope = {"error_code": error_code, "human_message": row.meaning, "tool_name": call.ask.tool_name, "cause": cause}
    return Outcome(call.ask.tool_name, envelope=envelope, code=row)


class Lingering(House):
    """A house that cannot be closed, and a thread that would keep the process."""

    def close(self):
        threading.Thread(target=threading.Event().wait, daemon=False).start()
        threading.Event().wait()


class Unclosable(House):
    """A house whose record is held by a call that was given up."""

    def close(self):
        raise errors.SystemError.tool_failure("AUDIT_LOCK_FAILED")


def broken():
    raise errors.SystemError.startup_failure("BOOTSTRAP_FAILURE")


def buggy():
    raise RuntimeError("a bug in the building")


def slow(record, fifo):
    """A house that is there once there is a byte in the FIFO."""
    with Path(fifo).open("rb", buffering=0) as waited:
        waited.read(1)
    return House(record)


def main(record, *words):
    ways = {"broken": broken, "buggy": buggy, "lingering": lambda: Lingering(record)}
    ways |= {"unclosable": lambda: Unclosable(record), "slow": lambda: slow(record, words[1])}
    make = ways.get(words[0] if words else "", lambda: House(record))
    opening = OPENING._replace(tools=buggy) if "listless" in words else OPENING
    try:
        return serve(make, opening, summary="summary" in words)
    except errors.SystemError as failed:
        sys.stderr.write(json.dumps({"error_code": failed.error_code}) + "\n")
        return 3


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
