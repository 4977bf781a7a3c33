"""One glob, matched in time linear in the path: each character is looked at once, whatever the pattern.

The pattern becomes a row of bits, one for each place in it; reading a character moves all places at once. Meaning is
git's for an anchored pattern: `*`, `?` and `[...]` stay inside a component, a component `**` is any number of them
(at least one at the end), letters are as they are written, and nothing is negated. What is denied is denied in every
spelling that a file system or a reader could take for the same.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from kaiza.domain import name_folding

LONGEST = 1024
_LAST = "\U0010ffff"
_ANY = (("\0", "."), ("0", _LAST))
"""Every character but the slash, which stands between the dot and the zero."""

_ASCII = 0x80

_Span = tuple[str, str]


class GlobError(ValueError):
    """The pattern cannot be read; says what is wrong, where, and what to write instead."""

    def __init__(self, message: str, fix: str, offset: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Glob:
    """A pattern that was understood. Made by `parse`."""

    text: str
    prefix: str = field(compare=False)
    """The literal beginning, which a path must have before anything else is looked at."""
    _bounds: tuple[str, ...] = field(compare=False, repr=False)
    _masks: tuple[int, ...] = field(compare=False, repr=False)
    _stay: int = field(compare=False, repr=False)
    _deep: int = field(compare=False, repr=False)
    _skip: int = field(compare=False, repr=False)
    _final: int = field(compare=False, repr=False)
    _marked: int = field(default=0, compare=False, repr=False)
    """Places behind a single character, where a decomposed text may have more marks of that character."""

    @classmethod
    def parse(cls, text: str) -> "Glob":
        """The pattern as a value; GlobError if it is not one."""
        _refuse_odd(text)
        return _compile(text, list(_steps(text)))

    @property
    def literal(self) -> bool:
        """Whether it is a path, with no wildcard in it."""
        return self.prefix == self.text

    def matches(self, parts: Sequence[str]) -> bool:
        """Whether the path made of these components is covered, whole."""
        return self.matches_text("/".join(parts))

    def matches_text(self, path: str) -> bool:
        """The same for a path that is already joined by slashes."""
        if not path or not path.startswith(self.prefix):
            return False
        if self._marked and not path.isascii():
            return self._matches_decomposed(path)
        bounds, masks, stay, deep, skip = self._bounds, self._masks, self._stay, self._deep, self._skip
        places = 1 | (skip & 1) << 1
        for character in path[len(self.prefix) :]:
            moved = (places & masks[bisect_right(bounds, character)]) << 1
            if character == "/":
                places = moved | places & deep
                places |= (places & skip) << 1
            else:
                places = moved | places & stay
            if not places:
                return False
        return bool(places & self._final)

    def _matches_decomposed(self, path: str) -> bool:
        """The same where one character of a name may be several of the path: a letter and its marks."""
        bounds, masks, marked = self._bounds, self._masks, self._marked
        places = 1 | (self._skip & 1) << 1
        for character in path[len(self.prefix) :]:
            moved = (places & masks[bisect_right(bounds, character)]) << 1
            if character == "/":
                places = moved | places & self._deep
                places |= (places & self._skip) << 1
            else:
                places = moved | places & (self._stay | (marked if name_folding.is_mark(character) else 0))
        return bool(places & self._final)


@dataclass(frozen=True, slots=True)
class Denial:
    """A pattern that covers a path in whatever spelling: as it is written, and both folded as names are compared."""

    exact: Glob
    folded: Glob = field(compare=False, repr=False)
    """For a path in ASCII."""
    wide: Glob = field(compare=False, repr=False)
    """For every other path: there a class that names more than ASCII covers any character."""

    @classmethod
    def of(cls, glob: Glob) -> "Denial":
        """What is denied by a pattern that was understood."""
        plain = "[" not in glob.text and name_folding.fold(glob.text) == glob.text
        wide = _compile(glob.text, list(_steps(glob.text, _folded(_any_beyond_ascii))))
        narrow = glob if plain else _compile(glob.text, list(_steps(glob.text, _folded(_lowered))))
        return cls(glob, narrow, wide)

    @classmethod
    def parse(cls, text: str) -> "Denial":
        """The denial as a value; GlobError if it is not a pattern."""
        return cls.of(Glob.parse(text))

    @property
    def text(self) -> str:
        """The pattern as it was written."""
        return self.exact.text

    def matches(self, parts: Sequence[str]) -> bool:
        """Whether the path made of these components is denied."""
        return self.matches_text("/".join(parts))

    def matches_text(self, path: str) -> bool:
        """The same for a path that is already joined by slashes."""
        return first_denial((self,), path) is not None


def first_denial(denials: Sequence[Denial], path: str) -> Denial | None:
    """The first of these by which a path is denied. It is folded once, and where that says nothing new, not tried."""
    folded = name_folding.fold(path)
    beyond, differs = not path.isascii(), folded != path
    for one in denials:
        if one.exact.matches_text(path):
            return one
        if beyond:
            if one.wide.matches_text(folded):
                return one
        elif (differs or one.folded is not one.exact) and one.folded.matches_text(folded):
            return one
    return None


@dataclass(frozen=True, slots=True)
class _Step:
    """One place of the pattern: a character to read, or a star to stay at."""

    spans: tuple[_Span, ...] = ()
    plain: bool = False
    star: bool = False
    deep: bool = False
    marked: bool = False


def _refuse_odd(text: str) -> None:
    if not text:
        raise GlobError("The pattern is empty", "Name a path, such as src/app.py")
    if len(text) > LONGEST:
        raise GlobError("The pattern is too long", f"Use at most {LONGEST} characters")
    if text.startswith("/"):
        raise GlobError("The pattern begins with a slash", f"Write it relative to the workspace: {text.lstrip('/')}")
    if text.startswith("!"):
        raise GlobError("Patterns are not negated", "Name what is excluded under deny")
    if text.endswith("/"):
        raise GlobError("The pattern ends with a slash", f"Write {text.rstrip('/')}/** for everything below it")
    for sign, name in (("\\", "a backslash"), ("\0", "a NUL")):
        if sign in text:
            raise GlobError(f"The pattern holds {name}", "Separate with / and write [*] for a star", text.index(sign))


def _component(component: str, offset: int) -> Iterator[_Step]:
    at = 0
    while at < len(component):
        sign = component[at]
        if sign == "*":
            yield _Step(star=True)
        elif sign == "?":
            yield _Step(_ANY)
        elif sign == "[":
            end = _closing(component, at, offset)
            yield _Step(_class(component[at + 1 : end], offset + at))
            at = end
        else:
            yield _plain(sign)
        at += 1


def _steps(text: str, read: Callable[[str, int], Iterator[_Step]] = _component) -> Iterator[_Step]:
    offset = 0
    components = text.split("/")
    before = ""
    for number, component in enumerate(components):
        last = number == len(components) - 1
        if component in {"", ".", ".."}:
            raise GlobError(f"The pattern has a component {component!r}", "Name components one by one", offset)
        if len(component) > 1 and not component.strip("*"):
            yield from _many(last=last, again=before == "**")
            before = "**"
        else:
            yield from read(component, offset)
            before = component
            if not last:
                yield _plain("/")
        offset += len(component) + 1


def _many(*, last: bool, again: bool) -> Iterator[_Step]:
    """`**`: in the middle a place that may be left at each component's start, at the end one component or more."""
    if last:
        yield _Step(_ANY)
        yield _Step(deep=True)
    elif not again:
        yield _Step(deep=True)


