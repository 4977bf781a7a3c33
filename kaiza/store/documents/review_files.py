"""Pages of reviews: in `.kaiza/reviews/`, or in the state directory where the workspace does not belong here."""

import re
from hashlib import sha256
from pathlib import Path

from kaiza.store.disk import small_files, state_dir
from kaiza.store.disk.kaiza_dir import KaizaDir

DIRECTORY = "reviews"
_SUFFIX = ".html"
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def write_review(root: str, kaiza_dir: KaizaDir | None, name: str, content: bytes) -> Path:
    """Write a page, replacing an earlier one of that name; its path. Without `kaiza_dir`, in the state directory."""
    file_name = _file_name(name)
    if kaiza_dir is not None:
        # It can be made again.
        small_files.replace(file_name, content, kaiza_dir.open_directory(DIRECTORY), durable=False)
        return Path(root, ".kaiza", DIRECTORY, file_name)
    directory = state_dir.path_of(root, create=True) / DIRECTORY
    directory.mkdir(mode=0o700, exist_ok=True)
    small_files.replace(directory / file_name, content, durable=False)
    return directory / file_name


def _file_name(name: str) -> str:
    """A name that is safe in any shell; the id of a session in a log from elsewhere may be anything."""
    return (name if _SAFE_NAME.fullmatch(name) else sha256(name.encode(errors="surrogatepass")).hexdigest()) + _SUFFIX
