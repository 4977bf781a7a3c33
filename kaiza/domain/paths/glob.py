"""Glob matcher, linear in the length of the path whatever the pattern.

The pattern is compiled to a bit-parallel automaton: each bit is one position in the pattern, set while the text read
so far can end there. A character of the path advances all bits with one shift and mask, so that a hostile pattern
cannot cause backtracking.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from kaiza.domain.paths.confusables import is_mark
from kaiza.domain.paths.glob_parser import LAST_CHARACTER, PatternStep, Span, parse_steps, require_pattern


@dataclass(frozen=True, slots=True)
class Glob:
    """Compiled pattern. Use `parse` to create one."""

    text: str
    prefix: str = field(compare=False)
    """The literal beginning of the pattern, compared first."""
    _bounds: tuple[str, ...] = field(compare=False, repr=False)
    _masks: tuple[int, ...] = field(compare=False, repr=False)
    """`_masks[i]`: the states that a character from `_bounds[i - 1]` up to `_bounds[i]` advances."""
    _loop_mask: int = field(compare=False, repr=False)
    """States that stay at any character but a slash: `*` and `**`."""
    _slash_loop_mask: int = field(compare=False, repr=False)
    """States that also stay at a slash: `**`."""
    _skip_mask: int = field(compare=False, repr=False)
    """States of a `**` that may be left, at the start of a component, without reading anything."""
    _final_mask: int = field(compare=False, repr=False)
    _combining_mask: int = field(default=0, compare=False, repr=False)
    """States after a single character, where a decomposed path may have more marks of that character."""

    @classmethod
    def parse(cls, text: str) -> "Glob":
        """Parse and compile a pattern; GlobError if it is not valid."""
        require_pattern(text)
        return compile_steps(text, list(parse_steps(text)))

    @property
    def is_literal(self) -> bool:
        """Whether the pattern has no wildcard."""
        return self.prefix == self.text

    def matches(self, parts: Sequence[str]) -> bool:
        """Whether the whole path with these components matches."""
        return self.matches_text("/".join(parts))

    def matches_text(self, path: str) -> bool:
        """Whether a whole slash-separated path matches."""
        if not path or not path.startswith(self.prefix):
            return False
        if self._combining_mask and not path.isascii():
            return self._matches_decomposed(path)
        bounds, masks, loop_mask = self._bounds, self._masks, self._loop_mask
        slash_loop_mask, skip_mask = self._slash_loop_mask, self._skip_mask
        states = 1 | (skip_mask & 1) << 1
        for character in path[len(self.prefix) :]:
            advanced = (states & masks[bisect_right(bounds, character)]) << 1
            if character == "/":
                states = advanced | states & slash_loop_mask
                states |= (states & skip_mask) << 1
            else:
                states = advanced | states & loop_mask
            if not states:
                return False
        return bool(states & self._final_mask)

    def _matches_decomposed(self, path: str) -> bool:
        """As `matches_text`, but one step may read a letter and its combining marks.

        A second loop, because asking for marks would slow the one that nearly every path takes.
        """
        bounds, masks, combining_mask = self._bounds, self._masks, self._combining_mask
        states = 1 | (self._skip_mask & 1) << 1
        for character in path[len(self.prefix) :]:
            advanced = (states & masks[bisect_right(bounds, character)]) << 1
            if character == "/":
                states = advanced | states & self._slash_loop_mask
                states |= (states & self._skip_mask) << 1
            else:
                states = advanced | states & (self._loop_mask | (combining_mask if is_mark(character) else 0))
        return bool(states & self._final_mask)


def compile_steps(text: str, steps: list[PatternStep]) -> Glob:
    """Compile the parsed steps of a pattern."""
    prefix_length = 0
    while prefix_length < len(steps) and steps[prefix_length].literal:
        prefix_length += 1
    prefix = "".join(step.spans[0][0] for step in steps[:prefix_length])
    state, loop_mask, slash_loop_mask, skip_mask, combining_mask = 0, 0, 0, 0, 0
    toggles: dict[str, int] = {}
    for number, step in enumerate(steps[prefix_length:], prefix_length):
        if step.spans:
            _toggle(toggles, step.spans, 1 << state)
            state += 1
            combining_mask |= step.marked << state
        elif step.deep:
            loop_mask, slash_loop_mask = loop_mask | 1 << state, slash_loop_mask | 1 << state
            if number < len(steps) - 1:  # a final `**` needs at least one component
                skip_mask |= 1 << state
                state += 1
        else:
            loop_mask |= 1 << state
    bounds, masks = _build_table(toggles)
    return Glob(text, prefix, bounds, masks, loop_mask, slash_loop_mask, skip_mask, 1 << state, combining_mask)


def _toggle(toggles: dict[str, int], spans: Sequence[Span], bit: int) -> None:
    """Flip a state's bit at the first character of each span and again after its last."""
    for low, high in spans:
        toggles[low] = toggles.get(low, 0) ^ bit
        if high < LAST_CHARACTER:
            after = chr(ord(high) + 1)
            toggles[after] = toggles.get(after, 0) ^ bit


def _build_table(toggles: dict[str, int]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Sorted bounds, and the mask of every interval between two of them, for `bisect`."""
    bounds = tuple(sorted(toggles))
    masks = [0]
    for bound in bounds:
        masks.append(masks[-1] ^ toggles[bound])
    return bounds, tuple(masks)
