"""What was there before, under the hash of its bytes: written once, never changed, checked whenever it is read.

Small contents are compressed (`<hash>.z`); large ones are kept as they are (`<hash>`), mostly by taking the file itself
over, so that replacing or deleting a large file copies nothing.
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
from kaiza.store.disk.byte_io import MAX_PACKED_BYTES, has_no_writer, read_all, update_hash, write_all
from kaiza.store.disk.fsync_batch import FsyncBatch
from kaiza.store.disk.kaiza_dir import KaizaDir

COMPRESSION_LEVEL, MEMORY_LEVEL, MIN_WINDOW_BITS = 1, 6, 9
PACKED_SUFFIX = ".z"
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class BlobStore:
    """The store of contents."""

    kaiza_dir: KaizaDir

    def has(self, digest: str) -> bool:
        """Whether a content of that hash is kept, sound or not."""
        return self._blob_file_size(digest + PACKED_SUFFIX) is not None or self._blob_file_size(digest) is not None

    def size(self, digest: str) -> int | None:
        """How long the content of that hash is; None where it is not kept."""
        if not self.has(digest):
            return None
        bare = self._blob_file_size(digest) if self._blob_file_size(digest + PACKED_SUFFIX) is None else None
        return sum(map(len, self.chunks(digest))) if bare is None else bare

    def chunks(self, digest: str, most: int = sys.maxsize) -> Iterator[bytes]:
        """Give the content of a hash, a chunk at a time; FILE_READ_FAILED at its end if it is another.

        Of one that is longer than `most`, no more than that is given, and it counts as lost too.
        """
        packed = self._blob_file_size(digest + PACKED_SUFFIX) is not None
        home = self.kaiza_dir.find_directory("objects")
        check = hashlib.sha256()
        try:
            if home is None:
                raise FileNotFoundError
            fd = os.open(digest + PACKED_SUFFIX if packed else digest, _OPEN, dir_fd=home)
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
            raise _lost_error(digest) from error
        if check.hexdigest() != digest:
            raise _lost_error(digest)

    def store(self, digest: str, content: Iterable[bytes], *, pack: bool, batch: FsyncBatch) -> None:
        """Keep a content under its hash, on disk once `batch` is; another content is HASH_MISMATCH."""
        where = self.kaiza_dir.open_directory("objects")
        fd = _open_sound_blob(digest, where) if pack else None
        batch.add(_write_blob(digest, content, where, pack=pack) if fd is None else fd)
        batch.add_borrowed(where)

    def adopt(self, digest: str, dir_fd: int, name: bytes) -> None:
        """Keep a file under its hash and take its name away; where nobody writes it, the file itself is kept."""
        fd = os.open(name, _OPEN, dir_fd=dir_fd)
        try:
            small = os.fstat(fd).st_size <= MAX_PACKED_BYTES
            if small or not has_no_writer(fd) or not self._try_move(digest, dir_fd, name):
                with closing(FsyncBatch()) as batch:
                    self.store(digest, read_all(fd), pack=small, batch=batch)
                    batch.sync()
                os.unlink(name, dir_fd=dir_fd)
        finally:
            os.close(fd)

    def _try_move(self, digest: str, dir_fd: int, name: bytes) -> bool:
        where = self.kaiza_dir.open_directory("objects")
        try:
            os.rename(name, digest, src_dir_fd=dir_fd, dst_dir_fd=where)
        except OSError:
            return False
        os.fsync(where)
        return True

    def _blob_file_size(self, name: str) -> int | None:
        home = self.kaiza_dir.find_directory("objects")
        if home is None:
            return None
        try:
            return os.stat(name, dir_fd=home, follow_symlinks=False).st_size
        except FileNotFoundError:
            return None


def _open_sound_blob(digest: str, where: int) -> int | None:
    """A content that is packed already, open; None where it is not, or is damaged."""
    try:
        fd = os.open(digest + PACKED_SUFFIX, _OPEN, dir_fd=where)
    except FileNotFoundError:
        return None
    check = hashlib.sha256()
    with suppress(OSError, zlib.error):
        for chunk in _decompress_file(fd):
            check.update(chunk)
    if check.hexdigest() == digest:
        return fd
    os.close(fd)
    return None


def _write_blob(digest: str, content: Iterable[bytes], where: int, *, pack: bool) -> int:
    """A content written under its hash, open; it has its name only when it is whole."""
    check = hashlib.sha256()
    draft = f".{digest}.{os.urandom(6).hex()}"
    fd = os.open(draft, _CREATE, 0o400, dir_fd=where)
    try:
        seen = update_hash(check, content)
        write_all(fd, _compress_chunks(seen) if pack else seen)
        if check.hexdigest() != digest:
            raise _changed_error(check.hexdigest(), digest)  # noqa: TRY301 (one way out for all that is missing)
        os.rename(draft, digest + PACKED_SUFFIX if pack else digest, src_dir_fd=where, dst_dir_fd=where)
    except BaseException:
        os.close(fd)
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=where)
        raise
    return fd


def _compress_chunks(content: Iterable[bytes]) -> Iterator[bytes]:
    """Compressed in a window no larger than the first chunk: making the usual one takes longer than using it."""
    chunks = iter(content)
    first = next(chunks, b"")
    window = min(max(len(first).bit_length(), MIN_WINDOW_BITS), zlib.MAX_WBITS)
    pack = zlib.compressobj(COMPRESSION_LEVEL, wbits=window, memLevel=MEMORY_LEVEL)
    for chunk in chain((first,), chunks):
        yield pack.compress(chunk)
    yield pack.flush()


def _decompress_file(fd: int) -> Iterator[bytes]:
    """The content of a packed file, never more of it than is packed here; a `zlib.error` where it has more."""
    if os.fstat(fd).st_size > 2 * MAX_PACKED_BYTES:
        raise zlib.error
    unpack, left = zlib.decompressobj(), MAX_PACKED_BYTES
    for chunk in read_all(fd):
        piece = unpack.decompress(chunk, left + 1)
        left -= len(piece)
        if left < 0:
            raise zlib.error
        yield piece


def _lost_error(digest: str) -> errors.SystemError:
    return errors.SystemError.tool_failure(
        "FILE_READ_FAILED",
        human_message="What was there before is no longer kept whole. It cannot be put back.",
        cause={"hash": digest},
    )


def _changed_error(found: str, digest: str) -> errors.SystemError:
    return errors.SystemError.tool_failure(
        "HASH_MISMATCH",
        human_message="The file changed while it was looked at. Read it again.",
        cause={"expected_hash": digest, "current_hash": found},
    )
