"""Matcher for one `.gitignore` file, with git's exact semantics and in time linear in the path.

Replaces pathspec, which is unsafe for files from an untrusted workspace: with `re` a pattern of twenty stars does not
return, and with RE2 sets a long file fails to compile and then matches nothing. Here each pattern is compiled alone.
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
"""Pseudo-member of a class: a dash after a range or a named class does not begin another range."""
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
    """The pattern is malformed. git ignores it silently."""


_RE2_OPTIONS = re2.Options()
_RE2_OPTIONS.encoding = re2.Options.Encoding.LATIN1
_RE2_OPTIONS.dot_nl = True
_RE2_OPTIONS.never_capture = True
_RE2_OPTIONS.log_errors = False  # RE2 would write to stderr


@dataclass(frozen=True)
class IgnoreRule:
    """One line of the file. `number` is its line number; the last matching rule decides."""

    number: int
    text: bytes
    is_exclusion: bool
    directories_only: bool
    whole_path: bool

    @property
    def is_literal(self) -> bool:
        """Whether the pattern has no wildcard."""
        return _SPECIAL.isdisjoint(self.text)

    @property
    def suffix(self) -> bytes | None:
        """The suffix of a pattern such as `*.o`; None for any other pattern."""
        is_suffix = not self.whole_path and self.text[:1] == b"*" and _SPECIAL.isdisjoint(self.text[1:])
        return self.text[1:] if is_suffix else None

    @cached_property
    def expression(self) -> str | None:
        """The pattern as an RE2 expression; None if it is malformed."""
        try:
            return "".join(_path_regex(self.text) if self.whole_path else _name_regex(self.text))
        except _NeverMatchesError:
            return None

    @cached_property
    def _program(self) -> "re2._Regexp":
        # Not `re2.compile`: its cache of 128 programs is too small for a long file.
        return re2._Regexp(f"^(?:{self.expression})$".encode("latin-1"), _RE2_OPTIONS)  # noqa: SLF001

    def matches(self, text: bytes) -> bool:
        """Whether the pattern matches; `text` is the path if `whole_path`, else the file name."""
        return self._program.search(text) is not None


@dataclass(frozen=True)
class IgnoreFile:
    """The rules of one file, indexed by literal name, literal path and suffix; the rest are regular expressions."""

    names: Mapping[bytes, Sequence[IgnoreRule]]
    paths: Mapping[bytes, Sequence[IgnoreRule]]
    suffixes: Mapping[bytes, Sequence[IgnoreRule]]
    regex_rules: Sequence[IgnoreRule]
    _all_suffixes: tuple[bytes, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_all_suffixes", tuple(self.suffixes))

    def is_ignored(self, path: bytes, *, directory: bool) -> bool | None:
        """Whether a path below the file's directory is ignored; None if no rule matches."""
        name = path[path.rfind(b"/") + 1 :]
        last: IgnoreRule | None = None
        for rule in self._matching_rules(path, name):
            if (directory or not rule.directories_only) and (last is None or rule.number > last.number):
                last = rule
        return last.is_exclusion if last else None

    def _matching_rules(self, path: bytes, name: bytes) -> Iterator[IgnoreRule]:
        yield from self.names.get(name, ())
        yield from self.paths.get(path, ())
        if name.endswith(self._all_suffixes):
            for suffix, rules in self.suffixes.items():
                if name.endswith(suffix):
                    yield from rules
        for batch, any_of in self._batches:
            text = path if batch[0].whole_path else name
            if any_of is None or any_of.search(text) is not None:
                yield from (rule for rule in batch if rule.matches(text))

    @cached_property
    def _batches(self) -> "Sequence[tuple[Sequence[IgnoreRule], re2._Regexp | None]]":
        """The regex rules in batches, each with one expression that matches if any of them does."""
        # Most names match no rule, so one search for a hundred rules is usually the only one.
        groups = [[rule for rule in self.regex_rules if rule.whole_path is whole] for whole in (False, True)]
        return [
            _compile_batch(group[start : start + _BATCH_SIZE])
            for group in groups
            for start in range(0, len(group), _BATCH_SIZE)
        ]


def parse(data: bytes) -> IgnoreFile:
    """Parse a file's bytes. Lines that git does not understand match nothing."""
    rules = list(_parse_rules(data.removeprefix(_BOM)))
    names = (rule for rule in rules if rule.is_literal and not rule.whole_path)
    paths = (rule for rule in rules if rule.is_literal and rule.whole_path)
    suffixes = (rule for rule in rules if rule.suffix is not None)
    regexes = [rule for rule in rules if not rule.is_literal and rule.suffix is None and rule.expression is not None]
    return IgnoreFile(_group_by_text(names), _group_by_text(paths), _group_by_text(suffixes, 1), regexes)


def _parse_rules(data: bytes) -> Iterator[IgnoreRule]:
    for number, line in enumerate(data.split(b"\n")):
        line = line.removesuffix(b"\r")  # noqa: PLW2901
        # Blanks at the end do not count, but for one that is escaped by an odd number of backslashes.
        text = line.rstrip(b" ")
        if (len(text) - len(text.rstrip(b"\\"))) % 2:
            text = line[: len(text) + 1]
        if not text or text.startswith(b"#"):
            continue
        is_exclusion = not text.startswith(b"!")
        text = text if is_exclusion else text[1:]
        directories_only = text.endswith(b"/")
        text = text[:-1] if directories_only else text
        whole_path = b"/" in text
        if text:
            yield IgnoreRule(number, text.removeprefix(b"/"), is_exclusion, directories_only, whole_path)


