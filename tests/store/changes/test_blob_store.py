"""The parts of a transaction: blobs, renames that do not overwrite, path locks and liveness locks."""

import fcntl
import os
import tracemalloc
import zlib
from contextlib import closing
from hashlib import sha256

import pytest

from kaiza.domain import errors
from kaiza.store.changes.blob_store import BlobStore
from kaiza.store.disk import fsync_batch, process_liveness
from kaiza.store.disk.byte_io import MAX_PACKED_BYTES
from kaiza.store.disk.fsync_batch import FsyncBatch
from kaiza.store.disk.kaiza_dir import KaizaDir
from kaiza.store.disk.process_liveness import LivenessLock


def store_blob(blobs, digest, content, *, pack=True):
    with closing(FsyncBatch()) as batch:
        blobs.store(digest, content, pack=pack, batch=batch)
        batch.sync()


@pytest.fixture
def root_fd(tmp_path):
    fd = os.open(tmp_path, os.O_RDONLY)
    yield fd
    os.close(fd)


@pytest.fixture
def kaiza_dir(root_fd):
    opened = KaizaDir(root_fd)
    yield opened
    opened.close()


def test_kaiza_dir_is_created_on_first_use_and_ignores_itself_in_git(tmp_path, kaiza_dir):
    assert kaiza_dir.find_directory("objects") is None
    assert not (tmp_path / ".kaiza").exists()

    kaiza_dir.open_directory("objects")

    assert (tmp_path / ".kaiza/.gitignore").read_bytes() == b"*\n"
    assert (tmp_path / ".kaiza").stat().st_mode & 0o777 == 0o700


def test_a_link_in_place_of_kaiza_dir_is_refused(tmp_path, kaiza_dir):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".kaiza").symlink_to("elsewhere")

    with pytest.raises(OSError, match=r"."):
        kaiza_dir.open_directory("objects")
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize(
    ("content", "pack"),
    [
        *(
            (content, pack)
            for content in (b"", b"short", os.urandom(MAX_PACKED_BYTES), b"x" * MAX_PACKED_BYTES)
            for pack in (True, False)
        ),
        (b"long" * MAX_PACKED_BYTES, False),
    ],
)
def test_a_stored_content_is_read_back_unchanged(kaiza_dir, content, pack):
    blobs, digest = BlobStore(kaiza_dir), sha256(content).hexdigest()
    store_blob(blobs, digest, [content[:7], content[7:]], pack=pack)

    assert blobs.has(digest)
    assert b"".join(blobs.chunks(digest)) == content


