"""Plan files in `plans/`: list, read, create and replace them.

A plan is read anew on every access, because a person may edit it at any time; name and mtime are not trusted. Parsed
plans are cached, and used again only for the same bytes.
"""

import heapq
import os
import threading
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from hashlib import sha256
from typing import NamedTuple

from kaiza.domain import errors
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.plans import parser
from kaiza.domain.plans.plan import MAX_BYTES, is_plan_id
from kaiza.store.disk import atomic_rename, byte_io, file_metadata, small_files
from kaiza.store.files.confined_root import ConfinedRoot, OpenDirectory, OpenFile

DIRECTORY = RelPath(("plans",))
SUFFIX = ".md"
MAX_PLANS = 10_000
MAX_LISTED = 1000
"""Plans that lists read: those changed last. Any plan can still be named by its id or hash."""
MAX_CACHED_BYTES = 8 << 20
"""Bytes of plan files whose parsed plans are kept: some thousand plans."""
_MAX_HASHES = 256
_MAX_EXCHANGES = 100
# Whatever cannot be opened as a plain file inside the workspace is no plan, rather than an error: fail closed.
_ABSENT_CODES = frozenset({"FILE_NOT_FOUND", "PATH_NOT_FOUND", "FILE_READ_FAILED", "INVALID_PATH", "OUTSIDE_WORKSPACE"})


