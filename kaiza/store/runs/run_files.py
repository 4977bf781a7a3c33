"""Files of the run log, in `.kaiza/runs/mcp_server/envelope_validation/`: one for each run, and a link to the newest.

No component below the root is opened through a link. Only regular files with the name of a run are ever removed.
"""

import fcntl
import os
import re
from contextlib import suppress
from typing import Final

from kaiza.store.disk import small_files
from kaiza.store.disk.kaiza_dir import KaizaDir

KEPT_RUNS: Final = 5
LATEST: Final = ".latest"

_COMPONENTS = ("runs", "mcp_server", "envelope_validation")
_RUN_NAME = re.compile(r"[0-9]{8}T[0-9]{6}Z\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.jsonl", re.ASCII)


def open_directory(root: str) -> int:
    """Descriptor of the directory, which is created if missing. OSError if a component is not a directory."""
    root_fd = small_files.open_directory(root)
    kaiza_dir = KaizaDir(root_fd)
    try:
        parent = os.dup(kaiza_dir.open_home())
    finally:
        kaiza_dir.close()
        os.close(root_fd)
    for name in _COMPONENTS:
        try:
            with suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=parent)
            child = small_files.open_directory(name, parent)
        finally:
            os.close(parent)
        parent = child
    return parent


def create_file(directory_fd: int, name: str) -> int:
    """Descriptor of a run's new file, locked while it is open. FileExistsError if the name is taken."""
    while True:
        descriptor = small_files.create(name, directory_fd, append=True)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        # Another process may have removed the file before it was locked.
        if os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)


def link_latest(directory_fd: int, name: str) -> None:
    """Point `.latest` to a run's file. Readers see the old link or the new one."""
    temp = f"{LATEST}.{name}"
    os.symlink(name, temp, dir_fd=directory_fd)
    try:
        os.replace(temp, LATEST, src_dir_fd=directory_fd, dst_dir_fd=directory_fd)
    except OSError:
        os.unlink(temp, dir_fd=directory_fd)
        raise


def remove_old_runs(directory_fd: int, newest: str) -> None:
    """Remove all runs but the KEPT_RUNS written last, `newest` included. Those of running processes stay."""
    with os.scandir(directory_fd) as entries:
        runs = [
            (entry.stat(follow_symlinks=False).st_mtime_ns, entry.name)
            for entry in entries
            if _RUN_NAME.fullmatch(entry.name) and entry.is_file(follow_symlinks=False)
        ]
    # Two files may have the same time, so the caller names the newest.
    earlier = sorted((run for run in runs if run[1] != newest), reverse=True)
    for _, name in earlier[KEPT_RUNS - 1 :]:
        with suppress(OSError):
            _remove_ended(directory_fd, name)


def _remove_ended(directory_fd: int, name: str) -> None:
    descriptor = small_files.open_for_reading(name, directory_fd)
    try:
        # Fails while the run's process holds the lock.
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(name, dir_fd=directory_fd)
    finally:
        os.close(descriptor)
