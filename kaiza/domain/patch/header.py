"""The lines before a file's hunks: every name in them must agree, and nothing unknown may stand among them."""

import re
from dataclasses import dataclass

from kaiza.domain.patch import names
from kaiza.domain.patch.refusal import Why, invalid

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
_REFUSED: tuple[tuple[bytes, Why], ...] = (
    (b"copy from ", "copy"),
    (b"copy to ", "copy"),
    (b"GIT binary patch", "binary"),
    (b"Binary files ", "binary"),
    (b"@@ ", "header"),
)


@dataclass(frozen=True, slots=True)
class Header:
    """Which file an entry is about; a side that is None does not exist. `paired`: `---` and `+++` name it."""

    line: int
    old: bytes | None
    new: bytes | None
    paired: bool = True
    old_mode: int | None = None
    new_mode: int | None = None


@dataclass(frozen=True, slots=True)
class _Field:
    line: int
    value: bytes


def read(lines: list[bytes], at: int) -> tuple[Header, int]:
    """Read the header that begins at a line; give it back with the number of the line after it."""
    line = lines[at]
    if line.startswith(b"diff --git "):
        return _git(lines, at)
    if line.startswith(b"diff -"):
        return _recorded(lines, at)
    if line.startswith(b"--- "):
        return _plain(lines, at)
    raise _unknown(line, at)


def _plain(lines: list[bytes], at: int) -> tuple[Header, int]:
    old, new = _pair(lines, at)
    _same_file(old, new, at)
    return Header(at, old, new), at + 2


def _recorded(lines: list[bytes], at: int) -> tuple[Header, int]:
    """Read the command line that `diff -r` writes above each file."""
    header, after = _plain(lines, at + 1) if _is(lines, at + 1, b"--- ") else (None, at)
    if header is None:
        raise invalid(at, "header")
    spelled = [lines[row][4:-1].partition(b"\t")[0] for row in (at + 1, at + 2)]
    if not lines[at].endswith(b" %s %s\n" % tuple(spelled)):
        raise invalid(at, "names")
    return Header(at, header.old, header.new), after


def _git(lines: list[bytes], at: int) -> tuple[Header, int]:
    told = lines[at][len(b"diff --git ") : -1]
    fields, after = _fields(lines, at + 1)
    pair = None
    if _is(lines, after, b"--- "):
        pair = _pair(lines, after)
        after += 2
    old, new = _sides(fields, pair, told, at)
    if not names.spells(told, old or new or b"", new or old or b"", at):
        raise invalid(at, "names")
    return Header(at, old, new, pair is not None, *_modes(fields, old, new, at)), after


def _fields(lines: list[bytes], at: int) -> tuple[dict[bytes, _Field], int]:
    fields: dict[bytes, _Field] = {}
    while at < len(lines) and not lines[at].startswith((b"diff ", b"--- ", b"@@ ")):
        name, value = _field(lines[at], at)
        if name in fields:
            raise invalid(at, "header_twice")
        fields[name] = _Field(at, value)
        at += 1
    return fields, at


def _field(line: bytes, at: int) -> tuple[bytes, bytes]:
    for name in _FIELDS:
        if line.startswith(name + b" "):
            if line.endswith(b"\r\n"):
                raise invalid(at, "line_ending")
            return name, _checked(name, line[len(name) + 1 : -1], at)
    raise _unknown(line, at)


def _checked(name: bytes, value: bytes, at: int) -> bytes:
    if name.endswith(b" mode") and value not in _MODES:
        raise invalid(at, "mode")
    if name.endswith(b"similarity index") and not _PERCENT.fullmatch(value):
        raise invalid(at, "header")
    if name != b"index":
        return value
    index = _INDEX.fullmatch(value)
    if not index:
        raise invalid(at, "header")
    if index[1] and index[1] not in _MODES:
        raise invalid(at, "mode")
    return index[1] or b""


def _pair(lines: list[bytes], at: int) -> tuple[bytes | None, bytes | None]:
    if not _is(lines, at + 1, b"+++ "):
        raise invalid(at, "header")
    return _side(lines, at, b"a/"), _side(lines, at + 1, b"b/")


def _side(lines: list[bytes], at: int, prefix: bytes) -> bytes | None:
    if lines[at].endswith(b"\r\n"):
        raise invalid(at, "line_ending")
    name = names.tabbed(lines[at][4:-1], at)
    return None if name == names.NOWHERE else names.without(prefix, name, at)


def _same_file(old: bytes | None, new: bytes | None, at: int) -> None:
    if old is None and new is None:
        raise invalid(at, "names")
    if old is not None and new is not None and old != new:
        raise invalid(at, "names")


def _sides(
    fields: dict[bytes, _Field], pair: tuple[bytes | None, bytes | None] | None, told: bytes, at: int
) -> tuple[bytes | None, bytes | None]:
    if b"rename from" in fields or b"rename to" in fields:
        return _renamed(fields, pair, at)
    created, deleted = b"new file mode" in fields, b"deleted file mode" in fields
    if pair is None:
        name = names.twice(told, at)
        pair = (None if created else name, None if deleted else name)
    old, new = pair
    _same_file(old, new, at)
    if (created and old is not None) or (deleted and new is not None):
        raise invalid(at, "names")
    return pair


def _renamed(
    fields: dict[bytes, _Field], pair: tuple[bytes | None, bytes | None] | None, at: int
) -> tuple[bytes, bytes]:
    if not (b"rename from" in fields and b"rename to" in fields):
        raise invalid(at, "header")
    old, new = (names.whole(field.value, field.line) for field in (fields[b"rename from"], fields[b"rename to"]))
    if not old or not new or old == new or pair not in (None, (old, new)):
        raise invalid(at, "names")
    return old, new


def _modes(fields: dict[bytes, _Field], old: bytes | None, new: bytes | None, at: int) -> tuple[int | None, int | None]:
    told = {name: _MODES.get(field.value) for name, field in fields.items()}
    if old is None or new is None:
        if b"old mode" in told or b"new mode" in told:
            raise invalid(at, "mode")
        return told.get(b"deleted file mode"), told.get(b"new file mode")
    if b"new file mode" in told or b"deleted file mode" in told:
        raise invalid(at, "names")
    before, after = told.get(b"old mode"), told.get(b"new mode")
    if (before is None) != (after is None) or (before is not None and before == after):
        raise invalid(at, "mode")
    return (told.get(b"index"), None) if before is None else (before, after)


def _is(lines: list[bytes], at: int, beginning: bytes) -> bool:
    return at < len(lines) and lines[at].startswith(beginning)


def _unknown(line: bytes, at: int) -> Exception:
    for beginning, why in _REFUSED:
        if line.startswith(beginning):
            return invalid(at, why)
    return invalid(at, "not_a_patch")