def _plain(sign: str) -> _Step:
    return _Step(((sign, sign),), plain=True)


def _folded(widen: Callable[[Sequence[_Span]], tuple[_Span, ...]]) -> Callable[[str, int], Iterator[_Step]]:
    """How to read a component so that it covers what is folded."""

    def read(component: str, offset: int) -> Iterator[_Step]:
        steps = list(_component(component, offset))
        runs = [(plain, list(run)) for plain, run in groupby(steps, lambda step: step.plain)]
        for number, (plain, run) in enumerate(runs, 1):
            if plain:
                written = "".join(step.spans[0][0] for step in run)
                yield from map(_plain, _folded_run(written, whole=len(runs) == 1, last=number == len(runs)))
            else:
                yield from (step if step.star else _Step(widen(step.spans), marked=True) for step in run)

    return read


def _folded_run(written: str, *, whole: bool, last: bool) -> str:
    """Letters between wildcards; only where a name ends are its dots and blanks left out."""
    if whole:
        return name_folding.fold(written)
    folded = name_folding.fold_part(written)
    return name_folding.trim_end(folded) if last else folded


def _lowered(spans: Sequence[_Span]) -> tuple[_Span, ...]:
    """The spans with each capital as its small letter, which is all that folding does to ASCII."""
    small = {sign.lower() for sign in map(chr, range(_ASCII)) if any(low <= sign <= high for low, high in spans)}
    beyond = [(max(low, chr(_ASCII)), high) for low, high in spans if ord(high) >= _ASCII]
    return tuple(_merge(sorted([*((sign, sign) for sign in small), *beyond])))


