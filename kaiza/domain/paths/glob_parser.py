"""Glob parser: turns a pattern into steps for the matcher.

The syntax is that of an anchored .gitignore pattern: `*`, `?` and `[...]` match inside one component, a component `**`
matches any number of them (at least one at the end). Matching is case-sensitive. Negation and backslash escapes are not
supported.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

MAX_LENGTH = 1024
LAST_CHARACTER = "\U0010ffff"
ANY = (("\0", "."), ("0", LAST_CHARACTER))
"""Every character but the slash, whose code point is between those of the dot and the zero."""

Span = tuple[str, str]


class GlobError(ValueError):
    """Invalid pattern: what is wrong, at which offset, and what to write instead."""

    def __init__(self, message: str, fix: str, offset: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix
        self.offset = offset


@dataclass(frozen=True, slots=True)
class PatternStep:
    """One step: a set of characters of which one is read, or a star."""

    spans: tuple[Span, ...] = ()
    literal: bool = False
    star: bool = False
    deep: bool = False
    """A `**`, which also matches slashes."""
    marked: bool = False
    """Combining marks may follow the character."""


def require_pattern(text: str) -> None:
    """GlobError for a pattern that is invalid as a whole. `parse_steps` reports errors inside it."""
    if not text:
        raise GlobError("The pattern is empty", "Name a path, such as src/app.py")
    if len(text) > MAX_LENGTH:
        raise GlobError("The pattern is too long", f"Use at most {MAX_LENGTH} characters")
    if text.startswith("/"):
        raise GlobError("The pattern begins with a slash", f"Write it relative to the workspace: {text.lstrip('/')}")
    if text.startswith("!"):
        raise GlobError("Patterns cannot be negated", "List exceptions under deny")
    if text.endswith("/"):
        raise GlobError("The pattern ends with a slash", f"Write {text.rstrip('/')}/** for everything below it")
    # A backslash is an escape for git and a separator on Windows; a person could read it either way.
    for character, name in (("\\", "a backslash"), ("\0", "a NUL")):
        if character in text:
            fix = "Use / as the separator and [*] for a literal star"
            raise GlobError(f"The pattern contains {name}", fix, text.index(character))


def literal_step(character: str) -> PatternStep:
    """Step that reads exactly this character."""
    return PatternStep(((character, character),), literal=True)


def parse_component(component: str, offset: int) -> Iterator[PatternStep]:
    """Yield the steps of one component, which begins at this offset of the pattern."""
    index = 0
    while index < len(component):
        character = component[index]
        if character == "*":
            yield PatternStep(star=True)
        elif character == "?":
            yield PatternStep(ANY)
        elif character == "[":
            end = _find_closing_bracket(component, index, offset)
            is_negated = component[index + 1] in {"!", "^"}
            members = component[index + 1 + is_negated : end]
            merged = merge_spans(sorted(_parse_spans(members, offset + index)))
            yield PatternStep(_exclude_slash(_complement(merged) if is_negated else merged))
            index = end
        else:
            yield literal_step(character)
        index += 1


def parse_steps(
    text: str, read: Callable[[str, int], Iterator[PatternStep]] = parse_component
) -> Iterator[PatternStep]:
    """Yield the steps of a whole pattern; `read` parses each component that is not `**`."""
    offset = 0
    components = text.split("/")
    before = ""
    for number, component in enumerate(components):
        last = number == len(components) - 1
        if component in {"", ".", ".."}:
            fix = "Write a path without empty, . or .. components"
            raise GlobError(f"The pattern has a component {component!r}", fix, offset)
        if len(component) > 1 and not component.strip("*"):  # `***` is read as `**`
            if last:  # at least one component
                yield PatternStep(ANY)
                yield PatternStep(deep=True)
            elif before != "**":
                yield PatternStep(deep=True)
            before = "**"
        else:
            yield from read(component, offset)
            before = component
            if not last:
                yield literal_step("/")
        offset += len(component) + 1


def _find_closing_bracket(component: str, opened: int, offset: int) -> int:
    start = opened + 1
    if component[start : start + 1] in {"!", "^"}:
        start += 1
    end = component.find("]", start + 1)  # a ] right after the opening is a member
    if end < 0:
        raise GlobError("A [ is not closed", "Close it with ], or write [[] for a literal [", offset + opened)
    if "[:" in component[start:end]:
        fix = "Write a range such as [a-z]"
        raise GlobError("Named classes such as [:alpha:] are not supported", fix, offset + opened)
    return end


def _parse_spans(members: str, offset: int) -> Iterator[Span]:
    index = 0
    while index < len(members):
        low = high = members[index]
        if members[index + 1 : index + 2] == "-" and index + 2 < len(members):
            high = members[index + 2]
            index += 2
        if high < low:
            raise GlobError(f"The range {low}-{high} is empty", f"Write {high}-{low}", offset)
        yield low, high
        index += 1


def merge_spans(spans: list[Span]) -> list[Span]:
    """Join spans that touch or overlap; `spans` is sorted."""
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
    if low <= ord(LAST_CHARACTER):
        rest.append((chr(low), LAST_CHARACTER))
    return rest


def _exclude_slash(spans: list[Span]) -> tuple[Span, ...]:
    """Remove the slash, which no class matches."""
    kept = []
    for low, high in spans:
        if low <= "/" <= high:
            kept += [(low, ".")] if low < "/" else []
            kept += [("0", high)] if high > "/" else []
        else:
            kept.append((low, high))
    return tuple(kept)
