"""Content-addressed store of pre-images, and of what changes wrote. Blobs are immutable and verified on read.

Small contents are compressed (`<hash>.z`). Large ones are stored as they are (`<hash>`), mostly by renaming the
replaced file itself, so that replacing or deleting a large file copies nothing.
"""

import hashlib
import os
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import chain

from kaiza.domain import errors
from kaiza.domain.plain_values import describe_exception
from kaiza.store.disk import small_files
from kaiza.store.disk.byte_io import MAX_PACKED_BYTES, has_no_writer, hash_content, read_all, update_hash, write_all
from kaiza.store.disk.disk_reserve import FULL_DISK_ERRNOS
from kaiza.store.disk.fsync_batch import FsyncBatch
from kaiza.store.disk.kaiza_dir import KaizaDir

# zlib's default memory level takes longer to set up than to use on a source file, and packs it less than 1 % smaller.
COMPRESSION_LEVEL, MEMORY_LEVEL, MIN_WINDOW_BITS = 1, 6, 9
PACKED_SUFFIX = ".z"
MAX_COMPRESSED_COPY = 1 << 16
"""Larger contents that a change wrote are stored as they are: to compress 1 MiB takes as long as a whole change."""


@dataclass(frozen=True, slots=True)
class BlobStore:
    """Blobs in `.kaiza/objects`, one directory for all: file systems find a name among a million."""

    kaiza_dir: KaizaDir

    def has(self, digest: str) -> bool:
        """Whether a blob of that hash exists. Its content is not verified."""
        return self._blob_file_size(digest + PACKED_SUFFIX) is not None or self._blob_file_size(digest) is not None

    def size(self, digest: str) -> int | None:
        """Size of the content in bytes; None where there is no such blob. FILE_READ_FAILED for a damaged small one."""
        size = self._blob_file_size(digest)
        is_packed = self._blob_file_size(digest + PACKED_SUFFIX) is not None
        if is_packed or (size is not None and size <= MAX_PACKED_BYTES):
            return sum(map(len, self.chunks(digest)))
        return size

    def chunks(self, digest: str, most: int = sys.maxsize) -> Iterator[bytes]:
        """Yield the content of a blob in chunks; FILE_READ_FAILED after the last one where the hash does not match.

        A content longer than `most` bytes is FILE_READ_FAILED too, before more than that is yielded.
        """
        packed = self._blob_file_size(digest + PACKED_SUFFIX) is not None
        dir_fd = self.kaiza_dir.find_directory("objects")
        check = hashlib.sha256()
        try:
            if dir_fd is None:
                raise FileNotFoundError
            fd = small_files.open_for_reading(digest + PACKED_SUFFIX if packed else digest, dir_fd)
            try:
                for chunk in _decompress_file(fd) if packed else read_all(fd):
                    most -= len(chunk)
                    if most < 0:
                        raise _lost_error(digest)
                    check.update(chunk)
                    yield chunk
            finally:
                os.close(fd)
        except (OSError, zlib.error) as error:
            raise _lost_error(digest, error) from error
        if check.hexdigest() != digest:
            raise _lost_error(digest)

    def store(self, digest: str, content: Iterable[bytes], *, pack: bool, batch: FsyncBatch) -> None:
        """Write a blob; it is on disk once `batch` is synced. HASH_MISMATCH where the content has another hash."""
        dir_fd = self.kaiza_dir.open_directory("objects")
        # An existing blob is only reused after it was verified: a damaged one is written anew. It is fsynced again,
        # because the change that wrote it may not have come to its own sync.
        fd = None
        for name in (digest + PACKED_SUFFIX, digest) if pack else ():
            fd = _open_if_sound(name, digest, dir_fd) if fd is None else fd
        batch.add(_write_blob(digest, content, dir_fd, pack=pack) if fd is None else fd)
        batch.add_borrowed(dir_fd)

    def store_copy(self, digest: str, content: bytes) -> None:
        """Write a blob without fsync unless there is one; nothing for a content over MAX_PACKED_BYTES.

        For contents that only a review shows. A later pre-image with the same hash is verified and fsynced.
        """
        if len(content) <= MAX_PACKED_BYTES and not self.has(digest):
            dir_fd = self.kaiza_dir.open_directory("objects")
            os.close(_write_blob(digest, [content], dir_fd, pack=len(content) <= MAX_COMPRESSED_COPY))

    def adopt(self, digest: str, dir_fd: int, name: bytes) -> None:
        """Store an existing file and remove its name. A large file without a writer is renamed, not copied."""
        fd = small_files.open_for_reading(name, dir_fd)
        try:
            small = os.fstat(fd).st_size <= MAX_PACKED_BYTES
            # A process that still has the file open for writing could change a blob that was only renamed.
            if small or not has_no_writer(fd) or not self._try_move(digest, dir_fd, name):
                self._copy_or_move(digest, fd, dir_fd, name, pack=small)
        finally:
            os.close(fd)

    def _copy_or_move(self, digest: str, fd: int, dir_fd: int, name: bytes, *, pack: bool) -> None:
        """Store a copy of the file and remove its name; where the disk is full, rename the file."""
        try:
            with closing(FsyncBatch()) as batch:
                self.store(digest, read_all(fd), pack=pack, batch=batch)
                batch.sync()
            os.unlink(name, dir_fd=dir_fd)  # only now: the copy is on disk
        except OSError as error:
            if error.errno not in FULL_DISK_ERRNOS or not self._try_move(digest, dir_fd, name):
                raise

    def _try_move(self, digest: str, dir_fd: int, name: bytes) -> bool:
        objects_fd = self.kaiza_dir.open_directory("objects")
        try:
            os.rename(name, digest, src_dir_fd=dir_fd, dst_dir_fd=objects_fd)
        except OSError:  # `.kaiza` may be on another file system
            return False
        os.fsync(objects_fd)
        return True

    def _blob_file_size(self, name: str) -> int | None:
        dir_fd = self.kaiza_dir.find_directory("objects")
        if dir_fd is None:
            return None
        try:
            return os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_size
        except FileNotFoundError:
            return None


