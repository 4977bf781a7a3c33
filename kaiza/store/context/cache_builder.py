"""Builds and removes context caches. Only a directory that holds nothing but a cache's own files is ever removed.

A cache is written under a temporary name and then renamed, and renamed to one before it is removed, so that readers see
all of it or nothing. Builds and readers lock the directory; a locked one is not deleted until the next build. Documents
are not fsynced one by one: a cache that a power failure damaged is refused by its hashes, and can be built again.
"""

import errno
import fcntl
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from kaiza.domain.caps import MIB
from kaiza.domain.context import cache_format
from kaiza.domain.context.cache_format import CacheEntry
from kaiza.store.context.cache_files import DIRECTORY
from kaiza.store.context.source_scan import CacheBuildError, SourceDocument
from kaiza.store.disk import atomic_rename, small_files
from kaiza.store.disk.kaiza_dir import KaizaDir
from kaiza.store.files.resolved import OwnedDescriptor

MAX_DOCUMENTS = 100_000
MAX_TOTAL_BYTES = 1024 * MIB


class CacheBuilder:
    """A new cache under a temporary name. `close` removes it, unless `publish` gave it its own name."""

    def __init__(self, kaiza_dir: KaizaDir) -> None:
        self._home_fd = open_home(kaiza_dir)
        # Of killed builds, and of caches that were being read when they were replaced or removed.
        for name in filter(_TEMPORARY.fullmatch, os.listdir(self._home_fd)):  # noqa: PTH208  by descriptor
            remove_leftover(self._home_fd, name)
        self._files: dict[str, tuple[CacheEntry, str]] = {}
        self._ids: dict[str, str] = {}
        self._total_bytes = 0
        self._is_published = False
        self._temporary_name, self._directory = create_temporary(self._home_fd)
        os.mkdir(cache_format.DOCUMENTS, 0o700, dir_fd=self._directory.fd)
        self._documents = open_directory(cache_format.DOCUMENTS, self._directory.fd)

    @property
    def count(self) -> int:
        """Number of documents so far."""
        return len(self._ids)

    @property
    def entries(self) -> list[CacheEntry]:
        """The documents so far, sorted by id."""
        return sorted(entry for entry, _ in self._files.values())

    def add(self, document: SourceDocument) -> None:
        """Write a document; CacheBuildError if it conflicts with the others or exceeds a limit."""
        entry = CacheEntry(document.document_id, cache_format.hash_content(document.content))
        self._require_distinct(entry, document.path)
        self._total_bytes += len(document.content)
        if len(self._ids) >= MAX_DOCUMENTS or self._total_bytes > MAX_TOTAL_BYTES:
            raise CacheBuildError(f"There are more than {MAX_DOCUMENTS:,} documents or 1 GiB. Build several caches.")
        encoded = cache_format.encode_document(entry, document.name, document.content.decode())
        if len(encoded) > cache_format.MAX_DOCUMENT_BYTES:
            raise CacheBuildError(f"{document.path} has too many control characters to be packed. Leave it out.")
        small_files.write_new(entry.file_name, encoded, self._documents.fd, durable=False)
        self._files[entry.file_name] = entry, document.path
        self._ids[entry.document_id] = document.path

    def seal(self, created_at: str) -> str:
        """Write manifest and index; return the `cache_version`."""
        entries = self.entries
        manifest = cache_format.encode_manifest(entries, created_at)
        if cache_format.is_too_large(manifest):
            raise CacheBuildError("The paths of the documents are too long for one cache. Build several.")
        index = cache_format.encode_index(entries)
        small_files.write_new(cache_format.INDEX, index, self._directory.fd, durable=False)
        small_files.write_new(cache_format.MANIFEST, manifest, self._directory.fd, durable=False)
        return cache_format.hash_entries(entries)

    def publish(self, name: str, *, replace: bool) -> None:
        """Give the cache its name; with `replace`, an existing cache of that name is replaced."""
        with open_removable(self._home_fd, name) as replaced:
            is_replacing = replaced is not None and replace
            if is_replacing:
                self._exchange(name)
            else:  # fails where a directory that is not empty has the name
                self._rename(self._temporary_name, name)
        self._is_published = True
        os.fsync(self._home_fd)
        if is_replacing:
            remove_leftover(self._home_fd, self._temporary_name)

    def close(self) -> None:
        """Close the cache, and remove it unless it is published."""
        if not self._is_published:
            with suppress(OSError):  # the next build tries again
                delete_cache(self._home_fd, self._temporary_name, self._directory)
        self._documents.close()
        self._directory.close()

    def _exchange(self, name: str) -> None:
        """Exchange names with the existing cache, which gets the temporary name."""
        try:
            atomic_rename.exchange(self._home_fd, self._temporary_name.encode(), name.encode())
        except PermissionError:  # no exchange on this file system, and directories have no hard links
            old_name = new_temporary_name()
            self._rename(name, old_name)
            try:
                self._rename(self._temporary_name, name)
            except OSError:
                self._rename(old_name, name)
                raise
            self._temporary_name = old_name

    def _rename(self, old: str, new: str) -> None:
        os.rename(old, new, src_dir_fd=self._home_fd, dst_dir_fd=self._home_fd)

    def _require_distinct(self, entry: CacheEntry, path: str) -> None:
        if not cache_format.is_document_id(entry.document_id):
            raise CacheBuildError(f"{path} has a name that cannot be an id. Rename it.")
        if entry.document_id in self._ids:
            other = self._ids[entry.document_id]
            raise CacheBuildError(f"{other} and {path} would have the same id. Rename one, or leave it out.")
        if entry.file_name in self._files:
            _, other = self._files[entry.file_name]
            raise CacheBuildError(f"{other} and {path} have the same content. Leave one of them out.")