def _any_beyond_ascii(spans: Sequence[_Span]) -> tuple[_Span, ...]:
    """The same, but any character where a span holds one that folds to who knows what."""
    return _ANY if any(ord(high) >= _ASCII for _, high in spans) else _lowered(spans)


def _closing(component: str, opened: int, offset: int) -> int:
    start = opened + 1
    if component[start : start + 1] in {"!", "^"}:
        start += 1
    end = component.find("]", start + 1)
    if end < 0:
        raise GlobError("A [ is not closed", "Close it with ], or write [[] for the character itself", offset + opened)
    if "[:" in component[start:end]:
        raise GlobError("Named classes such as [:alpha:] are not known", "Write the range, [a-z]", offset + opened)
    return end


def _class(inside: str, offset: int) -> tuple[_Span, ...]:
    negated = inside[0] in {"!", "^"}
    spans = sorted(_spans(inside[1:] if negated else inside, offset))
    merged = _merge(spans)
    return _within_component(_complement(merged) if negated else merged)


def _spans(listed: str, offset: int) -> Iterator[_Span]:
    at = 0
    while at < len(listed):
        low = high = listed[at]
        if listed[at + 1 : at + 2] == "-" and at + 2 < len(listed):
            high = listed[at + 2]
            at += 2
        if high < low:
            raise GlobError(f"The range {low}-{high} is empty", f"Write {high}-{low}", offset)
        yield low, high
        at += 1


def _merge(spans: list[_Span]) -> list[_Span]:
    merged: list[_Span] = []
    for low, high in spans:
        if merged and ord(low) <= ord(merged[-1][1]) + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return merged


def _complement(spans: list[_Span]) -> list[_Span]:
    rest, low = [], 0
    for first, last in spans:
        if low < ord(first):
            rest.append((chr(low), chr(ord(first) - 1)))
        low = ord(last) + 1
    if low <= ord(_LAST):
        rest.append((chr(low), _LAST))
    return rest


def _within_component(spans: list[_Span]) -> tuple[_Span, ...]:
    """The spans without the slash, which no class matches."""
    cut = []
    for low, high in spans:
        if low <= "/" <= high:
            cut += [(low, ".")] if low < "/" else []
            cut += [("0", high)] if high > "/" else []
        else:
            cut.append((low, high))
    return tuple(cut)


def _compile(text: str, steps: list[_Step]) -> Glob:
    literal = 0
    while literal < len(steps) and steps[literal].plain:
        literal += 1
    prefix = "".join(step.spans[0][0] for step in steps[:literal])
    place, stay, deep, skip, marked = 0, 0, 0, 0, 0
    toggles: dict[str, int] = {}
    for number, step in enumerate(steps[literal:], literal):
        if step.spans:
            _toggle(toggles, step.spans, 1 << place)
            place += 1
            marked |= step.marked << place
        elif step.deep:
            stay, deep = stay | 1 << place, deep | 1 << place
            if number < len(steps) - 1:
                skip |= 1 << place
                place += 1
        else:
            stay |= 1 << place
    bounds, masks = _table(toggles)
    return Glob(text, prefix, bounds, masks, stay, deep, skip, 1 << place, marked)


def _toggle(toggles: dict[str, int], spans: Sequence[_Span], bit: int) -> None:
    for low, high in spans:
        toggles[low] = toggles.get(low, 0) ^ bit
        if high < _LAST:
            after = chr(ord(high) + 1)
            toggles[after] = toggles.get(after, 0) ^ bit


def _table(toggles: dict[str, int]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    bounds = tuple(sorted(toggles))
    masks = [0]
    for bound in bounds:
        masks.append(masks[-1] ^ toggles[bound])
    return bounds, tuple(masks)
