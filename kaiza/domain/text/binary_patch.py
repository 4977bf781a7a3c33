"""Binary patches in git's format: `git apply` takes them, and they are plain ASCII whatever the content is."""

import base64
import hashlib
import re
import zlib
from collections.abc import Iterator

from kaiza.domain.text.unified_diff import FileVersion, format_header, git_mode

_LINE_BYTES = 52
# Length of a line's content as git writes it: A to Z for 1 to 26 bytes, a to z for 27 to 52.
_LENGTHS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_NO_OBJECT = b"0" * 40
_UNSAFE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"  # control characters but tab, line feed and carriage return
    "|\r(?!\n)"  # a carriage return within a line: what follows covers what came before
    "|[\u202a-\u202e\u2066-\u2069]"  # change the order in which other characters are shown
    "|[\udc80-\udc9f]"  # bytes that are not UTF-8, and controls for a terminal that does not expect UTF-8
)


def is_safe_to_print(diff: bytes) -> bool:
    """Whether a terminal shows a diff as it is: nothing in it controls the terminal or moves other characters."""
    return _UNSAFE.search(diff.decode(errors="surrogateescape")) is None


def format_binary_patch(old: FileVersion, new: FileVersion) -> bytes:
    """Patch from one version to another, and back."""
    sides = old.content or b"", new.content or b""
    index = b"index %s..%s" % (_object_id(old), _object_id(new))
    if None not in {old.content, new.content} and git_mode(old) == git_mode(new):
        index += b" " + git_mode(new)
    header = b"".join(format_header(old, new, with_hunks=False))
    return b"".join([header, index, b"\nGIT binary patch\n", *_literal(sides[1]), *_literal(sides[0])])


def _object_id(file: FileVersion) -> bytes:
    if file.content is None:
        return _NO_OBJECT
    digest = hashlib.sha1(b"blob %d\0" % len(file.content), usedforsecurity=False)
    digest.update(file.content)
    return digest.hexdigest().encode()


def _literal(content: bytes) -> Iterator[bytes]:
    yield b"literal %d\n" % len(content)
    packed = zlib.compress(content)
    for at in range(0, len(packed), _LINE_BYTES):
        part = packed[at : at + _LINE_BYTES]
        yield _LENGTHS[len(part) - 1 : len(part)] + base64.b85encode(part, pad=True) + b"\n"
    yield b"\n"
