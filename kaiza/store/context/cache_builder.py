"""Builds context caches. A cache is written under a temporary name and then renamed, whole.

Documents are not fsynced one by one: a cache that a power failure damaged is refused by its hashes, and can be built
again.
"""

import os
from contextlib import suppress

from kaiza.domain.caps import MIB
from kaiza.domain.context import cache_format
from kaiza.domain.context.cache_format import CacheEntry
from kaiza.store.context import cache_removal
from kaiza.store.context.source_scan import CacheBuildError, SourceDocument
from kaiza.store.disk import atomic_rename, small_files
from kaiza.store.disk.kaiza_dir import KaizaDir

MAX_DOCUMENTS = 100_000
MAX_TOTAL_BYTES = 1024 * MIB


class CacheBuilder:
    """A new cache under a temporary name. `close` removes it, unless `publish` gave it its own name."""

    def __init__(self, kaiza_dir: KaizaDir) -> None:
        self._home_fd = cache_removal.open_home(kaiza_dir)
        cache_removal.remove_all_leftovers(self._home_fd)
        self._files: dict[str, tuple[CacheEntry, str]] = {}
        self._ids: dict[str, str] = {}
        self._total_bytes = 0
        self._is_published = False
        self._temporary_name, self._directory = cache_removal.create_temporary(self._home_fd)
        os.mkdir(cache_format.DOCUMENTS, 0o700, dir_fd=self._directory.fd)
        self._documents = cache_removal.open_directory(cache_format.DOCUMENTS, self._directory.fd)

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
        with cache_removal.open_removable(self._home_fd, name) as replaced:
            is_replacing = replaced is not None and replace
            if is_replacing:
                self._exchange(name)
            else:  # fails where a directory that is not empty has the name
                self._rename(self._temporary_name, name)
        self._is_published = True
        os.fsync(self._home_fd)
        if is_replacing:
            cache_removal.remove_leftover(self._home_fd, self._temporary_name)

    def close(self) -> None:
        """Close the cache, and remove it unless it is published."""
        if not self._is_published:
            with suppress(OSError):  # the next build tries again
                cache_removal.delete_cache(self._home_fd, self._temporary_name, self._directory)
        self._documents.close()
        self._directory.close()

    def _exchange(self, name: str) -> None:
        """Exchange names with the existing cache, which gets the temporary name."""
        try:
            atomic_rename.exchange(self._home_fd, self._temporary_name.encode(), name.encode())
        except PermissionError:  # no exchange on this file system, and directories have no hard links
            old_name = cache_removal.new_temporary_name()
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
