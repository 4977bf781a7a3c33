"""Deny patterns: globs that match a path in every spelling that names the same file on some file system.

Allow patterns match exactly as written; a denial must not be evaded by case, Unicode form or trailing dots.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from kaiza.domain.paths import confusables
from kaiza.domain.paths.glob import Glob, compile_steps
from kaiza.domain.paths.glob_parser import (
    ANY,
    PatternStep,
    Span,
    literal_step,
    merge_spans,
    parse_component,
    parse_steps,
)

_FIRST_NON_ASCII = 0x80


@dataclass(frozen=True, slots=True)
class DenyGlob:
    """A glob compiled three times: as written, and twice folded like the paths it is compared with."""

    exact: Glob
    folded: Glob = field(compare=False, repr=False)
    """For ASCII paths."""
    wide: Glob = field(compare=False, repr=False)
    """For all other paths. A class with non-ASCII members matches any character, because folding may change them."""

    @classmethod
    def from_glob(cls, glob: Glob) -> "DenyGlob":
        """Compile the folded forms of a glob."""
        wide = _compile_folded(glob.text, lowers_only=False)
        if "[" not in glob.text and confusables.fold(glob.text) == glob.text:
            return cls(glob, glob, wide)
        return cls(glob, _compile_folded(glob.text, lowers_only=True), wide)

    @classmethod
    def parse(cls, text: str) -> "DenyGlob":
        """Parse and compile a deny pattern; GlobError if it is not a valid glob."""
        return cls.from_glob(Glob.parse(text))

    @property
    def text(self) -> str:
        """The pattern as written."""
        return self.exact.text

    def matches(self, parts: Sequence[str]) -> bool:
        """Whether the path with these components is denied."""
        return self.matches_text("/".join(parts))

    def matches_text(self, path: str) -> bool:
        """Whether a slash-separated path is denied."""
        return find_denial((self,), path) is not None


def find_denial(denials: Sequence[DenyGlob], path: str) -> DenyGlob | None:
    """Find the first pattern that denies a slash-separated path. The path is folded once for all of them."""
    folded = confusables.fold(path)
    is_ascii, is_folded = path.isascii(), folded == path
    for denial in denials:
        if denial.exact.matches_text(path):
            return denial
        if not is_ascii:
            if denial.wide.matches_text(folded):
                return denial
        # Skipped where path and pattern are both their own fold: the exact match above was the same test.
        elif not (is_folded and denial.folded is denial.exact) and denial.folded.matches_text(folded):
            return denial
    return None


def _compile_folded(text: str, *, lowers_only: bool) -> Glob:
    """Compile a pattern with its literal text folded and its character classes widened."""

    def read(component: str, offset: int) -> Iterator[PatternStep]:
        steps = list(parse_component(component, offset))
        runs = [(is_literal, list(run)) for is_literal, run in groupby(steps, lambda step: step.literal)]
        for number, (is_literal, run) in enumerate(runs, 1):
            if is_literal:
                literal = "".join(step.spans[0][0] for step in run)
                folded = confusables.fold(literal) if len(runs) == 1 else confusables.fold_fragment(literal)
                # Dots and blanks are trimmed only at the end of a name.
                yield from map(literal_step, confusables.trim_end(folded) if 1 < number == len(runs) else folded)
            else:
                # `?` and classes name composed characters; a folded path is decomposed, so marks may follow.
                yield from (
                    step if step.star else PatternStep(_widen_spans(step.spans, lowers_only=lowers_only), marked=True)
                    for step in run
                )

    return compile_steps(text, list(parse_steps(text, read)))


def _widen_spans(spans: Sequence[Span], *, lowers_only: bool) -> tuple[Span, ...]:
    """Lower the ASCII letters of the spans, which is all that folding does to single ASCII characters.

    Unless `lowers_only`, spans with a non-ASCII character match any: folding may make it several.
    """
    if not lowers_only and any(ord(high) >= _FIRST_NON_ASCII for _, high in spans):
        return ANY
    lowered = {
        letter.lower()
        for letter in map(chr, range(_FIRST_NON_ASCII))
        if any(low <= letter <= high for low, high in spans)
    }
    non_ascii = [(max(low, chr(_FIRST_NON_ASCII)), high) for low, high in spans if ord(high) >= _FIRST_NON_ASCII]
    return tuple(merge_spans(sorted([*((letter, letter) for letter in lowered), *non_ascii])))
