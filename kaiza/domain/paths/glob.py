"""One glob, matched in time linear in the path: each character is looked at once, whatever the pattern.

The pattern becomes a row of bits, one for each place in it; reading a character moves all places at once.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from kaiza.domain.paths.glob_parser import LAST, PatternStep, Span, parse_steps, require_pattern
from kaiza.domain.paths.name_folding import is_mark


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
        require_pattern(text)
        return compile_steps(text, list(parse_steps(text)))

    @property
    def is_literal(self) -> bool:
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
                places = moved | places & (self._stay | (marked if is_mark(character) else 0))
        return bool(places & self._final)


def compile_steps(text: str, steps: list[PatternStep]) -> Glob:
    """The glob of a pattern that was parsed into these steps."""
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
    bounds, masks = _build_table(toggles)
    return Glob(text, prefix, bounds, masks, stay, deep, skip, 1 << place, marked)


def _toggle(toggles: dict[str, int], spans: Sequence[Span], bit: int) -> None:
    for low, high in spans:
        toggles[low] = toggles.get(low, 0) ^ bit
        if high < LAST:
            after = chr(ord(high) + 1)
            toggles[after] = toggles.get(after, 0) ^ bit


def _build_table(toggles: dict[str, int]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    bounds = tuple(sorted(toggles))
    masks = [0]
    for bound in bounds:
        masks.append(masks[-1] ^ toggles[bound])
    return bounds, tuple(masks)
