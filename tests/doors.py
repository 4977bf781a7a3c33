"""Drives a server process over its pipes: lines in, answers out."""

import json
import os
import queue
import signal
import subprocess
import threading
import time

PATIENCE = 60
"""Seconds to wait for an answer before the test fails."""


class Door:
    """A server process on pipes. A thread collects its answers."""

    def __init__(self, command, record=None, **options):
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        self.process = subprocess.Popen(command, **options)
        self.record = record
        self.answers = queue.SimpleQueue()
        if self.process.stdout:
            threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        for line in self.process.stdout:
            self.answers.put(line)
        self.answers.put(None)

    def say(self, *lines):
        """Send lines, given as bytes or as JSON values, in one write."""
        encoded = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
        self.process.stdin.write(b"".join(line + b"\n" for line in encoded))
        self.process.stdin.flush()

    def hear(self):
        """Wait for the next answer."""
        return json.loads(self.hear_line())

    def hear_line(self):
        """Wait for the next answer; its bytes."""
        line = self.answers.get(timeout=PATIENCE)
        assert line is not None, "the server has ended"
        return line

    def ask(self, line):
        self.say(line)
        return self.hear()

    def call(self, number, name, **arguments):
        self.say(call(number, name, **arguments))

    def rest(self):
        """Close stdin and return the remaining answers."""
        self.process.stdin.close()
        return self.after_its_end()

    def after_its_end(self):
        """Wait for the server to end and return the remaining answers."""
        answers = []
        while (line := self.answers.get(timeout=PATIENCE)) is not None:
            answers.append(json.loads(line))
        self.process.wait(PATIENCE)
        return answers

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def records(self):
        return [json.loads(line) for line in self.record.read_text().splitlines()] if self.record.exists() else []

    def built(self):
        return self.record.with_name(self.record.name + ".built").exists()


def request(number, method, /, **params):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def call(number, name, /, **arguments):
    return request(number, "tools/call", name=name, arguments=arguments)


def until(true):
    """Wait until a condition is true."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        os.sched_yield()


class Fifo:
    """A named pipe that calls of the `hold` tool wait on."""

    def __init__(self, path):
        os.mkfifo(path)
        self.path = str(path)
        self._end = os.open(path, os.O_RDWR)

    def release(self, calls=1):
        """Release this many calls, now or as soon as they wait."""
        os.write(self._end, b"." * calls)

    def close(self):
        os.close(self._end)
