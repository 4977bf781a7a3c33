"""Parser of the header lines of one file. All names in them must agree, and unknown lines are refused.

The names decide which file is judged, so a disagreement is an attack or a mistake: `git apply`, for one, takes the
name in `---` where other tools take the one in `diff --git`.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

from kaiza.domain.patch.errors import invalid_patch

DEV_NULL = b"/dev/null"

_QUOTED = re.compile(rb'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPE = re.compile(rb"\\([0-3][0-7]{2}|.)", re.DOTALL)
_LETTERS = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}
_SELF_ESCAPED = frozenset({b'"', b"\\"})
_OCTAL = 3
_MODES = {b"100644": 0o644, b"100755": 0o755}
_INDEX = re.compile(rb"[0-9A-Za-z]+\.\.[0-9A-Za-z]+(?: ([0-9]{6}))?")
_PERCENT = re.compile(rb"[0-9]{1,3}%")
_FIELDS = (
    b"old mode",
    b"new mode",
    b"deleted file mode",
    b"new file mode",
    b"rename from",
    b"rename to",
    b"similarity index",
    b"dissimilarity index",
    b"index",
)
_REJECTED_PREFIXES = (
    (b"copy from ", "copy"),
    (b"copy to ", "copy"),
    (b"GIT binary patch", "binary"),
    (b"Binary files ", "binary"),
    (b"@@ ", "header"),
)


@dataclass(frozen=True, slots=True)
class FileHeader:
    """Names and modes of one entry. A side that does not exist is None. `paired`: it has `---` and `+++` lines."""

    line: int
    old: bytes | None
    new: bytes | None
    paired: bool = True
    old_mode: int | None = None
    new_mode: int | None = None


class _HeaderField(NamedTuple):
    line: int
    value: bytes


def parse_header(lines: list[bytes], at: int) -> tuple[FileHeader, int]:
    """Parse the header that begins at line `at`. Returns it and the number of the line after it."""
    line = lines[at]
    if line.startswith(b"diff --git "):
        return _parse_git(lines, at)
    if line.startswith(b"diff -"):
        return _parse_recorded(lines, at)
    if line.startswith(b"--- "):
        return _parse_plain(lines, at)
    raise _unknown_line(line, at)


def _parse_plain(lines: list[bytes], at: int) -> tuple[FileHeader, int]:
    old, new = _parse_pair(lines, at)
    _require_same_file(old, new, at)
    return FileHeader(at, old, new), at + 2


def _parse_recorded(lines: list[bytes], at: int) -> tuple[FileHeader, int]:
    """Parse a header with the command line that `diff -r` writes above each file."""
    header, after = _parse_plain(lines, at + 1) if _has_prefix(lines, at + 1, b"--- ") else (None, at)
    if header is None:
        raise invalid_patch(at, "header")
    names = [lines[row][4:-1].partition(b"\t")[0] for row in (at + 1, at + 2)]
    if not lines[at].endswith(b" %s %s\n" % tuple(names)):
        raise invalid_patch(at, "names")
    return FileHeader(at, header.old, header.new), after


def _parse_git(lines: list[bytes], at: int) -> tuple[FileHeader, int]:
    git_names = lines[at][len(b"diff --git ") : -1]
    fields, after = _parse_fields(lines, at + 1)
    pair = None
    if _has_prefix(lines, after, b"--- "):
        pair = _parse_pair(lines, after)
        after += 2
    old, new = _resolve_sides(fields, pair, git_names, at)
    if not _is_pair(git_names, old or new or b"", new or old or b"", at):
        raise invalid_patch(at, "names")
    return FileHeader(at, old, new, pair is not None, *_resolve_modes(fields, old, new, at)), after


def _parse_fields(lines: list[bytes], at: int) -> tuple[dict[bytes, _HeaderField], int]:
    fields: dict[bytes, _HeaderField] = {}
    while at < len(lines) and not lines[at].startswith((b"diff ", b"--- ", b"@@ ")):
        name = next((name for name in _FIELDS if lines[at].startswith(name + b" ")), None)
        if name is None:
            raise _unknown_line(lines[at], at)
        if lines[at].endswith(b"\r\n"):
            raise invalid_patch(at, "line_ending")
        value = _check_value(name, lines[at][len(name) + 1 : -1], at)
        if name in fields:
            raise invalid_patch(at, "header_twice")
        fields[name] = _HeaderField(at, value)
        at += 1
    return fields, at


def _check_value(name: bytes, value: bytes, at: int) -> bytes:
    if name.endswith(b" mode") and value not in _MODES:
        raise invalid_patch(at, "mode")
    if name.endswith(b"similarity index") and not _PERCENT.fullmatch(value):
        raise invalid_patch(at, "header")
    if name != b"index":
        return value
    index = _INDEX.fullmatch(value)
    if not index:
        raise invalid_patch(at, "header")
    if index[1] and index[1] not in _MODES:
        raise invalid_patch(at, "mode")
    return index[1] or b""


def _parse_pair(lines: list[bytes], at: int) -> tuple[bytes | None, bytes | None]:
    if not _has_prefix(lines, at + 1, b"+++ "):
        raise invalid_patch(at, "header")
    return _parse_side(lines[at], at, b"a/"), _parse_side(lines[at + 1], at + 1, b"b/")


def _parse_side(line: bytes, at: int, prefix: bytes) -> bytes | None:
    """Parse a `---` or `+++` line. A tab ends the name, and a timestamp may follow."""
    if line.endswith(b"\r\n"):
        raise invalid_patch(at, "line_ending")
    name = line[4:-1].partition(b"\t")[0]
    if line[4:].startswith(b'"'):
        name, rest = _read_quoted(line[4:-1], at)
        if rest and not rest.startswith(b"\t"):
            raise invalid_patch(at, "quoting")
    return None if name == DEV_NULL else _strip_prefix(prefix, name, at)


def _require_same_file(old: bytes | None, new: bytes | None, at: int) -> None:
    if old is None and new is None:
        raise invalid_patch(at, "names")
    if old is not None and new is not None and old != new:
        raise invalid_patch(at, "names")


def _resolve_sides(
    fields: dict[bytes, _HeaderField], pair: tuple[bytes | None, bytes | None] | None, git_names: bytes, at: int
) -> tuple[bytes | None, bytes | None]:
    if b"rename from" in fields or b"rename to" in fields:
        return _resolve_rename(fields, pair, at)
    created, deleted = b"new file mode" in fields, b"deleted file mode" in fields
    if pair is None:
        # Blanks in unquoted names make the line ambiguous. Where no other line names the file, both names are equal, so
        # the first one is the first half. `_is_pair` checks the other.
        is_quoted = git_names.startswith(b'"')
        first = _read_quoted(git_names, at)[0] if is_quoted else git_names[: len(git_names) // 2]
        name = _strip_prefix(b"a/", first, at)
        pair = (None if created else name, None if deleted else name)
    old, new = pair
    _require_same_file(old, new, at)
    if (created and old is not None) or (deleted and new is not None):
        raise invalid_patch(at, "names")
    return pair


def _resolve_rename(
    fields: dict[bytes, _HeaderField], pair: tuple[bytes | None, bytes | None] | None, at: int
) -> tuple[bytes, bytes]:
    if not (b"rename from" in fields and b"rename to" in fields):
        raise invalid_patch(at, "header")
    old, new = (read_whole(field.value, field.line) for field in (fields[b"rename from"], fields[b"rename to"]))
    if not old or not new or old == new or pair not in (None, (old, new)):
        raise invalid_patch(at, "names")
    return old, new


def _resolve_modes(
    fields: dict[bytes, _HeaderField], old: bytes | None, new: bytes | None, at: int
) -> tuple[int | None, int | None]:
    modes = {name: _MODES.get(field.value) for name, field in fields.items()}
    if old is None or new is None:
        if b"old mode" in modes or b"new mode" in modes:
            raise invalid_patch(at, "mode")
        return modes.get(b"deleted file mode"), modes.get(b"new file mode")
    if b"new file mode" in modes or b"deleted file mode" in modes:
        raise invalid_patch(at, "names")
    before, after = modes.get(b"old mode"), modes.get(b"new mode")
    if (before is None) != (after is None) or (before is not None and before == after):
        raise invalid_patch(at, "mode")
    # `index a..b 100644` gives the mode of a file that keeps it.
    return (modes.get(b"index"), None) if before is None else (before, after)


def _has_prefix(lines: list[bytes], at: int, prefix: bytes) -> bool:
    return at < len(lines) and lines[at].startswith(prefix)


def _unknown_line(line: bytes, at: int) -> Exception:
    for prefix, reason in _REJECTED_PREFIXES:
        if line.startswith(prefix):
            return invalid_patch(at, reason)
    return invalid_patch(at, "not_a_patch")


def _read_quoted(text: bytes, line: int) -> tuple[bytes, bytes]:
    """Read the quoted name at the start. Returns it and the text after it."""
    quoted = _QUOTED.match(text)
    if not quoted:
        raise invalid_patch(line, "quoting")
    return _unquote(quoted[1], line), text[quoted.end() :]


def read_whole(text: bytes, line: int) -> bytes:
    """Read a name, quoted or not, that is the whole text."""
    if not text.startswith(b'"'):
        return text
    name, rest = _read_quoted(text, line)
    if rest:
        raise invalid_patch(line, "quoting")
    return name


def _strip_prefix(prefix: bytes, name: bytes, line: int) -> bytes:
    if not name.startswith(prefix) or name == prefix:
        raise invalid_patch(line, "prefix")
    return name[len(prefix) :]


def _is_pair(text: bytes, old: bytes, new: bytes, line: int) -> bool:
    """Whether the names of a `diff --git` line are exactly these two."""
    if text.startswith(b'"'):
        first, rest = _read_quoted(text, line)
    else:
        first = b"a/" + old
        rest = text.removeprefix(first) if text.startswith(first + b" ") else b""
    return first == b"a/" + old and rest[:1] == b" " and read_whole(rest[1:], line) == b"b/" + new


def _unquote(text: bytes, line: int) -> bytes:
    def unescape(escape: re.Match[bytes]) -> bytes:
        code = escape[1]
        if len(code) == _OCTAL:
            return bytes([int(code, 8)])
        if code in _SELF_ESCAPED:
            return code
        if code not in _LETTERS:
            raise invalid_patch(line, "quoting")
        return _LETTERS[code]

    return _ESCAPE.sub(unescape, text)