def _group_by_text(rules: Iterable[IgnoreRule], skip: int = 0) -> Mapping[bytes, Sequence[IgnoreRule]]:
    groups: dict[bytes, list[IgnoreRule]] = defaultdict(list)
    for rule in rules:
        groups[rule.text[skip:]].append(rule)
    return MappingProxyType(dict(groups))


def _compile_batch(rules: Sequence[IgnoreRule]) -> "tuple[Sequence[IgnoreRule], re2._Regexp | None]":
    alternatives = "|".join(f"(?:{rule.expression})" for rule in rules)
    try:
        return rules, re2._Regexp(f"^(?:{alternatives})$".encode("latin-1"), _RE2_OPTIONS)  # noqa: SLF001
    except re2.error:  # larger than RE2's memory limit: each rule is tried alone
        return rules, None


def _name_regex(text: bytes) -> Iterator[str]:
    """Translate a pattern without a slash. It is matched against the name, so `*` and `**` are the same."""
    index = 0
    while index < len(text):
        if text[index] == _STAR:
            yield ".*"
            index += 1
        else:
            regex, index = _translate_one(text, index)
            yield regex


def _path_regex(text: bytes) -> Iterator[str]:
    """Translate a pattern with a slash, which is matched against the path."""
    # git compares the literal prefix first and starts its matcher after it, so that a `**` right after the prefix
    # counts as the beginning of the pattern, as in `a**/b`.
    index = start = next((index for index, code in enumerate(text) if code in _SPECIAL), len(text))
    yield from map(_quote_byte, text[:start])
    while index < len(text):
        if text[index] == _STAR:
            regex, index = _translate_stars(text, index, start)
        else:
            regex, index = _translate_one(text, index)
        yield regex


def _translate_stars(text: bytes, index: int, start: int) -> tuple[str, int]:
    end = index
    while end < len(text) and text[end] == _STAR:
        end += 1
    begins_component = end - index > 1 and (index == start or text[index - 1] == _SLASH)
    if begins_component and end == len(text):
        return ".*", end
    if begins_component and text[end] == _SLASH:
        return "(?:.*/)?", end + 1
    if begins_component and text[end : end + 2] == b"\\/":
        return ".*", end
    return "[^/]*", end


def _translate_one(text: bytes, index: int) -> tuple[str, int]:
    """Expression for one character of a path, and the index after it in the pattern."""
    code = text[index]
    if code == _QUERY:
        return "[^/]", index + 1
    if code == _OPEN:
        return _translate_bracket(text, index + 1)
    if code == _BACKSLASH:
        index += 1
        if index == len(text):
            raise _NeverMatchesError
        code = text[index]
    return _quote_byte(code), index + 1


def _translate_bracket(text: bytes, index: int) -> tuple[str, int]:
    is_negated = text[index : index + 1] != b"" and text[index] in _NEGATIONS
    first = index = index + is_negated
    members: set[int] = set()
    range_start: int | None = None
    while text[index : index + 1] != b"]" or index == first:  # a ] right after the [ is a member
        member, index = _class_member(text, index, range_start)
        members |= member
        range_start = max(member) if len(member) == 1 else None
    codes = (set(range(_NO_RANGE)) - members if is_negated else members) - {_SLASH}
    if not codes:
        raise _NeverMatchesError
    return "[" + "".join(f"\\x{code:02x}" for code in sorted(codes - {_NO_RANGE})) + "]", index + 1


def _class_member(text: bytes, index: int, range_start: int | None) -> tuple[set[int], int]:
    """The next member of a class: a character, the rest of a range that began before it, or a named class."""
    if text[index : index + 2] == b"[:":
        return _named_class(text, index)
    if range_start is not None and text[index : index + 1] == b"-" and text[index + 1 : index + 2] not in {b"", b"]"}:
        high, index = _literal_byte(text, index + 1)
        return set(range(range_start, high + 1)) | {_NO_RANGE}, index
    code, index = _literal_byte(text, index)
    return {code}, index


def _named_class(text: bytes, index: int) -> tuple[set[int], int]:
    end = text.find(b"]", index + 2)
    if end < 0:
        raise _NeverMatchesError
    if text[end - 1 : end] != b":" or end < index + 3:
        return {_OPEN}, index + 1
    name = text[index + 2 : end - 1]
    if name not in _NAMED_CLASSES:
        raise _NeverMatchesError
    return {*_NAMED_CLASSES[name], _NO_RANGE}, end + 1


def _literal_byte(text: bytes, index: int) -> tuple[int, int]:
    if text[index : index + 1] == b"\\":
        index += 1
    if index >= len(text):
        raise _NeverMatchesError
    return text[index], index + 1


@lru_cache(maxsize=256)
def _quote_byte(code: int) -> str:
    return chr(code) if chr(code).isascii() and chr(code).isalnum() else f"\\x{code:02x}"
