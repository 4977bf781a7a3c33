"""Builds and removes context caches. A cache is written under a temporary name and then renamed, whole.

Documents are not fsynced one by one: a cache that a power cut tore is refused by its hashes, and can be built again.
"""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from kaiza.domain.caps import MIB
from kaiza.domain.context import cache_format
from kaiza.domain.context.cache_format import CacheEntry
from kaiza.store.context.cache_files import DIRECTORY, DIRECTORY_FLAGS
from kaiza.store.context.source_scan import CacheBuildError, SourceDocument
from kaiza.store.disk.byte_io import write_all
from kaiza.store.disk.kaiza_dir import KaizaDir
from kaiza.store.files.resolved import OwnedDescriptor

MAX_DOCUMENTS = 100_000
MAX_TOTAL_BYTES = 1024 * MIB
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OWN_NAMES = frozenset({cache_format.MANIFEST, cache_format.INDEX, cache_format.DOCUMENTS})


class CacheBuilder:
    """A new cache under a temporary name. `close` removes it, unless `publish` gave it its own name."""

    def __init__(self, kaiza_dir: KaizaDir) -> None:
        self._home_fd = kaiza_dir.open_directory(DIRECTORY)
        self._temporary_name = f".new-{secrets.token_hex(8)}"
        self._files: dict[str, tuple[CacheEntry, str]] = {}
        self._ids: dict[str, str] = {}
        self._total_bytes = 0
        os.mkdir(self._temporary_name, 0o700, dir_fd=self._home_fd)
        self._directory = _open_directory(self._temporary_name, self._home_fd)
        os.mkdir(cache_format.DOCUMENTS, 0o700, dir_fd=self._directory.fd)
        self._documents = _open_directory(cache_format.DOCUMENTS, self._directory.fd)

    @property
    def count(self) -> int:
        """Number of documents so far."""
        return len(self._ids)

    @property
    def entries(self) -> list[CacheEntry]:
        """The documents so far, sorted by id."""
        return sorted(entry for entry, _ in self._files.values())

    def add(self, document: SourceDocument) -> None:
        """Write a document; CacheBuildError if it cannot be in one cache with the others."""
        entry = CacheEntry(document.document_id, cache_format.hash_content(document.content))
        self._require_distinct(entry, document.path)
        self._total_bytes += len(document.content)
        if len(self._ids) >= MAX_DOCUMENTS or self._total_bytes > MAX_TOTAL_BYTES:
            raise CacheBuildError(f"There are more than {MAX_DOCUMENTS:,} documents or 1 GiB. Build several caches.")
        encoded = cache_format.encode_document(entry, document.name, document.content.decode())
        if len(encoded) > cache_format.MAX_DOCUMENT_BYTES:
            raise CacheBuildError(f"{document.path} has too many control characters to be packed. Leave it out.")
        _write_new(self._documents.fd, entry.file_name, encoded)
        self._files[entry.file_name] = entry, document.path
        self._ids[entry.document_id] = document.path

    def seal(self, created_at: str) -> str:
        """Write manifest and index; return the `cache_version`."""
        entries = self.entries
        manifest = cache_format.encode_manifest(entries, created_at)
        if len(manifest) > cache_format.MAX_MANIFEST_BYTES:
            raise CacheBuildError("The paths of the documents are too long for one cache. Build several.")
        _write_new(self._directory.fd, cache_format.INDEX, cache_format.encode_index(entries))
        _write_new(self._directory.fd, cache_format.MANIFEST, manifest)
        return cache_format.hash_entries(entries)

    def publish(self, name: str, *, replace: bool) -> None:
        """Give the cache its name; with `replace`, in place of the cache that has it."""
        with _open_removable(self._home_fd, name) as replaced:
            if replaced is not None and replace:
                self._replace(name, replaced)
            else:  # fails where a directory that is not empty has the name
                os.rename(self._temporary_name, name, src_dir_fd=self._home_fd, dst_dir_fd=self._home_fd)
        os.fsync(self._home_fd)

    def close(self) -> None:
        """Close the cache, and remove it unless it is published."""
        with suppress(FileNotFoundError), _open_removable(self._home_fd, self._temporary_name) as left:
            if left is not None:
                _delete_cache(self._home_fd, self._temporary_name, left)
        self._documents.close()
        self._directory.close()

    def _replace(self, name: str, replaced: OwnedDescriptor) -> None:
        old_name = f".old-{secrets.token_hex(8)}"
        os.rename(name, old_name, src_dir_fd=self._home_fd, dst_dir_fd=self._home_fd)
        try:
            os.rename(self._temporary_name, name, src_dir_fd=self._home_fd, dst_dir_fd=self._home_fd)
        except OSError:
            os.rename(old_name, name, src_dir_fd=self._home_fd, dst_dir_fd=self._home_fd)
            raise
        _delete_cache(self._home_fd, old_name, replaced)

    def _require_distinct(self, entry: CacheEntry, path: str) -> None:
        if not cache_format.is_document_id(entry.document_id):
            raise CacheBuildError(f"{path} has a name that no document can have. Rename it.")
        if entry.document_id in self._ids:
            other = self._ids[entry.document_id]
            raise CacheBuildError(f"{other} and {path} would have the same id. Rename one, or leave it out.")
        if entry.file_name in self._files:
            _, other = self._files[entry.file_name]
            raise CacheBuildError(f"{other} and {path} have the same content. Leave one of them out.")


