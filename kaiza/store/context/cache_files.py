"""Reads context caches below `.kaiza/context/`. Every name is opened from its directory, and no link is followed.

A cache's files are untrusted: only regular files up to a size limit are read, and opening one never blocks.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice

from kaiza.domain import errors
from kaiza.domain.context import cache_format
from kaiza.domain.context.arguments import cache_missing, is_cache_name
from kaiza.domain.context.cache_format import CacheEntry, Manifest, cache_invalid
from kaiza.store.disk import small_files
from kaiza.store.disk.byte_io import read_range
from kaiza.store.disk.kaiza_dir import NAME as KAIZA_NAME
from kaiza.store.files.resolved import OwnedDescriptor

DIRECTORY = "context"
_UNREACHABLE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG}


@dataclass(slots=True)
class OpenCache(OwnedDescriptor):
    """The directory of one cache. Everything read is verified; CONTEXT_CACHE_INVALID if it is not sound."""

    name: str

    def read_manifest(self) -> Manifest:
        """The manifest, checked against the index and the names of the files."""
        manifest = cache_format.parse_manifest(
            _read_file(self.fd, cache_format.MANIFEST, cache_format.MAX_MANIFEST_BYTES)
        )
        index = _read_file(self.fd, cache_format.INDEX, cache_format.MAX_MANIFEST_BYTES)
        cache_format.require_index(index, manifest.entries)
        # One name more than there are entries shows that there are too many.
        most = len(manifest.entries) + 1
        with self._open_documents() as documents, _as_cache_errors(), os.scandir(documents.fd) as entries:
            names = {each.name for each in islice(entries, most)}
        if names != {entry.file_name for entry in manifest.entries}:
            raise cache_invalid("files")
        return manifest

    def read_documents(self, manifest: Manifest) -> Iterator[tuple[CacheEntry, str]]:
        """Each document of the manifest with its content."""
        if not manifest.entries:
            return
        with self._open_documents() as documents:
            for entry in manifest.entries:
                content = _read_file(documents.fd, entry.file_name, cache_format.MAX_DOCUMENT_BYTES)
                yield entry, cache_format.parse_document(content, entry)

    def read_document(self, entry: CacheEntry) -> str:
        """The content of one document."""
        return next(text for _, text in self.read_documents(Manifest("", (entry,))))

    def count_bytes(self) -> int:
        """Size of the files in the cache's own directory, without its documents."""
        with _as_cache_errors(), os.scandir(self.fd) as entries:
            return sum(
                each.stat(follow_symlinks=False).st_size for each in entries if each.is_file(follow_symlinks=False)
            )

    def _open_documents(self) -> OwnedDescriptor:
        with _as_cache_errors():
            return OwnedDescriptor(small_files.open_directory(cache_format.DOCUMENTS, self.fd))


@dataclass(frozen=True, slots=True)
class ContextCaches:
    """The caches of one workspace, below a descriptor of its root."""

    root_fd: int

    def open_cache(self, name: str) -> OpenCache:
        """Open the directory of a cache; CONTEXT_CACHE_MISSING if it cannot be reached."""
        try:
            with self._open_home() as home:
                cache = OpenCache(small_files.open_directory(name, home.fd), name)
        except OSError as error:
            raise (cache_missing() if error.errno in _UNREACHABLE else io_error(error)) from error
        # While it is held, the files are not deleted, even if the cache is replaced or removed.
        with suppress(OSError):
            fcntl.flock(cache.fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return cache

    def list_caches(self) -> list[str]:
        """Names of the directories that may be caches, sorted."""
        try:
            with self._open_home() as home, os.scandir(home.fd) as entries:
                return sorted(
                    each.name for each in entries if is_cache_name(each.name) and each.is_dir(follow_symlinks=False)
                )
        except OSError as error:
            if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}:
                return []
            raise io_error(error) from error

    def has_manifest(self, name: str) -> bool:
        """Whether a cache has a manifest, sound or not; False if it cannot be reached, or is not there any more."""
        try:
            with self.open_cache(name) as cache:
                status = os.stat(cache_format.MANIFEST, dir_fd=cache.fd, follow_symlinks=False)
        except OSError:
            return False
        except errors.SystemError as error:
            if error.error_code != "CONTEXT_CACHE_MISSING":
                raise
            return False
        return stat.S_ISREG(status.st_mode)

    def _open_home(self) -> OwnedDescriptor:
        with ExitStack() as opened:
            kaiza_fd = small_files.open_directory(KAIZA_NAME, self.root_fd)
            opened.callback(os.close, kaiza_fd)
            return OwnedDescriptor(small_files.open_directory(DIRECTORY, kaiza_fd))


def io_error(error: OSError) -> errors.SystemError:
    """The error for a cache that exists but cannot be read."""
    return errors.SystemError.from_unknown(
        error,
        error_code="CONTEXT_IO_ERROR",
        human_message="The context cache could not be read. Check its permissions and the disk, then try again.",
    )


@contextmanager
def _as_cache_errors() -> Iterator[None]:
    """Turn an OSError about a cache's file into the error of a context tool."""
    try:
        yield
    except OSError as error:
        is_unsound = isinstance(error, FileNotFoundError | NotADirectoryError | small_files.NotRegularError)
        raise (cache_invalid("files") if is_unsound or error.errno == errno.ELOOP else io_error(error)) from error


def _read_file(dir_fd: int, name: str, most: int) -> bytes:
    """The content of a regular file; CONTEXT_CACHE_INVALID if it is something else, or longer than `most` bytes."""
    with _as_cache_errors(), OwnedDescriptor(small_files.open_for_reading(name, dir_fd)) as file:
        status = os.fstat(file.fd)
        if status.st_size > most:
            raise cache_invalid("files")
        content = read_range(file.fd, 0, status.st_size)
        # A file that is being written may have changed its size.
        if len(content) != os.fstat(file.fd).st_size:
            raise cache_invalid("files")
        return content