class PlanFiles:
    """Reader and writer of the plans of a workspace. Links are not followed."""

    def __init__(self, root: ConfinedRoot, on_read: Callable[[parser.StoredPlan], None] = lambda _stored: None) -> None:
        self._root = root
        self._on_read = on_read
        self._stamps: dict[str, tuple[int, ...]] = {}
        self._parsed = _ParsedPlans()
        self._id_by_hash: dict[str, str] = {}

    def plan_ids(self) -> list[str]:
        """Ids of all plans that have a file, sorted; at most MAX_PLANS."""
        try:
            with self._open_directory() as directory:
                stems = [name.removesuffix(SUFFIX) for name in directory.names() if name.endswith(SUFFIX)]
        except errors.SystemError as error:
            if error.error_code in _ABSENT_CODES:
                return []
            raise
        plan_ids = sorted(stem for stem in stems if is_plan_id(stem))[:MAX_PLANS]
        self._parsed.keep_only(plan_ids)
        return plan_ids

    def listed_ids(self) -> list[str]:
        """Ids of the MAX_LISTED plans whose files changed last, sorted."""
        plan_ids = self.plan_ids()
        if len(plan_ids) <= MAX_LISTED:
            return plan_ids
        with self._open_directory() as directory:
            times = {plan_id: _time_of(_stamp_of(directory, plan_id + SUFFIX)) for plan_id in plan_ids}
        return sorted(heapq.nlargest(MAX_LISTED, plan_ids, key=lambda plan_id: times[plan_id]))

    def count_unlisted(self) -> int:
        """Number of plans that lists leave out."""
        return max(0, len(self.plan_ids()) - MAX_LISTED)

    def read(self, plan_id: str) -> parser.StoredPlan | None:
        """Read a plan, sound or not; None if it has no file."""
        read = self._read_bytes(plan_id)
        return None if read is None else self._parse_cached(plan_id, read)

    def read_all(self) -> Iterator[parser.StoredPlan]:
        """The plans that lists contain, sorted by id."""
        for plan_id in self.listed_ids():
            stored = self.read(plan_id)
            if stored is not None:
                yield stored

    def read_changed(self) -> None:
        """Read each plan whose file changed since the last time, so that it is noticed."""
        try:
            with self._open_directory() as directory:
                stamps = {name: _stamp_of(directory, name) for name in directory.names() if name.endswith(SUFFIX)}
        except (OSError, errors.SystemError):
            stamps = {}
        self._stamps = {name: stamp for name, stamp in list(self._stamps.items()) if name in stamps}
        latest = heapq.nlargest(MAX_LISTED, stamps.items(), key=lambda item: _time_of(item[1]))
        for name, stamp in latest:
            if self._stamps.get(name) != stamp:
                self.read(name.removesuffix(SUFFIX))
                self._stamps[name] = stamp  # also of what cannot be read

    def find_by_hash(self, plan_hash: str) -> parser.StoredPlan | None:
        """The plan whose file has this hash now, if any."""
        for plan_id in self._candidate_ids(plan_hash):
            read = self._read_bytes(plan_id)
            if read is not None and read.plan_hash == plan_hash:
                if self._id_by_hash.get(plan_hash) != plan_id:
                    # A new dictionary, less the oldest entry: other threads may be reading this one.
                    latest = list(self._id_by_hash.items())[-_MAX_HASHES:]
                    self._id_by_hash = {**dict(latest), plan_hash: plan_id}
                return self._parse_cached(plan_id, read)
        return None

    def _candidate_ids(self, plan_hash: str) -> Iterator[str]:
        # The directory is listed only if the plan is no longer where it was found last: every call looks its plan up.
        last_id = self._id_by_hash.get(plan_hash)
        if last_id is not None:
            yield last_id
        yield from self.plan_ids()

    def create(self, plan_id: str, content: bytes) -> RelPath:
        """Create a plan file atomically; FILE_ALREADY_EXISTS if there is one with this id."""
        with self._open_directory() as directory:
            temporary = _write_temporary(directory, content)
            try:
                # link, unlike rename, fails if the name is taken: of several processes saving one id, one wins.
                os.link(
                    temporary, plan_id + SUFFIX, src_dir_fd=directory.fd, dst_dir_fd=directory.fd, follow_symlinks=False
                )
            except FileExistsError as error:
                raise errors.SystemError.tool_failure(
                    "FILE_ALREADY_EXISTS",
                    human_message="A plan with this id exists. Choose another plan_id; a revision is a new plan.",
                    cause={"plan_id": plan_id},
                ) from error
            except OSError as error:
                raise _write_error(error) from error
            finally:
                os.unlink(temporary, dir_fd=directory.fd)
            os.fsync(directory.fd)
        self.read(plan_id)  # notices the draft
        return DIRECTORY / (plan_id + SUFFIX)

    def remove_created(self, plan_id: str, content: bytes) -> None:
        """Remove a plan that was just created, unless it was edited since."""
        stored = self.read(plan_id)
        if stored is not None and stored.content == content:
            with self._open_directory() as directory:
                os.unlink(plan_id + SUFFIX, dir_fd=directory.fd)
                os.fsync(directory.fd)

    def replace(self, plan_id: str, expected_hash: str, content: bytes) -> bool:
        """Replace the plan's content if its hash still is `expected_hash`; False, with nothing changed, if not."""
        with self._open_directory() as directory:
            temporary = _write_temporary(directory, content).encode()
            try:
                return self._exchange_verified(directory.fd, temporary, plan_id, expected_hash, content)
            except FileNotFoundError:
                return False
            finally:
                # After an exchange the temporary name may hold an edit of the person: only known bytes are deleted.
                remains = file_metadata.snapshot(directory.fd, temporary)
                if remains is not None and remains.digest in {expected_hash, sha256(content).hexdigest()}:
                    os.unlink(temporary, dir_fd=directory.fd)
                os.fsync(directory.fd)

    def _exchange_verified(
        self, directory: int, temporary: bytes, plan_id: str, expected_hash: str, content: bytes
    ) -> bool:
        """Compare and swap: exchange the two files, verify the one that came out, exchange back if it is unexpected."""
        stored, name = self.read(plan_id), (plan_id + SUFFIX).encode()
        if stored is None or stored.parsed.plan_hash != expected_hash:
            return False
        mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode & 0o777
        os.chmod(temporary, mode, dir_fd=directory)
        atomic_rename.exchange(directory, temporary, name)
        replaced = file_metadata.snapshot(directory, temporary)
        if replaced is not None and replaced.digest == expected_hash:
            return True
        # An editor saved between the check and the exchange. Exchange back, and again while it goes on saving, until
        # what comes out is an older version: then the newest is in place.
        older = {sha256(content).hexdigest(), replaced.digest if replaced is not None else ""}
        for _ in range(_MAX_EXCHANGES):
            atomic_rename.exchange(directory, temporary, name)
            replaced = file_metadata.snapshot(directory, temporary)
            if replaced is not None and replaced.digest in older:
                break
        return False

    def _open_directory(self) -> OpenDirectory:
        return self._root.open_directory(DIRECTORY, _refuse_links(DIRECTORY))

    def _read_bytes(self, plan_id: str) -> "_PlanBytes | None":
        if not is_plan_id(plan_id):
            return None
        path = DIRECTORY / (plan_id + SUFFIX)
        try:
            with self._root.open_file(path, _refuse_links(path)) as file:
                return _PlanBytes(*read_limited(file), file.stamp)
        except errors.SystemError as error:
            if error.error_code in _ABSENT_CODES:
                return None
            raise

    def _parse_cached(self, plan_id: str, read: "_PlanBytes") -> parser.StoredPlan:
        content, plan_hash, self._stamps[plan_id + SUFFIX] = read
        parsed = self._parsed.find(plan_id, plan_hash)
        if parsed is None:
            parsed = replace(parser.parse(content, plan_id), plan_hash=plan_hash, text="")
            self._parsed.add(plan_id, parsed, len(content))
        stored = parser.StoredPlan(plan_id, content, parsed)
        self._on_read(stored)
        return stored


