"""Fingerprint of the files that govern the agent, compared before and after checks that run without a sandbox."""

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from kaiza.domain.audit.projection import is_late_count
from kaiza.domain.audit.record import Record
from kaiza.domain.paths.protected_names import LOG_DIRECTORY, LOG_PATH
from kaiza.domain.paths.rel_path import RelPath
from kaiza.store.disk.process_liveness import is_locked
from kaiza.store.disk.small_files import READ_NOFOLLOW

# git itself writes these when a check commits, fetches or looks at the status.
_WRITTEN_BY_GIT = frozenset({"objects", "refs", "packed-refs", "index", "logs"})
# What other calls write in `.kaiza` while a check runs. Existing files are compared even in `_GROWING`.
_VOLATILE = frozenset({"live", "locks", "made", "reserve", "reviews", "set-aside"})
_GROWING = frozenset({"objects", "done"})
# In the state directory, the server writes these at any time. The snapshot is deleted instead; the manifest and the
# reports made with it give no authority. What was seen of the plans is compared: it approves, and changes only if a
# plan does, which is not allowed meanwhile either.
_VOLATILE_STATE = frozenset(
    {"anchor", "whole.json", "verify.lock", "identity.lock", "sights.lock", "drafts", "index.json", "index.lock"}
    | {"manifest.sqlite", "manifest.lock", "outside", "reviews"}
)
# Made by any process that finds the log damaged. A new one only stops changes; one that goes would allow them.
_DAMAGE_MARK = "damage.json"
_PERSONAL_KINDS = frozenset({"person", "plan"})
# Decisions that only stop an agent may be made while a check runs.
_STOPPING_ACTIONS = frozenset({"freeze", "reject", "revoke"})


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Fingerprints by path, and the hash of the log up to its size at that moment."""

    files: Mapping[str, str]
    log_size: int
    log_hash: str


def take_fingerprint(root: str, private: Sequence[Path], is_governing: Callable[[RelPath], bool]) -> Fingerprint:
    """Take the fingerprint of a workspace and of Kaiza's own directories outside of it."""
    log = Path(root) / LOG_PATH
    size = log.stat().st_size if log.is_file() else 0
    files = dict(_governing_files(Path(root), is_governing))
    files.update(_private_files(Path(root, ".kaiza"), ".kaiza", _VOLATILE))
    for directory in private:
        files.update(_private_files(directory, str(directory), _VOLATILE_STATE))
    return Fingerprint(files, size, _hash_file(log, size))


def find_differences(before: Fingerprint, after: Fingerprint, root: str) -> list[str]:
    """Paths that were changed, added or removed between; a log that has only grown is unchanged."""
    paths = before.files.keys() | after.files.keys()
    changed = {path for path in paths if before.files.get(path) != after.files.get(path)}
    changed = {path for path in changed if not _is_ordinary(root, path, before)}
    if _hash_file(Path(root) / LOG_PATH, before.log_size) != before.log_hash:
        changed.add(LOG_PATH)
    return sorted(changed)


def find_personal_records(before: Fingerprint, root: str) -> list[int]:
    """Sequence numbers of the records of a person's decisions that were appended since."""
    try:
        with os.fdopen(os.open(Path(root, LOG_PATH), READ_NOFOLLOW), "rb") as log:
            log.seek(before.log_size)
            numbers = [_personal_number(line) for line in log]
    except OSError:
        return []
    return [number for number in numbers if number is not None]


def _personal_number(line: bytes) -> int | None:
    """Sequence number of a record of a person's decision; None for any other line."""
    try:
        members = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None  # damage, which the next look at the log finds
    if not isinstance(members, dict):
        return None
    record = Record(members)
    is_stopping = record.kind == "person" and record.detail.get("action") in _STOPPING_ACTIONS
    if record.kind not in _PERSONAL_KINDS or is_stopping or is_late_count(record):
        return None
    return int(record.seq)


def _is_ordinary(root: str, path: str, before: Fingerprint) -> bool:
    """Whether another process of Kaiza's explains a difference: an addition, or a journal being written."""
    if path.startswith("/") and path.rpartition("/")[2].startswith(_DAMAGE_MARK):
        return path not in before.files
    place = path.split("/")[1] if path.startswith(".kaiza/") else ""
    if place in _GROWING:
        return path not in before.files or not os.path.lexists(f"{root}/{path}")
    return place == "journal" and (not os.path.lexists(f"{root}/{path}") or is_locked(f"{root}/{path}"))


def _governing_files(root: Path, is_governing: Callable[[RelPath], bool]) -> Iterator[tuple[str, str]]:
    for directory, names, files in os.walk(root):
        parent = RelPath(Path(directory).relative_to(root).parts)
        names[:] = [name for name in names if _is_walked(parent / name)]
        links = [name for name in names if os.path.islink(f"{directory}/{name}")]  # noqa: PTH114  names may be odd
        for name in (*files, *links):
            path = parent / name
            if _is_walked(path) and is_governing(path):
                yield str(path), _fingerprint_file(f"{directory}/{name}")


def _is_walked(path: RelPath) -> bool:
    # The log is compared by its hash, and `.kaiza` by file status.
    if path.parts[0] in (LOG_DIRECTORY, ".kaiza"):
        return False
    below = path.parts[path.parts.index(".git") + 1 :] if ".git" in path.parts else ()
    return not below or (below[0] not in _WRITTEN_BY_GIT and not path.name.endswith(".lock"))


def _private_files(directory: Path, shown: str, skipped: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Files of Kaiza's own by their status: there are many, and a change of a file changes its change time."""
    for place, names, files in os.walk(directory):
        if place == str(directory):
            names[:] = [name for name in names if name not in skipped]
        below = place.removeprefix(str(directory))
        for name in files:
            if below or not name.startswith(tuple(skipped)):
                yield f"{shown}{below}/{name}", _fingerprint_status(f"{place}/{name}")


def _fingerprint_status(path: str) -> str:
    try:
        status = os.lstat(path)
    except OSError as error:
        return f"unreadable {error.errno}"
    return f"{status.st_mode:o} {status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"


def _fingerprint_file(path: str) -> str:
    try:
        status = os.lstat(path)
        if os.path.islink(path):  # noqa: PTH114  names may be odd
            return f"link {os.readlink(path)}"  # noqa: PTH115  as above
        return f"{status.st_mode:o} {_hash_file(Path(path), status.st_size)}"
    except OSError as error:
        return f"unreadable {error.errno}"


def _hash_file(path: Path, size: int) -> str:
    digest = hashlib.sha256()
    try:
        with os.fdopen(os.open(path, READ_NOFOLLOW), "rb") as file:
            while size > 0 and (block := file.read(min(size, 1 << 20))):
                digest.update(block)
                size -= len(block)
    except OSError as error:
        return f"unreadable {error.errno}"
    return f"{digest.hexdigest()} {size}"
