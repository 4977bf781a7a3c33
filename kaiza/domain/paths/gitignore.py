"""What one `.gitignore` says about a name, byte for byte as git reads it, in time linear in the name.

pathspec would do, but not for a file that a stranger wrote: with `re` a pattern of twenty stars never returns, and
with RE2 sets a long file fails to compile or, worse, silently matches nothing. Here each pattern stands alone.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from types import MappingProxyType

import re2

_SPECIAL = frozenset(b"*?[\\")
_SLASH, _STAR, _QUERY, _OPEN, _BACKSLASH = b"/*?[\\"
_CLOSE, _DASH = b"]-"
_NEGATIONS = frozenset(b"!^")
_BOM = b"\xef\xbb\xbf"
_BATCH_SIZE = 100
_NO_RANGE = 256
"""Marks a member of a class after which a dash begins no range."""
_ASCII = tuple(range(128))
_NAMED_CLASSES: Mapping[bytes, frozenset[int]] = MappingProxyType(
    {
        b"alnum": frozenset(code for code in _ASCII if chr(code).isalnum()),
        b"alpha": frozenset(code for code in _ASCII if chr(code).isalpha()),
        b"blank": frozenset(b" \t"),
        b"cntrl": frozenset((*range(32), 127)),
        b"digit": frozenset(b"0123456789"),
        b"graph": frozenset(range(33, 127)),
        b"lower": frozenset(code for code in _ASCII if chr(code).islower()),
        b"print": frozenset(range(32, 127)),
        b"punct": frozenset(code for code in range(33, 127) if not chr(code).isalnum()),
        b"space": frozenset(b" \t\n\v\f\r"),
        b"upper": frozenset(code for code in _ASCII if chr(code).isupper()),
        b"xdigit": frozenset(b"0123456789abcdefABCDEF"),
    }
)


class _NeverMatchesError(Exception):
    """The pattern is malformed; git lets it match nothing."""


def _re2_options() -> re2.Options:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.dot_nl = True
    options.never_capture = True
    options.log_errors = False
    return options


_RE2_OPTIONS = _re2_options()


@dataclass(frozen=True)
class IgnoreRule:
    """One line: what it matches and what it says about that. The later one wins."""

    number: int
    text: bytes
    is_exclusion: bool
    directories_only: bool
    whole_path: bool

    @property
    def is_literal(self) -> bool:
        """Whether it matches its own text and nothing else."""
        return _SPECIAL.isdisjoint(self.text)

    @property
    def ending(self) -> bytes | None:
        """What a name must end with, where that is all the rule wants: `*.o`."""
        plain = not self.whole_path and self.text[:1] == b"*" and _SPECIAL.isdisjoint(self.text[1:])
        return self.text[1:] if plain else None

    @cached_property
    def expression(self) -> str | None:
        """The rule as an expression of RE2; None where it matches nothing."""
        try:
            return "".join(_path_regex(self.text) if self.whole_path else _name_regex(self.text))
        except _NeverMatchesError:
            return None

    @cached_property
    def _program(self) -> "re2._Regexp":
        return re2._Regexp(f"^(?:{self.expression})$".encode("latin-1"), _RE2_OPTIONS)  # noqa: SLF001  uncached on purpose

    def matches(self, told: bytes) -> bool:
        """Whether this rule of the difficult kind matches the path or the name, whichever it is for."""
        return self._program.search(told) is not None


@dataclass(frozen=True)
class IgnoreFile:
    """The rules of one file, sorted by how they are found."""

    names: Mapping[bytes, Sequence[IgnoreRule]]
    paths: Mapping[bytes, Sequence[IgnoreRule]]
    endings: Mapping[bytes, Sequence[IgnoreRule]]
    regex_rules: Sequence[IgnoreRule]
    _all_endings: tuple[bytes, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_all_endings", tuple(self.endings))

    def is_ignored(self, path: bytes, *, directory: bool) -> bool | None:
        """Whether a path below the file's directory is left out; None where nothing is said about it."""
        name = path[path.rfind(b"/") + 1 :]
        last: IgnoreRule | None = None
        for rule in self._matching_rules(path, name):
            if (directory or not rule.directories_only) and (last is None or rule.number > last.number):
                last = rule
        return last.is_exclusion if last else None

    def _matching_rules(self, path: bytes, name: bytes) -> Iterator[IgnoreRule]:
        yield from self.names.get(name, ())
        yield from self.paths.get(path, ())
        if name.endswith(self._all_endings):
            for ending, rules in self.endings.items():
                if name.endswith(ending):
                    yield from rules
        for batch, any_of in self._batches:
            told = path if batch[0].whole_path else name
            if any_of is None or any_of.search(told) is not None:
                yield from (rule for rule in batch if rule.matches(told))

    @cached_property
    def _batches(self) -> "Sequence[tuple[Sequence[IgnoreRule], re2._Regexp | None]]":
        """The difficult ones, many at once: most names match none of them."""
        kinds = [[rule for rule in self.regex_rules if rule.whole_path is whole] for whole in (False, True)]
        return [
            _compile_batch(kind[begin : begin + _BATCH_SIZE])
            for kind in kinds
            for begin in range(0, len(kind), _BATCH_SIZE)
        ]


def parse(data: bytes) -> IgnoreFile:
    """The rules of a file's bytes; what git does not understand matches nothing."""
    rules = list(_parse_rules(data.removeprefix(_BOM)))
    names = (rule for rule in rules if rule.is_literal and not rule.whole_path)
    paths = (rule for rule in rules if rule.is_literal and rule.whole_path)
    endings = (rule for rule in rules if rule.ending is not None)
    difficult = [rule for rule in rules if not rule.is_literal and rule.ending is None and rule.expression is not None]
    return IgnoreFile(_group_by_text(names), _group_by_text(paths), _group_by_text(endings, 1), difficult)


