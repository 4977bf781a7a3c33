"""Parser of globs: a pattern's text becomes steps, each a set of characters to read or a star to stay at.

Meaning is git's for an anchored pattern: `*`, `?` and `[...]` stay inside a component, a component `**` is any number
of them (at least one at the end), letters are as they are written, and nothing is negated.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

MAX_LENGTH = 1024
LAST = "\U0010ffff"
ANY = (("\0", "."), ("0", LAST))
"""Every character but the slash, which is between the dot and the zero."""

Span = tuple[str, str]


class GlobError(ValueError):
    """The pattern cannot be read; says what is wrong, where, and what to write instead."""

    def __init__(self, message: str, fix: str, offset: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix
        self.offset = offset


@dataclass(frozen=True, slots=True)
class PatternStep:
    """One place of the pattern: a character to read, or a star to stay at."""

    spans: tuple[Span, ...] = ()
    plain: bool = False
    star: bool = False
    deep: bool = False
    marked: bool = False


def require_pattern(text: str) -> None:
    """GlobError for a text that is no pattern as a whole."""
    if not text:
        raise GlobError("The pattern is empty", "Name a path, such as src/app.py")
    if len(text) > MAX_LENGTH:
        raise GlobError("The pattern is too long", f"Use at most {MAX_LENGTH} characters")
    if text.startswith("/"):
        raise GlobError("The pattern begins with a slash", f"Write it relative to the workspace: {text.lstrip('/')}")
    if text.startswith("!"):
        raise GlobError("Patterns are not negated", "Name what is excluded under deny")
    if text.endswith("/"):
        raise GlobError("The pattern ends with a slash", f"Write {text.rstrip('/')}/** for everything below it")
    for sign, name in (("\\", "a backslash"), ("\0", "a NUL")):
        if sign in text:
            raise GlobError(f"The pattern holds {name}", "Separate with / and write [*] for a star", text.index(sign))


def plain_step(sign: str) -> PatternStep:
    """The step that reads one literal character."""
    return PatternStep(((sign, sign),), plain=True)


def parse_component(component: str, offset: int) -> Iterator[PatternStep]:
    """The steps of one component, which begins at an offset of the pattern."""
    at = 0
    while at < len(component):
        sign = component[at]
        if sign == "*":
            yield PatternStep(star=True)
        elif sign == "?":
            yield PatternStep(ANY)
        elif sign == "[":
            end = _find_closing_bracket(component, at, offset)
            yield PatternStep(_parse_class(component[at + 1 : end], offset + at))
            at = end
        else:
            yield plain_step(sign)
        at += 1


def parse_steps(
    text: str, read: Callable[[str, int], Iterator[PatternStep]] = parse_component
) -> Iterator[PatternStep]:
    """The steps of a whole pattern; `read` parses each component that is not `**`."""
    offset = 0
    components = text.split("/")
    before = ""
    for number, component in enumerate(components):
        last = number == len(components) - 1
        if component in {"", ".", ".."}:
            raise GlobError(f"The pattern has a component {component!r}", "Name components one by one", offset)
        if len(component) > 1 and not component.strip("*"):
            yield from _double_star_steps(last=last, again=before == "**")
            before = "**"
        else:
            yield from read(component, offset)
            before = component
            if not last:
                yield plain_step("/")
        offset += len(component) + 1


def _double_star_steps(*, last: bool, again: bool) -> Iterator[PatternStep]:
    """`**`: in the middle a place that may be left at each component's start, at the end one component or more."""
    if last:
        yield PatternStep(ANY)
        yield PatternStep(deep=True)
    elif not again:
        yield PatternStep(deep=True)


def _find_closing_bracket(component: str, opened: int, offset: int) -> int:
    start = opened + 1
    if component[start : start + 1] in {"!", "^"}:
        start += 1
    end = component.find("]", start + 1)
    if end < 0:
        raise GlobError("A [ is not closed", "Close it with ], or write [[] for the character itself", offset + opened)
    if "[:" in component[start:end]:
        raise GlobError("Named classes such as [:alpha:] are not known", "Write the range, [a-z]", offset + opened)
    return end


def _parse_class(inside: str, offset: int) -> tuple[Span, ...]:
    negated = inside[0] in {"!", "^"}
    spans = sorted(_parse_spans(inside[1:] if negated else inside, offset))
    merged = merge_spans(spans)
    return _exclude_slash(_complement(merged) if negated else merged)


def _parse_spans(listed: str, offset: int) -> Iterator[Span]:
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


def merge_spans(spans: list[Span]) -> list[Span]:
    """Sorted spans, with those that touch or overlap joined."""
    merged: list[Span] = []
    for low, high in spans:
        if merged and ord(low) <= ord(merged[-1][1]) + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return merged


def _complement(spans: list[Span]) -> list[Span]:
    rest, low = [], 0
    for first, last in spans:
        if low < ord(first):
            rest.append((chr(low), chr(ord(first) - 1)))
        low = ord(last) + 1
    if low <= ord(LAST):
        rest.append((chr(low), LAST))
    return rest


def _exclude_slash(spans: list[Span]) -> tuple[Span, ...]:
    """The spans without the slash, which no class matches."""
    cut = []
    for low, high in spans:
        if low <= "/" <= high:
            cut += [(low, ".")] if low < "/" else []
            cut += [("0", high)] if high > "/" else []
        else:
            cut.append((low, high))
    return tuple(cut)