def _open_if_sound(name: str, digest: str, dir_fd: int) -> int | None:
    try:
        fd = small_files.open_for_reading(name, dir_fd)
    except FileNotFoundError:
        return None
    found = None
    with suppress(OSError, zlib.error):
        if name != digest:
            found = hash_content(_decompress_file(fd))
        elif os.fstat(fd).st_size <= MAX_PACKED_BYTES:  # a planted file of any size may have the name
            found = hash_content(read_all(fd))
    if found == digest:
        with suppress(PermissionError):  # of another account
            os.utime(fd)  # used again: a cleanup that is under way leaves it alone
        return fd
    os.close(fd)
    return None


def _write_blob(digest: str, content: Iterable[bytes], dir_fd: int, *, pack: bool) -> int:
    """Write a blob and return its descriptor, not synced yet."""
    check = hashlib.sha256()
    # Written under a random name and renamed when complete: a crash leaves no partial blob under a hash.
    draft = f".{digest}.{os.urandom(6).hex()}"
    fd = small_files.create(draft, dir_fd, mode=0o400)
    try:
        hashed = update_hash(check, content)
        write_all(fd, _compress_chunks(hashed) if pack else hashed)
        if check.hexdigest() != digest:
            raise errors.SystemError.tool_failure(  # noqa: TRY301 (one cleanup for every failure)
                "HASH_MISMATCH",
                human_message="The file changed while it was being read. Read it again.",
                cause={"expected_hash": digest, "current_hash": check.hexdigest()},
            )
        os.rename(draft, digest + PACKED_SUFFIX if pack else digest, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
    except BaseException:
        os.close(fd)
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=dir_fd)
        raise
    return fd


def _compress_chunks(content: Iterable[bytes]) -> Iterator[bytes]:
    chunks = iter(content)
    first = next(chunks, b"")
    # A window no larger than the content: to allocate the default of 32 KiB takes longer than to pack a source file.
    window = min(max(len(first).bit_length(), MIN_WINDOW_BITS), zlib.MAX_WBITS)
    compressor = zlib.compressobj(COMPRESSION_LEVEL, wbits=window, memLevel=MEMORY_LEVEL)
    for chunk in chain((first,), chunks):
        yield compressor.compress(chunk)
    yield compressor.flush()


def _decompress_file(fd: int) -> Iterator[bytes]:
    """Yield the content of a packed file; `zlib.error` where it is longer than anything that is packed here."""
    # Both bounds are against a planted blob: a decompression bomb, or endless padding that decompresses to nothing.
    if os.fstat(fd).st_size > 2 * MAX_PACKED_BYTES:
        raise zlib.error
    decompressor, remaining = zlib.decompressobj(), MAX_PACKED_BYTES
    for chunk in read_all(fd):
        piece = decompressor.decompress(chunk, remaining + 1)
        remaining -= len(piece)
        if remaining < 0:
            raise zlib.error
        yield piece


def _lost_error(digest: str, error: Exception | None = None) -> errors.SystemError:
    return errors.SystemError.tool_failure(
        "FILE_READ_FAILED",
        human_message="The stored earlier content is missing or damaged. It cannot be restored.",
        cause={**(describe_exception(error) if error else {}), "hash": digest},
    )
