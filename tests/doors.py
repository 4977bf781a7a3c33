"""Server processes as a client sees them: lines in, answers out."""

import json
import os
import queue
import signal
import subprocess
import threading
import time

PATIENCE = 20


class Door:
    """A server process on pipes, and what it has answered so far."""

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
        """Send lines, as bytes or as what is made into JSON, in one write."""
        told = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
        self.process.stdin.write(b"".join(line + b"\n" for line in told))
        self.process.stdin.flush()

    def hear(self):
        """The next answer."""
        line = self.answers.get(timeout=PATIENCE)
        assert line is not None, "the server has gone"
        return json.loads(line)

    def ask(self, line):
        self.say(line)
        return self.hear()

    def call(self, number, name, **arguments):
        self.say(call(number, name, **arguments))

    def rest(self):
        """Every answer that is still to come, once the server has gone."""
        self.process.stdin.close()
        return self.after_its_end()

    def after_its_end(self):
        told = []
        while (line := self.answers.get(timeout=PATIENCE)) is not None:
            told.append(json.loads(line))
        self.process.wait(PATIENCE)
        return told

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
    """Return once it is true."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        os.sched_yield()


class Fifo:
    """What calls of `hold` wait for."""

    def __init__(self, path):
        os.mkfifo(path)
        self.path = str(path)
        self._end = os.open(path, os.O_RDWR)

    def release(self, calls=1):
        """Let so many calls go on, now or as soon as they wait."""
        os.write(self._end, b"." * calls)

    def close(self):
        os.close(self._end)