class _ParsedPlans:
    """The last parsed plan of each id, as far as MAX_CACHED_BYTES reach; thread-safe."""

    def __init__(self) -> None:
        self._plans: dict[str, tuple[parser.ParsedPlan, int]] = {}
        self._size = 0
        self._mutex = threading.Lock()  # protects `_size`, and what is added to and removed from `_plans`

    def find(self, plan_id: str, plan_hash: str) -> parser.ParsedPlan | None:
        parsed, _ = self._plans.get(plan_id, (None, 0))
        return parsed if parsed is not None and parsed.plan_hash == plan_hash else None

    def add(self, plan_id: str, parsed: parser.ParsedPlan, size: int) -> None:
        with self._mutex:
            self._remove(plan_id)
            # A full cache takes no more, rather than dropping the oldest: plans are read in order, so the oldest is
            # the one wanted next, and not one would be found again.
            if self._size + size <= MAX_CACHED_BYTES:
                self._plans[plan_id] = (parsed, size)
                self._size += size

    def keep_only(self, plan_ids: Collection[str]) -> None:
        with self._mutex:
            for plan_id in self._plans.keys() - set(plan_ids):
                self._remove(plan_id)

    def _remove(self, plan_id: str) -> None:
        _, size = self._plans.pop(plan_id, (None, 0))
        self._size -= size


class _PlanBytes(NamedTuple):
    content: bytes
    plan_hash: str
    stamp: tuple[int, ...]


def _stamp_of(directory: OpenDirectory, name: str) -> tuple[int, ...]:
    try:
        return byte_io.file_stamp(os.stat(name, dir_fd=directory.fd, follow_symlinks=False))
    except OSError:
        return ()


def _time_of(stamp: tuple[int, ...]) -> int:
    # The time of the last change, which no program can set back as it can the other one.
    return stamp[-1] if stamp else 0


def _refuse_links(path: RelPath) -> Callable[[RelPath], None]:
    """A check that the opened path was reached without a link."""

    def check(real: RelPath) -> None:
        if real != path:
            raise errors.SystemError.tool_failure(
                "INVALID_PATH",
                human_message="A symbolic link is in the place of a plan or of plans/. Replace it with the real file.",
            )

    return check


def read_limited(file: OpenFile) -> tuple[bytes, str]:
    """Up to MAX_BYTES and one byte more, and the hash of that; the extra byte makes the parser refuse the file."""
    content = b""
    while len(content) <= MAX_BYTES and (more := file.read(MAX_BYTES + 1 - len(content))):
        content += more
    return content, sha256(content).hexdigest()


def _write_temporary(directory: OpenDirectory, content: bytes) -> str:
    """Write and fsync a temporary file, under a name that is not a plan id; its name."""
    name = f".{os.urandom(8).hex()}.new"
    try:
        small_files.write_new(name, content, directory.fd, mode=0o644, durable=True)
    except OSError as error:
        raise _write_error(error) from error
    return name


def _write_error(error: OSError) -> errors.SystemError:
    return errors.SystemError.tool_failure(
        "FILE_WRITE_FAILED",
        human_message="The plan could not be written. Ask a person whether plans/ is writable, then try again.",
        cause=error,
    )