def test_a_content_with_another_hash_is_not_stored(tmp_path, kaiza_dir):
    blobs, digest = BlobStore(kaiza_dir), sha256(b"one").hexdigest()
    with pytest.raises(errors.SystemError) as caught:
        store_blob(blobs, digest, [b"other"])

    assert caught.value.error_code == "HASH_MISMATCH"
    assert not blobs.has(digest)
    assert [path for path in (tmp_path / ".kaiza/objects").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("damage", [b"", b"x", b"x\x9c garbage"])
def test_a_damaged_blob_is_an_error_and_storing_its_content_again_repairs_it(tmp_path, kaiza_dir, damage):
    blobs, digest = BlobStore(kaiza_dir), sha256(b"one").hexdigest()
    store_blob(blobs, digest, [b"one"])
    (blob,) = (tmp_path / ".kaiza/objects").rglob("*.z")
    blob.chmod(0o600)
    blob.write_bytes(damage)

    with pytest.raises(errors.SystemError) as caught:
        list(blobs.chunks(digest))
    assert caught.value.error_code == "FILE_READ_FAILED"
    store_blob(blobs, digest, [b"one"])
    assert b"".join(blobs.chunks(digest)) == b"one"


@pytest.mark.parametrize("size", [MAX_PACKED_BYTES + 1, 64 * MAX_PACKED_BYTES])
def test_a_decompression_bomb_is_an_error_and_is_not_unpacked(kaiza_dir, size):
    content = bytes(size)
    blobs, digest = BlobStore(kaiza_dir), sha256(content).hexdigest()
    plant(kaiza_dir, digest + ".z", zlib.compress(content, 9))
    tracemalloc.start()
    codes = [error_code_of(list, blobs.chunks(digest)), error_code_of(blobs.size, digest)]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert codes == ["FILE_READ_FAILED"] * 2
    assert peak < 8 * MAX_PACKED_BYTES


@pytest.mark.parametrize("suffix", ["", ".z"])
def test_a_fifo_in_place_of_a_blob_does_not_block_the_reader(kaiza_dir, suffix):
    blobs, digest = BlobStore(kaiza_dir), sha256(b"one").hexdigest()
    os.mkfifo(digest + suffix, dir_fd=kaiza_dir.open_directory("objects"))

    assert error_code_of(list, blobs.chunks(digest)) == "FILE_READ_FAILED"


@pytest.mark.parametrize("pack", [True, False])
def test_a_content_longer_than_the_limit_of_the_reader_is_an_error(kaiza_dir, pack):
    blobs, digest = BlobStore(kaiza_dir), sha256(b"12345").hexdigest()
    store_blob(blobs, digest, [b"12345"], pack=pack)

    assert b"".join(blobs.chunks(digest, 5)) == b"12345"
    assert error_code_of(list, blobs.chunks(digest, 4)) == "FILE_READ_FAILED"


def plant(kaiza_dir, name, content):
    """Write a file among the blobs, as an archive might bring it."""
    fd = os.open(name, os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=kaiza_dir.open_directory("objects"))
    with os.fdopen(fd, "wb") as file:
        file.write(content)


def error_code_of(call, *arguments):
    with pytest.raises(errors.SystemError) as caught:
        call(*arguments)
    return caught.value.error_code


@pytest.mark.parametrize("size", [5, MAX_PACKED_BYTES + 1])
def test_an_adopted_file_is_stored_and_its_name_removed(tmp_path, root_fd, kaiza_dir, size):
    (tmp_path / "f").write_bytes(b"x" * size)
    digest = sha256(b"x" * size).hexdigest()
    BlobStore(kaiza_dir).adopt(digest, root_fd, b"f")

    assert not (tmp_path / "f").exists()
    assert b"".join(BlobStore(kaiza_dir).chunks(digest)) == b"x" * size


def test_a_large_file_that_is_open_for_writing_is_copied(tmp_path, root_fd, kaiza_dir):
    (tmp_path / "f").write_bytes(b"x" * (MAX_PACKED_BYTES + 1))
    digest = sha256(b"x" * (MAX_PACKED_BYTES + 1)).hexdigest()
    with (tmp_path / "f").open("r+b") as writer:
        BlobStore(kaiza_dir).adopt(digest, root_fd, b"f")
        writer.write(b"late")

    assert b"".join(BlobStore(kaiza_dir).chunks(digest)) == b"x" * (MAX_PACKED_BYTES + 1)


def test_an_adopted_file_keeps_its_name_until_its_copy_is_on_disk(tmp_path, root_fd, kaiza_dir, monkeypatch):
    (tmp_path / "f").write_bytes(b"x")
    synced, fsync_all = [], fsync_batch.fsync_all

    def recording_fsync_all(fds):
        fsync_all(fds)
        synced.append((len(fds), (tmp_path / "f").exists()))

    monkeypatch.setattr(fsync_batch, "fsync_all", recording_fsync_all)
    BlobStore(kaiza_dir).adopt(sha256(b"x").hexdigest(), root_fd, b"f")

    assert synced == [(2, True)]  # the blob and its directory
    assert not (tmp_path / "f").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may act for another account")
def test_a_process_of_another_account_is_taken_for_alive(tmp_path):
    kaiza_dir = KaizaDir(os.open(tmp_path, os.O_RDONLY))
    mine = LivenessLock(kaiza_dir)
    os.seteuid(65534)
    try:
        found = process_liveness.is_dead(kaiza_dir, "1-0")
    finally:
        os.seteuid(0)
        mine.close()

    assert found is False


@pytest.mark.parametrize("other", ["../held", "./held", "", ".", "..", "a\0b", "x" * 300])
def test_an_id_that_is_not_a_name_is_that_of_a_dead_process(tmp_path, kaiza_dir, other):
    kaiza_dir.open_directory("live")
    with (
        closing(LivenessLock(kaiza_dir)),
        (tmp_path / ".kaiza/held").open("w") as above,
        (tmp_path / ".kaiza/live/held").open("w") as inside,
    ):
        for held in (above, inside):
            fcntl.flock(held, fcntl.LOCK_EX)

        assert process_liveness.is_dead(kaiza_dir, other)
        assert not process_liveness.is_dead(kaiza_dir, "held")


def test_a_torn_copy_is_replaced_when_the_content_is_displaced(tmp_path, kaiza_dir):
    blobs, digest = BlobStore(kaiza_dir), sha256(b"content").hexdigest()
    blobs.store_copy(digest, b"content")
    torn = tmp_path / ".kaiza/objects" / f"{digest}.z"
    torn.chmod(0o600)
    torn.write_bytes(b"")
    with pytest.raises(errors.SystemError):
        list(blobs.chunks(digest))
    store_blob(blobs, digest, [b"content"])

    assert b"".join(blobs.chunks(digest)) == b"content"


def test_a_copy_that_cannot_be_written_leaves_nothing(tmp_path, kaiza_dir):
    with pytest.raises(errors.SystemError):
        BlobStore(kaiza_dir).store_copy("0" * 64, b"another content")

    assert list((tmp_path / ".kaiza/objects").iterdir()) == []
