"""Pages of reviews: in `.kaiza/reviews/`, or in the state directory where the workspace does not belong here."""

import os
import re
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from kaiza.store.disk import state_dir
from kaiza.store.disk.byte_io import write_all
from kaiza.store.disk.kaiza_dir import KaizaDir

DIRECTORY = "reviews"
_SUFFIX = ".html"
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_review(root: str, kaiza_dir: KaizaDir | None, name: str, content: bytes) -> Path:
    """Write a page, replacing an earlier one of that name; its path. Without `kaiza_dir`, in the state directory."""
    file_name = _file_name(name)
    if kaiza_dir is not None:
        _replace(kaiza_dir.open_directory(DIRECTORY), file_name, content)
        return Path(root, ".kaiza", DIRECTORY, file_name)
    directory = state_dir.path_of(root, create=True) / DIRECTORY
    directory.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(directory, _DIRECTORY_FLAGS)
    try:
        _replace(descriptor, file_name, content)
    finally:
        os.close(descriptor)
    return directory / file_name


def _file_name(name: str) -> str:
    """A name that is safe in any shell; the id of a session in a log from elsewhere may be anything."""
    return (name if _SAFE_NAME.fullmatch(name) else sha256(name.encode(errors="surrogatepass")).hexdigest()) + _SUFFIX


def _replace(directory: int, name: str, content: bytes) -> None:
    """Write the file so that a reader sees the old page or the new one. It can be made again, so it is not fsynced."""
    temporary = f".{name}.{os.urandom(6).hex()}"
    descriptor = os.open(temporary, _CREATE_FLAGS, 0o600, dir_fd=directory)
    try:
        try:
            write_all(descriptor, [content])
        finally:
            os.close(descriptor)
        os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=directory)
        raise
