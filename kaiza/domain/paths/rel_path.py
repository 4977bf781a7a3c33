"""Workspace-relative path, valid by its spelling: `parse` and `parse_uri` refuse what no path below the root has."""

import re
from dataclasses import dataclass

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
    """A path below the workspace's root, as its names; no name at all is the root itself."""

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
        """Take a path as the disk spells it; bytes that are not UTF-8 become lone surrogates."""
        return cls(tuple(path.decode(errors="surrogateescape").split("/")) if path not in {b"", b"."} else ())

    def to_bytes(self) -> bytes:
        """Spell the path as the disk does; the root is a dot."""
        return str(self).encode(errors="surrogateescape")

    @property
    def name(self) -> str:
        """The last name; empty for the root."""
        return self.parts[-1] if self.parts else ""

    @property
    def parent(self) -> "RelPath":
        """The directory it stands in; the root's is the root."""
        return RelPath(self.parts[:-1])


ROOT = RelPath(())


def parse(text: str, root: str | None = None) -> RelPath:
    """Read the path that a caller named, exactly as spelled; an absolute one only below `root` as it is known."""
    if not text:
        raise errors.SystemError.tool_failure(
            "INVALID_INPUT_VALUE", human_message="The path is empty. Use . for the workspace itself."
        )
    if "\0" in text or _LONE_SURROGATE.search(text):
        raise _invalid_path("The path holds a character that no file name can have. Name the file as it was listed.")
    if len(text.encode()) > MAX_PATH:
        raise _invalid_path(f"The path is longer than {MAX_PATH} bytes. Use a shorter one.")
    if ".." in text.split("/"):
        raise errors.SystemError.tool_failure(
            "PATH_TRAVERSAL_BLOCKED",
            human_message="The path has a .. in it. Name the file from the workspace down.",
        )
    parts = tuple(part for part in _strip_root(text, root).split("/") if part not in _SKIPPED_PARTS)
    if any(len(part.encode()) > MAX_COMPONENT for part in parts):
        raise _invalid_path(f"A name in the path is longer than {MAX_COMPONENT} bytes. Use a shorter one.")
    return RelPath(parts)


def parse_uri(uri: str, root: str) -> RelPath:
    """Read the path that a file: URI names; it must lie below `root`."""
    scheme, colon, rest = uri.partition(":")
    if not colon or scheme.lower() != "file":
        raise _invalid_uri("This is not a file: URI. Use the uri that another tool gave.")
    if rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        if authority not in {"", "localhost"}:
            raise _invalid_uri("The URI names another machine. Use a file: URI of this one.")
        rest = slash + path
    if not rest.startswith("/"):
        raise _invalid_uri("The URI has no absolute path. Use the uri that another tool gave.")
    if "?" in rest or "#" in rest or _BAD_ESCAPE.search(rest):
        raise _invalid_uri("The URI has a query, a fragment or a broken escape. Use the uri that another tool gave.")
    return parse("/".join(_unescape(part) for part in rest.split("/")), root)


def to_uri(root: str, path: RelPath) -> str:
    """Write the file: URI of a path below `root`; every byte that is not plain is escaped."""
    text = "/".join((root.rstrip("/"), *path.parts)) or "/"
    if not _URI_SAFE.fullmatch(text):
        escaped = _UNSAFE_BYTE.sub(lambda byte: b"%%%02X" % ord(byte[0]), text.encode(errors="surrogateescape"))
        text = escaped.decode()
    return f"file://{text}"


def _strip_root(text: str, root: str | None) -> str:
    if not text.startswith("/"):
        return text
    if root is not None:
        stem = root.rstrip("/")
        if text == root or text.startswith(stem + "/"):
            return text[len(stem) :]
    raise errors.SystemError.tool_failure(
        "OUTSIDE_WORKSPACE",
        human_message="The path is absolute and not below the workspace. Name the file from the workspace down.",
    )


def _unescape(part: str) -> str:
    raw = _ESCAPE.sub(lambda escape: bytes.fromhex(escape[1].decode()), part.encode(errors="surrogatepass"))
    try:
        name = raw.decode()
    except UnicodeDecodeError:
        raise _invalid_path("The URI escapes bytes that are not UTF-8. Name the file as it was listed.") from None
    if "/" in name:
        raise _invalid_path("The URI escapes a slash. Name the file as it was listed.")
    return name


def _invalid_path(sentence: str) -> errors.SystemError:
    return errors.SystemError.tool_failure("INVALID_PATH", human_message=sentence)


def _invalid_uri(sentence: str) -> errors.SystemError:
    return errors.SystemError.tool_failure("INVALID_INPUT_FORMAT", human_message=sentence)
