"""What `kaiza doctor` asks of the machine: Python, the system, who we are, the file system, the state directory."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from kaiza.cli.doctor.check import DoctorCheck, ok, problem, unknown, warning
from kaiza.domain import errors
from kaiza.render.terminal import escape
from kaiza.store.config import roots
from kaiza.store.disk import state_dir
from kaiza.store.files import probe

_MIN_PYTHON = (3, 11)
_SENTENCES = {
    "sync": ("files can be synced to the disk", "The record cannot be made durable here. Use another file system."),
    "lock": ("locks hold", "Two processes could write the record at once. Use another file system."),
    "link": ("files can have a second name", "New plans cannot be put in place whole. Use another file system."),
}


def check_python() -> Iterator[DoctorCheck]:
    """The interpreter and the system."""
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < _MIN_PYTHON:
        yield problem("python", f"Python {version} is too old", "Use Python 3.11 or newer.")
    else:
        yield ok("python", f"Python {version}")
    if sys.platform == "linux":
        yield ok("system", f"Linux {os.uname().release}")
    else:
        yield warning(
            "system", f"{sys.platform} is untested", "Kaiza is built and tested on Linux; it takes portable ways."
        )


def check_user() -> Iterator[DoctorCheck]:
    """Who we are: root passes every permission that should stop an agent."""
    if os.geteuid() == 0:
        yield warning("user", "this is root, whom no permission stops", "Run the client and Kaiza as a plain user.")
    else:
        yield ok("user", "not root")


def check_kernel(root: Path) -> Iterator[DoctorCheck]:
    """How paths are kept inside."""
    if probe.find_resolver(root) == "openat2":
        yield ok("paths", "the kernel keeps paths inside the workspace (openat2)")
    else:
        todo = "Nothing has to be done; Linux 5.6 or newer without a filter on openat2 is faster."
        yield warning("paths", "paths are walked name by name, since openat2 lacks here", todo)


def check_file_system(root: Path) -> Iterator[DoctorCheck]:
    """What the file system under the workspace can do, tried out in audit/."""
    where = root / "audit" if (root / "audit").is_dir() else root
    try:
        told = probe.try_file_system(where)
    except OSError as error:
        yield problem("file-system", f"nothing can be written in {where.name}/: {error.strerror}", "Make it writable.")
        return
    for name, (message, todo) in _SENTENCES.items():
        fault = told[name]
        yield ok(name, message) if fault is None else problem(name, f"not so: {message} ({fault})", todo)
    if told["exchange"] is None:
        yield ok("exchange", "files are exchanged in one step (renameat2)")
    else:
        todo = "Keep other programs from writing the same files meanwhile, or use ext4, xfs or btrfs."
        yield warning("exchange", f"files cannot be exchanged in one step ({told['exchange']})", todo)


def check_state_directory(root: Path) -> Iterator[DoctorCheck]:
    """Where the anchor is kept: outside the workspace, ours, nobody else's."""
    place = state_dir.path_of(str(root))
    shown = escape(str(place))
    if roots.has_state_inside(str(root), of=str(root)):
        yield problem("state", f"{shown} is inside the workspace", roots.state_inside_message([str(root)]))
        return
    there = next(one for one in (place, *place.parents) if one.exists())
    fault = probe.try_writing(there) if there.is_dir() else "it is no directory"
    if fault is not None:
        yield problem("state", f"{escape(str(there))} cannot be written: {fault}", "Make it writable for you.")
    elif place.exists() and place.stat().st_uid != os.geteuid():
        yield problem("state", f"{shown} belongs to somebody else", "Run as that user, or remove it as root.")
    elif place.exists() and place.stat().st_mode & 0o022:
        yield warning("state", f"others may write {shown}", f"chmod 700 {shown}")
    else:
        yield ok("state", f"the anchor is kept in {shown}")


def check_permissions(root: Path) -> Iterator[DoctorCheck]:
    """What the workspace's own places allow."""
    for name, todo in (
        (".", "Make the workspace writable for you; agents can only read as it is."),
        ("plans", "Make plans/ writable for you; no plan can be drafted or approved as it is."),
        ("audit", "Make audit/ writable for you; nothing can be recorded as it is, so everything is refused."),
    ):
        fault = probe.try_writing(root / name)
        if fault is not None:
            yield problem("permissions", f"{name} cannot be written: {fault}", todo)
            return
    log = root / "audit" / "audit-log.jsonl"
    if log.exists() and not log.stat().st_mode & 0o200:
        yield problem("permissions", "the record is read-only", "Make audit/audit-log.jsonl writable again.")
    elif log.exists() and not os.access(log, os.R_OK | os.W_OK):
        todo = "One account works in a workspace: run as the one that owns audit/audit-log.jsonl."
        yield problem("permissions", "the record belongs to somebody else", todo)
    elif (root / "audit").stat().st_mode & 0o002:
        yield warning("permissions", "everybody may write audit/", "chmod o-w audit")
    else:
        yield ok("permissions", "the workspace, plans/ and audit/ can be written by you")


def errors_as_unknown(name: str, checks: Iterator[DoctorCheck]) -> Iterator[DoctorCheck]:
    """The checks; where the disk refuses to tell, that is what was found."""
    try:
        yield from checks
    except OSError as error:
        yield unknown(name, f"could not be told: {error.strerror}", "Put that right, then run kaiza doctor again.")
    except errors.SystemError as error:
        yield unknown(name, f"could not be told: {error.human_message}", "Put that right, then run kaiza doctor again.")