def _parse_rules(data: bytes) -> Iterator[IgnoreRule]:
    for number, line in enumerate(data.split(b"\n")):
        text = _strip_blanks(line.removesuffix(b"\r"))
        if not text or text.startswith(b"#"):
            continue
        leaves_out = not text.startswith(b"!")
        text = text if leaves_out else text[1:]
        directories_only = text.endswith(b"/")
        text = text[:-1] if directories_only else text
        whole_path = b"/" in text
        if text:
            yield IgnoreRule(number, text.removeprefix(b"/"), leaves_out, directories_only, whole_path)


def _strip_blanks(line: bytes) -> bytes:
    """The line without the blanks at its end; an escaped one stays."""
    bare = line.rstrip(b" ")
    escapes = len(bare) - len(bare.rstrip(b"\\"))
    return line[: len(bare) + 1] if escapes % 2 else bare


def _group_by_text(rules: Iterable[IgnoreRule], skip: int = 0) -> Mapping[bytes, Sequence[IgnoreRule]]:
    found: dict[bytes, list[IgnoreRule]] = defaultdict(list)
    for rule in rules:
        found[rule.text[skip:]].append(rule)
    return MappingProxyType(dict(found))


def _compile_batch(rules: Sequence[IgnoreRule]) -> "tuple[Sequence[IgnoreRule], re2._Regexp | None]":
    either = "|".join(f"(?:{rule.expression})" for rule in rules)
    try:
        return rules, re2._Regexp(f"^(?:{either})$".encode("latin-1"), _RE2_OPTIONS)  # noqa: SLF001  uncached on purpose
    except re2.error:
        return rules, None


def _name_regex(text: bytes) -> Iterator[str]:
    """A pattern without a slash is held against the name alone: there, every star is the same."""
    at = 0
    while at < len(text):
        if text[at] == _STAR:
            yield ".*"
            at += 1
        else:
            told, at = _translate_one(text, at)
            yield told


def _path_regex(text: bytes) -> Iterator[str]:
    """A pattern with a slash is held against the path; where git has skipped the plain beginning, it begins anew."""
    at = begin = next((at for at, code in enumerate(text) if code in _SPECIAL), len(text))
    yield from map(_quote_byte, text[:begin])
    while at < len(text):
        if text[at] == _STAR:
            told, at = _translate_stars(text, at, begin)
        else:
            told, at = _translate_one(text, at)
        yield told


def _translate_stars(text: bytes, at: int, begin: int) -> tuple[str, int]:
    end = at
    while end < len(text) and text[end] == _STAR:
        end += 1
    alone = end - at > 1 and (at == begin or text[at - 1] == _SLASH)
    if alone and end == len(text):
        return ".*", end
    if alone and text[end] == _SLASH:
        return "(?:.*/)?", end + 1
    if alone and text[end : end + 2] == b"\\/":
        return ".*", end
    return "[^/]*", end


def _translate_one(text: bytes, at: int) -> tuple[str, int]:
    """What matches one character, and where the pattern goes on."""
    code = text[at]
    if code == _QUERY:
        return "[^/]", at + 1
    if code == _OPEN:
        return _translate_bracket(text, at + 1)
    if code == _BACKSLASH:
        at += 1
        if at == len(text):
            raise _NeverMatchesError
        code = text[at]
    return _quote_byte(code), at + 1


def _translate_bracket(text: bytes, at: int) -> tuple[str, int]:
    negated = text[at : at + 1] != b"" and text[at] in _NEGATIONS
    first = at = at + negated
    inside: set[int] = set()
    before: int | None = None
    while text[at : at + 1] != b"]" or at == first:
        found, at = _class_member(text, at, before)
        inside |= found
        before = max(found) if len(found) == 1 else None
    codes = (set(range(_NO_RANGE)) - inside if negated else inside) - {_SLASH}
    return _regex_class(codes), at + 1


def _class_member(text: bytes, at: int, before: int | None) -> tuple[set[int], int]:
    """The next member of a class: a character, the rest of a range that began before it, or a named class."""
    if text[at : at + 2] == b"[:":
        return _named_class(text, at)
    if before is not None and text[at : at + 1] == b"-" and text[at + 1 : at + 2] not in {b"", b"]"}:
        high, at = _literal_byte(text, at + 1)
        return set(range(before, high + 1)) | {_NO_RANGE}, at
    code, at = _literal_byte(text, at)
    return {code}, at


def _named_class(text: bytes, at: int) -> tuple[set[int], int]:
    end = text.find(b"]", at + 2)
    if end < 0:
        raise _NeverMatchesError
    if text[end - 1 : end] != b":" or end < at + 3:
        return {_OPEN}, at + 1
    name = text[at + 2 : end - 1]
    if name not in _NAMED_CLASSES:
        raise _NeverMatchesError
    return {*_NAMED_CLASSES[name], _NO_RANGE}, end + 1


def _literal_byte(text: bytes, at: int) -> tuple[int, int]:
    if text[at : at + 1] == b"\\":
        at += 1
    if at >= len(text):
        raise _NeverMatchesError
    return text[at], at + 1


def _regex_class(codes: set[int]) -> str:
    if not codes:
        raise _NeverMatchesError
    return "[" + "".join(f"\\x{code:02x}" for code in sorted(codes) if code < _NO_RANGE) + "]"


@lru_cache(maxsize=256)
def _quote_byte(code: int) -> str:
    return chr(code) if chr(code).isascii() and chr(code).isalnum() else f"\\x{code:02x}"
