"""Checks of the machine: Python, operating system, user, file system, state directory, permissions."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from kaiza.domain.paths.protected_names import LOG_DIRECTORY, LOG_PATH
from kaiza.queries.doctor.check import DoctorCheck, ok, problem, warning
from kaiza.render.terminal import escape
from kaiza.store.config import roots
from kaiza.store.disk import state_dir
from kaiza.store.disk.disk_reserve import FULL_DISK_ERRNOS
from kaiza.store.files import probe

_MIN_PYTHON = (3, 11)
_FILE_SYSTEM_CHECKS = {
    "sync": ("fsync works", "The audit log cannot be made durable here. Use another file system."),
    "lock": ("file locks work", "Two processes could write the audit log at once. Use another file system."),
    "link": ("hard links work", "New plans cannot be created atomically. Use another file system."),
}


def check_python() -> Iterator[DoctorCheck]:
    """Check the interpreter and the operating system."""
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < _MIN_PYTHON:
        yield problem("python", f"Python {version} is too old", "Use Python 3.11 or newer.")
    else:
        yield ok("python", f"Python {version}")
    if sys.platform == "linux":
        yield ok("system", f"Linux {os.uname().release}")
    else:
        yield warning(
            "system", f"{sys.platform} is not tested", "Kaiza is tested on Linux; elsewhere it uses portable fallbacks."
        )


def check_user() -> Iterator[DoctorCheck]:
    """Check for root, which ignores the file permissions that should stop an agent."""
    if os.geteuid() == 0:
        yield warning(
            "user", "running as root, which ignores file permissions", "Run the client and Kaiza as a plain user."
        )
    else:
        yield ok("user", "not root")


def check_kernel(root: Path) -> Iterator[DoctorCheck]:
    """Check how paths are confined to the workspace."""
    if probe.find_resolver(root) == "openat2":
        yield ok("paths", "the kernel confines paths to the workspace (openat2)")
    else:
        todo = "Nothing has to be done; Linux 5.6 or newer, with openat2 permitted, is faster."
        yield warning("paths", "openat2 is not available; paths are resolved one component at a time", todo)


def check_file_system(root: Path) -> Iterator[DoctorCheck]:
    """Check what the file system under the workspace can do, by trying it in audit/."""
    directory = root / LOG_DIRECTORY if (root / LOG_DIRECTORY).is_dir() else root
    try:
        faults = probe.try_file_system(directory)
    except OSError as error:
        if error.errno in FULL_DISK_ERRNOS:
            raise
        message = f"{directory.name}/ cannot be written: {error.strerror}"
        yield problem("file-system", message, "Make it writable.")
        return
    for name, (message, todo) in _FILE_SYSTEM_CHECKS.items():
        fault = faults[name]
        yield ok(name, message) if fault is None else problem(name, f"failed: {message} ({fault})", todo)
    if faults["exchange"] is None:
        yield ok("exchange", "files can be exchanged atomically (renameat2)")
    else:
        # Without the exchange there is a moment in which another program's write to the same file would be lost.
        todo = "Do not let other programs write the same files at the same time, or use ext4, xfs or btrfs."
        yield warning("exchange", f"files cannot be exchanged atomically ({faults['exchange']})", todo)


def check_state_directory(root: Path) -> Iterator[DoctorCheck]:
    """Check the state directory: outside the workspace, owned by this user, not writable by others."""
    directory = state_dir.path_of(str(root))
    shown = escape(str(directory))
    if roots.has_state_inside(str(root), of=str(root)):
        yield problem("state", f"{shown} is inside the workspace", roots.explain_inside([str(root)]))
        return
    existing = next(path for path in (directory, *directory.parents) if path.exists())
    fault = probe.try_writing(existing) if existing.is_dir() else "it is not a directory"
    if fault is not None:
        yield problem("state", f"{escape(str(existing))} cannot be written: {fault}", "Make it writable for you.")
    elif directory.exists() and directory.stat().st_uid != os.geteuid():
        yield problem("state", f"{shown} belongs to another user", "Run as that user, or remove it as root.")
    elif directory.exists() and directory.stat().st_mode & 0o022:
        yield warning("state", f"other users can write {shown}", f"Run `chmod 700 {shown}`")
    else:
        yield ok("state", f"the checkpoint is kept in {shown}")


def check_configuration_directory(root: Path) -> Iterator[DoctorCheck]:
    """A problem if the configuration is inside the workspace; no result if it is not."""
    if roots.has_configuration_inside(str(root)):
        todo = roots.explain_inside([str(root)])
        yield problem("configuration", "the configuration directory is inside the workspace", todo)


def check_permissions(root: Path) -> Iterator[DoctorCheck]:
    """Check that the workspace, plans/ and audit/ can be written by this user."""
    for name, todo in (
        (".", "Make the workspace writable for you; as it is, agents can only read."),
        ("plans", "Make plans/ writable for you; as it is, no plan can be drafted or approved."),
        ("audit", "Make audit/ writable for you; as it is, nothing can be recorded and every call is refused."),
    ):
        fault = probe.try_writing(root / name)
        if fault is not None:
            yield problem("permissions", f"{name} cannot be written: {fault}", todo)
            return
    log = root / LOG_PATH
    if log.exists() and not log.stat().st_mode & 0o200:
        yield problem("permissions", "the audit log is read-only", f"Make {LOG_PATH} writable again.")
    elif log.exists() and not os.access(log, os.R_OK | os.W_OK):
        todo = f"A workspace is used by one account: run as the owner of {LOG_PATH}."
        yield problem("permissions", "the audit log belongs to another user", todo)
    elif (root / LOG_DIRECTORY).stat().st_mode & 0o002:
        yield warning("permissions", "every user can write audit/", "Run `chmod o-w audit`")
    else:
        yield ok("permissions", "you can write the workspace, plans/ and audit/")