def has_cache(kaiza_dir: KaizaDir, name: str) -> bool:
    """Whether there is a cache of this name; CacheBuildError if its directory holds something else too."""
    home_fd = kaiza_dir.find_directory(DIRECTORY)
    if home_fd is None:
        return False
    with _open_removable(home_fd, name) as found:
        return found is not None


def remove_cache(kaiza_dir: KaizaDir, name: str) -> None:
    """Remove a cache; CacheBuildError if its directory holds something else too."""
    home_fd = kaiza_dir.open_directory(DIRECTORY)
    with _open_removable(home_fd, name) as found:
        if found is not None:
            _delete_cache(home_fd, name, found)
            os.fsync(home_fd)


@contextmanager
def _open_removable(home_fd: int, name: str) -> Iterator[OwnedDescriptor | None]:
    """The directory of this name if it holds nothing but a cache; None if there is none. Otherwise CacheBuildError."""
    with ExitStack() as opened:
        try:
            directory = opened.enter_context(_open_directory(name, home_fd))
        except FileNotFoundError:
            yield None
            return
        except OSError as error:
            if error.errno not in {errno.ENOTDIR, errno.ELOOP}:
                raise
            raise _not_a_cache(name) from error
        if not set(os.listdir(directory.fd)) <= _OWN_NAMES or not _has_only_documents(directory):  # noqa: PTH208  by descriptor
            raise _not_a_cache(name)
        yield directory


def _has_only_documents(directory: OwnedDescriptor) -> bool:
    try:
        with _open_directory(cache_format.DOCUMENTS, directory.fd) as documents:
            return all(map(cache_format.DOCUMENT_NAME.fullmatch, os.listdir(documents.fd)))  # noqa: PTH208  by descriptor
    except FileNotFoundError:
        return True


def _delete_cache(home_fd: int, name: str, directory: OwnedDescriptor) -> None:
    # The manifest first: without it, what an interruption leaves is no sound cache.
    for each in (cache_format.MANIFEST, cache_format.INDEX):
        with suppress(FileNotFoundError):
            os.unlink(each, dir_fd=directory.fd)
    with suppress(FileNotFoundError):
        with _open_directory(cache_format.DOCUMENTS, directory.fd) as documents:
            for each in os.listdir(documents.fd):  # noqa: PTH208  by descriptor
                os.unlink(each, dir_fd=documents.fd)
        os.rmdir(cache_format.DOCUMENTS, dir_fd=directory.fd)
    os.rmdir(name, dir_fd=home_fd)


def _not_a_cache(name: str) -> CacheBuildError:
    return CacheBuildError(
        f".kaiza/context/{name} holds something else than a cache, so it was left alone. Look at it, and move it away."
    )


def _open_directory(name: str, dir_fd: int) -> OwnedDescriptor:
    return OwnedDescriptor(os.open(name, DIRECTORY_FLAGS, dir_fd=dir_fd))


def _write_new(dir_fd: int, name: str, content: bytes) -> None:
    with OwnedDescriptor(os.open(name, _CREATE, 0o600, dir_fd=dir_fd)) as file:
        write_all(file.fd, [content])
