"""The plans of a workspace: read by descriptor each time they are asked for, never believed by name or date.

What was understood is kept by its hash, so that bytes which were read before cost a hash and no more.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from typing import TypeVar

from kaiza.domain import errors
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.plans import parser
from kaiza.domain.plans.plan import MAX_BYTES, is_plan_id
from kaiza.store.disk import atomic_rename, file_metadata
from kaiza.store.files.confined_root import ConfinedRoot, OpenDirectory, OpenFile

DIRECTORY = RelPath(("plans",))
SUFFIX = ".md"
MAX_PLANS = 10_000
_MAX_CACHED = 256
_MAX_EXCHANGES = 100
_ABSENT_CODES = frozenset({"FILE_NOT_FOUND", "PATH_NOT_FOUND", "FILE_READ_FAILED", "INVALID_PATH", "OUTSIDE_WORKSPACE"})
K = TypeVar("K")
V = TypeVar("V")
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class PlanFiles:
    """What is in `plans/`. Links are not followed: a plan is a plain file where a person expects it."""

    def __init__(self, workspace: ConfinedRoot) -> None:
        self._files = workspace
        self._parsed_by_hash: dict[tuple[str, str], parser.ParsedPlan] = {}
        self._id_by_hash: dict[str, str] = {}

    def plan_ids(self) -> list[str]:
        """Every plan_id that has a file, in order; at most so many."""
        try:
            with self._open_directory() as directory:
                stems = [name.removesuffix(SUFFIX) for name in directory.names() if name.endswith(SUFFIX)]
        except errors.SystemError as error:
            if error.error_code in _ABSENT_CODES:
                return []
            raise
        return sorted(stem for stem in stems if is_plan_id(stem))[:MAX_PLANS]

    def read(self, plan_id: str) -> parser.StoredPlan | None:
        """The plan of that name, if it has a file."""
        found = self._read_bytes(plan_id)
        return None if found is None else self._plan_file(plan_id, *found)

    def read_all(self) -> Iterator[parser.StoredPlan]:
        """Every plan, in order of name."""
        for plan_id in self.plan_ids():
            stored = self.read(plan_id)
            if stored is not None:
                yield stored

    def find_by_hash(self, plan_hash: str) -> parser.StoredPlan | None:
        """The plan whose bytes have this hash now; looked for first where it was found last."""
        for plan_id in self._candidate_ids(plan_hash):
            found = self._read_bytes(plan_id)
            if found is not None and found[1] == plan_hash:
                if self._id_by_hash.get(plan_hash) != plan_id:
                    self._id_by_hash = _add_bounded(self._id_by_hash, plan_hash, plan_id)
                return self._plan_file(plan_id, *found)
        return None

    def _candidate_ids(self, plan_hash: str) -> Iterator[str]:
        """Where a hash was found last, and only if it is not there any more every plan there is."""
        known = self._id_by_hash.get(plan_hash)
        if known is not None:
            yield known
        yield from self.plan_ids()

    def create(self, plan_id: str, content: bytes) -> RelPath:
        """Put a new plan there, whole or not at all; FILE_ALREADY_EXISTS if one of that name is there."""
        with self._open_directory() as directory:
            own = _write_temporary(directory, content)
            try:
                os.link(own, plan_id + SUFFIX, src_dir_fd=directory.fd, dst_dir_fd=directory.fd, follow_symlinks=False)
            except FileExistsError as error:
                raise errors.SystemError.tool_failure(
                    "FILE_ALREADY_EXISTS",
                    human_message="There is a plan with this id. Choose another plan_id; a revision is a new plan.",
                    cause={"plan_id": plan_id},
                ) from error
            except OSError as error:
                raise _write_error(error) from error
            finally:
                os.unlink(own, dir_fd=directory.fd)
            os.fsync(directory.fd)
        return DIRECTORY / (plan_id + SUFFIX)

    def remove_created(self, plan_id: str, content: bytes) -> None:
        """Remove a plan that was put there a moment ago, if it still is what was put there."""
        stored = self.read(plan_id)
        if stored is not None and stored.content == content:
            with self._open_directory() as directory:
                os.unlink(plan_id + SUFFIX, dir_fd=directory.fd)
                os.fsync(directory.fd)

    def replace(self, plan_id: str, expected_hash: str, content: bytes) -> bool:
        """Put a person's changed words in place of the bytes they saw; False, and nothing, if those are not there."""
        with self._open_directory() as directory:
            own = _write_temporary(directory, content).encode()
            try:
                return self._exchange_verified(directory.fd, own, plan_id, expected_hash, content)
            except FileNotFoundError:
                return False
            finally:
                left = file_metadata.snapshot(directory.fd, own)
                if left is not None and left.digest in {expected_hash, sha256(content).hexdigest()}:
                    os.unlink(own, dir_fd=directory.fd)
                os.fsync(directory.fd)

    def _exchange_verified(self, where: int, own: bytes, plan_id: str, expected_hash: str, content: bytes) -> bool:
        """Exchange the two files, look at what came out, and exchange them back where it is not what was expected."""
        stored, name = self.read(plan_id), (plan_id + SUFFIX).encode()
        if stored is None or stored.parsed.plan_hash != expected_hash:
            return False
        os.chmod(own, os.stat(name, dir_fd=where, follow_symlinks=False).st_mode & 0o777, dir_fd=where)
        atomic_rename.exchange(where, own, name)
        out = file_metadata.snapshot(where, own)
        if out is not None and out.digest == expected_hash:
            return True
        older = {sha256(content).hexdigest(), out.digest if out is not None else ""}
        for _ in range(_MAX_EXCHANGES):
            atomic_rename.exchange(where, own, name)
            out = file_metadata.snapshot(where, own)
            if out is not None and out.digest in older:
                break
        return False

    def _open_directory(self) -> OpenDirectory:
        return self._files.open_directory(DIRECTORY, _require_path(DIRECTORY))

    def _read_bytes(self, plan_id: str) -> tuple[bytes, str] | None:
        """A plan's bytes and their hash."""
        if not is_plan_id(plan_id):
            return None
        path = DIRECTORY / (plan_id + SUFFIX)
        try:
            with self._files.open_file(path, _require_path(path)) as file:
                return _read_limited(file)
        except errors.SystemError as error:
            if error.error_code in _ABSENT_CODES:
                return None
            raise

    def _plan_file(self, plan_id: str, content: bytes, plan_hash: str) -> parser.StoredPlan:
        kept = self._parsed_by_hash.get((plan_id, plan_hash))
        if kept is None:
            kept = replace(parser.parse(content, plan_id), plan_hash=plan_hash, text="")
            self._parsed_by_hash = _add_bounded(self._parsed_by_hash, (plan_id, plan_hash), kept)
        return parser.StoredPlan(plan_id, content, kept)


