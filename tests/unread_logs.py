"""Logs without an index: every one is long for Kaiza, and another process seems to be reading it."""

import fcntl
import os
from contextlib import contextmanager

from kaiza.domain.audit.projection import AuditState
from kaiza.domain.audit.record_folding import apply_record
from kaiza.store.audit import continuity, projection_build
from kaiza.store.audit.reader import read_records
from kaiza.store.disk import state_dir


def state_path(root):
    return state_dir.path_of(os.path.realpath(root))


def make_long(monkeypatch):
    """From now on every log with more than a few records is long, and nothing waits for what others read."""
    monkeypatch.setattr(continuity, "MAX_FOLLOWED_BYTES", 0)
    monkeypatch.setattr(continuity, "_FAR_BEHIND_BYTES", 100)
    monkeypatch.setattr(projection_build, "_TURN_SECONDS", 1000.0)


def forget_index(root):
    for name in ("index.json", "whole.json"):
        (state_path(root) / name).unlink(missing_ok=True)


@contextmanager
def another_reads(root):
    """Hold the lock of the process that reads the log, so that here nothing is read."""
    descriptor = os.open(state_path(root) / "index.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def read_whole(root):
    """The state after all records, in one go."""
    state = AuditState()
    for each in read_records(os.path.realpath(root)):
        apply_record(state, each)
    return state
