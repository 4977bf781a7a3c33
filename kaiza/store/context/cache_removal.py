"""Removes context caches. Only a directory that holds nothing but a cache's own files is touched.

A cache is renamed before it is removed, so that readers see all of it or nothing. Builds write under such a temporary
name, too. Builds and readers lock the directory. A locked directory is not deleted until the next build.
"""

import errno
import fcntl
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from kaiza.domain.context import cache_format
from kaiza.store.context.cache_files import DIRECTORY
from kaiza.store.context.source_scan import CacheBuildError
from kaiza.store.disk import small_files
from kaiza.store.disk.kaiza_dir import KaizaDir
from kaiza.store.files.resolved import OwnedDescriptor

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


def remove_all_leftovers(home_fd: int) -> None:
    """Remove the leftovers of killed builds, and caches that were being read when they were replaced or removed."""
    for name in filter(_TEMPORARY.fullmatch, os.listdir(home_fd)):
        remove_leftover(home_fd, name)


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
        return all(map(_is_own_entry, entries)) and _has_only_documents(directory)


def _is_own_entry(entry: os.DirEntry[str]) -> bool:
    if entry.name == cache_format.DOCUMENTS:
        return entry.is_dir(follow_symlinks=False)
    return entry.name in _OWN_FILES and entry.is_file(follow_symlinks=False)


def _has_only_documents(directory: OwnedDescriptor) -> bool:
    try:
        with open_directory(cache_format.DOCUMENTS, directory.fd) as documents, os.scandir(documents.fd) as entries:
            return all(map(_is_document, entries))
    except FileNotFoundError:
        return True


def _is_document(entry: os.DirEntry[str]) -> bool:
    return cache_format.DOCUMENT_NAME.fullmatch(entry.name) is not None and entry.is_file(follow_symlinks=False)


def _not_a_cache(name: str) -> CacheBuildError:
    return CacheBuildError(
        f".kaiza/{DIRECTORY}/{name} holds something other than a cache, so it was left alone. Move it away, then run "
        "the command again."
    )