def _add_bounded(kept: dict[K, V], key: K, value: V) -> dict[K, V]:
    """A new dictionary, so that readers in other threads keep theirs; the oldest entries go."""
    return {**dict(list(kept.items())[-_MAX_CACHED:]), key: value}


def _require_path(path: RelPath) -> Callable[[RelPath], None]:
    """Refuse what is reached through a link."""

    def judge(real: RelPath) -> None:
        if real != path:
            raise errors.SystemError.tool_failure(
                "INVALID_PATH", human_message="A link stands where plans are kept. Put the file itself there."
            )

    return judge


def _read_limited(file: OpenFile) -> tuple[bytes, str]:
    """As much as a plan may have and one byte more, and the hash of that: a longer file is no plan."""
    head = b""
    while len(head) <= MAX_BYTES and (more := file.read(MAX_BYTES + 1 - len(head))):
        head += more
    return head, sha256(head).hexdigest()


def _write_temporary(directory: OpenDirectory, content: bytes) -> str:
    """The content in a synced file of its own, under a name that no plan has."""
    name = f".{os.urandom(8).hex()}.new"
    try:
        fd = os.open(name, _CREATE_FLAGS, 0o644, dir_fd=directory.fd)
    except OSError as error:
        raise _write_error(error) from error
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(fd)
    except OSError as error:
        os.unlink(name, dir_fd=directory.fd)
        raise _write_error(error) from error
    return name


def _write_error(error: OSError) -> errors.SystemError:
    return errors.SystemError.tool_failure(
        "FILE_WRITE_FAILED",
        human_message="The plan could not be written. Ask a person whether plans/ is writable, then try again.",
        cause=error,
    )
