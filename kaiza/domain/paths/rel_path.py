"""Workspace-relative path, validated by its text alone. Does not resolve links; the store does that.

Paths are never normalised beyond `.` and empty components: decoding or Unicode normalisation here would make the
checked path differ from the opened one.
"""

import re
from dataclasses import dataclass
from typing import Literal

from kaiza.domain import errors

MAX_COMPONENT = 255
MAX_PATH = 4095

_SKIPPED_PARTS = frozenset({"", ".", ".."})
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_BAD_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")
_ESCAPE = re.compile(b"%([0-9A-Fa-f]{2})")
_URI_SAFE = re.compile(r"[A-Za-z0-9_.~/-]*")
_UNSAFE_BYTE = re.compile(rb"[^A-Za-z0-9_.~/-]")


@dataclass(frozen=True, slots=True, order=True)
class RelPath:
    """Path below the workspace root, as a tuple of names; the empty tuple is the root."""

    parts: tuple[str, ...]

    def __post_init__(self) -> None:
        for part in self.parts:
            if part in _SKIPPED_PARTS or "/" in part or "\0" in part:
                raise ValueError("not a name")

    def __str__(self) -> str:
        return "/".join(self.parts) or "."

    def __truediv__(self, name: str) -> "RelPath":
        return RelPath((*self.parts, name))

    @classmethod
    def from_bytes(cls, path: bytes) -> "RelPath":
        """Decode a path read from disk. Bytes that are not UTF-8 become lone surrogates."""
        return cls(tuple(path.decode(errors="surrogateescape").split("/")) if path not in {b"", b"."} else ())

    def to_bytes(self) -> bytes:
        """Encode the path for system calls; the root is `.`."""
        return str(self).encode(errors="surrogateescape")

    @property
    def name(self) -> str:
        """The last name; empty for the root."""
        return self.parts[-1] if self.parts else ""

    @property
    def parent(self) -> "RelPath":
        """The parent directory; the root is its own parent."""
        return RelPath(self.parts[:-1])


ROOT = RelPath(())


def parse(text: str, root: str | None = None) -> RelPath:
    """Parse a path argument. An absolute path must begin with `root`, spelled exactly so."""
    if not text:
        raise errors.SystemError.tool_failure(
            "INVALID_INPUT_VALUE", human_message="The path is empty. Use . for the workspace root."
        )
    # NUL ends a path in system calls; a lone surrogate is a raw byte of a file name that UTF-8 JSON cannot carry.
    if "\0" in text or _LONE_SURROGATE.search(text):
        raise _invalid_path(
            "character", "The path contains a character that file names cannot have. Use the path as it was listed."
        )
    if len(text.encode()) > MAX_PATH:
        raise _invalid_path("path_length", f"The path is longer than {MAX_PATH} bytes. Use a shorter path.")
    # Refused, not resolved: with links `a/../b` need not be `b`, so removing it from the text could change the file.
    if ".." in text.split("/"):
        raise errors.SystemError.tool_failure(
            "PATH_TRAVERSAL_BLOCKED",
            human_message="The path contains '..'. Use a path relative to the workspace root.",
        )
    parts = tuple(part for part in _strip_root(text, root).split("/") if part not in _SKIPPED_PARTS)
    if any(len(part.encode()) > MAX_COMPONENT for part in parts):
        raise _invalid_path(
            "name_length", f"A name in the path is longer than {MAX_COMPONENT} bytes. Use a shorter name."
        )
    return RelPath(parts)


def parse_uri(uri: str, root: str) -> RelPath:
    """Parse a file: URI. Its path must be below `root`."""
    scheme, colon, rest = uri.partition(":")
    if not colon or scheme.lower() != "file":
        raise _invalid_uri("scheme", "This is not a file: URI. Use a uri that another tool returned.")
    if rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        if authority not in {"", "localhost"}:
            raise _invalid_uri("host", "The URI names another machine. Use a file: URI without a host.")
        rest = slash + path
    if not rest.startswith("/"):
        raise _invalid_uri("path", "The URI has no absolute path. Use a uri that another tool returned.")
    if "?" in rest or "#" in rest or _BAD_ESCAPE.search(rest):
        raise _invalid_uri(
            "syntax", "The URI has a query, a fragment or an invalid escape. Use a uri that another tool returned."
        )
    return parse("/".join(_unescape(part) for part in rest.split("/")), root)


def to_uri(root: str, path: RelPath) -> str:
    """Build the file: URI of a path below `root`. Reserved and non-ASCII bytes are percent-encoded."""
    text = "/".join((root.rstrip("/"), *path.parts)) or "/"
    if not _URI_SAFE.fullmatch(text):
        escaped = _UNSAFE_BYTE.sub(lambda byte: b"%%%02X" % ord(byte[0]), text.encode(errors="surrogateescape"))
        text = escaped.decode()
    return f"file://{text}"


def _strip_root(text: str, root: str | None) -> str:
    if not text.startswith("/"):
        return text
    if root is not None:
        # Compared as text, without following links: another spelling of the root is outside.
        stem = root.rstrip("/")
        if text == root or text.startswith(stem + "/"):
            return text[len(stem) :]
    raise errors.SystemError.tool_failure(
        "OUTSIDE_WORKSPACE",
        human_message="The path is outside the workspace. Use a path relative to the workspace root.",
    )


def _unescape(part: str) -> str:
    # Each component is decoded alone and once: an escaped slash must not become a separator.
    raw = _ESCAPE.sub(lambda escape: bytes.fromhex(escape[1].decode()), part.encode(errors="surrogatepass"))
    try:
        name = raw.decode()
    except UnicodeDecodeError:
        raise _invalid_path(
            "encoding", "The URI escapes bytes that are not UTF-8. Use the uri as it was listed."
        ) from None
    if "/" in name:
        raise _invalid_path("escaped_slash", "The URI contains an escaped slash. Use the uri as it was listed.")
    return name


def _invalid_path(why: str, sentence: str) -> errors.SystemError:
    return errors.SystemError.tool_failure("INVALID_PATH", human_message=sentence, cause={"why": why})


def _invalid_uri(why: str, sentence: str) -> errors.SystemError:
    return errors.SystemError.tool_failure("INVALID_INPUT_FORMAT", human_message=sentence, cause={"why": why})


FileKind = Literal["file", "directory", "link", "other"]


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One directory entry. Only a file has a size."""

    name: str
    type: FileKind
    size: int | None
    modified: str
    mode: int
    real: RelPath
    """The resolved path, with all links followed."""