_TEMPORARY = re.compile(r"\.new-[0-9a-f]{16}")
_OWN_FILES = frozenset({cache_format.MANIFEST, cache_format.INDEX})
_NOT_A_DIRECTORY = {errno.ENOTDIR, errno.ELOOP}


def open_home(kaiza_dir: KaizaDir) -> int:
    """Descriptor of `.kaiza/context/`, which is created if missing; CacheBuildError if it is not a directory."""
    with _as_build_error():
        return kaiza_dir.open_directory(DIRECTORY)


def has_cache(kaiza_dir: KaizaDir, name: str) -> bool:
    """Whether there is a cache of this name; CacheBuildError if its directory holds something else too."""
    with _as_build_error():
        home_fd = kaiza_dir.find_directory(DIRECTORY)
    if home_fd is None:
        return False
    with open_removable(home_fd, name) as found:
        return found is not None


def remove_cache(kaiza_dir: KaizaDir, name: str) -> None:
    """Remove a cache; CacheBuildError if its directory holds something else too."""
    home_fd = open_home(kaiza_dir)
    with open_removable(home_fd, name) as found:
        if found is None:
            return
        temporary_name = new_temporary_name()
        os.rename(name, temporary_name, src_dir_fd=home_fd, dst_dir_fd=home_fd)
    os.fsync(home_fd)
    remove_leftover(home_fd, temporary_name)


def new_temporary_name() -> str:
    """A random name under which a cache is built or removed. No cache can have it."""
    return f".new-{secrets.token_hex(8)}"


def create_temporary(home_fd: int) -> tuple[str, OwnedDescriptor]:
    """Create a directory under a temporary name; it is locked while the descriptor is open."""
    while True:
        name = new_temporary_name()
        os.mkdir(name, 0o700, dir_fd=home_fd)
        with suppress(FileNotFoundError):
            directory = open_directory(name, home_fd)
            fcntl.flock(directory.fd, fcntl.LOCK_EX)
            # Another build may have removed the directory before it was locked.
            if os.fstat(directory.fd).st_nlink:
                return name, directory
            directory.close()


def remove_leftover(home_fd: int, name: str) -> None:
    """Remove a cache that has a temporary name, unless it is locked. If that fails, it keeps this name."""
    with suppress(OSError, CacheBuildError), open_removable(home_fd, name) as found:
        if found is not None:
            fcntl.flock(found.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            delete_cache(home_fd, name, found)


@contextmanager
def open_removable(home_fd: int, name: str) -> Iterator[OwnedDescriptor | None]:
    """The directory of this name if it holds nothing but a cache; None if there is none. Otherwise CacheBuildError."""
    with ExitStack() as opened:
        try:
            directory = opened.enter_context(open_directory(name, home_fd))
        except FileNotFoundError:
            yield None
            return
        except OSError as error:
            if error.errno not in _NOT_A_DIRECTORY:
                raise
            raise _not_a_cache(name) from error
        if not _holds_only_a_cache(directory):
            raise _not_a_cache(name)
        yield directory


def delete_cache(home_fd: int, name: str, directory: OwnedDescriptor) -> None:
    """Delete the files of a cache, and its directory."""
    # The manifest first: without it, an interrupted deletion leaves no sound cache.
    for each in (cache_format.MANIFEST, cache_format.INDEX):
        with suppress(FileNotFoundError):
            os.unlink(each, dir_fd=directory.fd)
    with suppress(FileNotFoundError):
        with open_directory(cache_format.DOCUMENTS, directory.fd) as documents:
            for each in os.listdir(documents.fd):  # noqa: PTH208  by descriptor
                os.unlink(each, dir_fd=documents.fd)
        os.rmdir(cache_format.DOCUMENTS, dir_fd=directory.fd)
    os.rmdir(name, dir_fd=home_fd)


def open_directory(name: str, dir_fd: int) -> OwnedDescriptor:
    """Open a directory by its name, never through a link."""
    return OwnedDescriptor(small_files.open_directory(name, dir_fd))


@contextmanager
def _as_build_error() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in _NOT_A_DIRECTORY:
            raise
        raise CacheBuildError(
            f".kaiza/{DIRECTORY} is not a directory. Move it away, then run the command again."
        ) from error


def _holds_only_a_cache(directory: OwnedDescriptor) -> bool:
    with os.scandir(directory.fd) as entries:
        for entry in entries:
            if entry.name == cache_format.DOCUMENTS and entry.is_dir(follow_symlinks=False):
                continue
            if entry.name not in _OWN_FILES or not entry.is_file(follow_symlinks=False):
                return False
    try:
        with open_directory(cache_format.DOCUMENTS, directory.fd) as documents, os.scandir(documents.fd) as entries:
            is_name = cache_format.DOCUMENT_NAME.fullmatch
            return all(is_name(entry.name) and entry.is_file(follow_symlinks=False) for entry in entries)
    except FileNotFoundError:
        return True


def _not_a_cache(name: str) -> CacheBuildError:
    return CacheBuildError(
        f".kaiza/{DIRECTORY}/{name} holds something other than a cache, so it was left alone. Move it away, then run "
        "the command again."
    )
