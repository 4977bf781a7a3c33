"""Denial by a pattern: it covers a path in every spelling that a file system or a reader could take for the same."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from kaiza.domain.paths import name_folding
from kaiza.domain.paths.glob import Glob, compile_steps
from kaiza.domain.paths.glob_parser import ANY, PatternStep, Span, merge_spans, parse_component, parse_steps, plain_step

_FIRST_NON_ASCII = 0x80


@dataclass(frozen=True, slots=True)
class DenyGlob:
    """A pattern that covers a path in whatever spelling: as it is written, and both folded as names are compared."""

    exact: Glob
    folded: Glob = field(compare=False, repr=False)
    """For a path in ASCII."""
    wide: Glob = field(compare=False, repr=False)
    """For every other path: there a class that names more than ASCII covers any character."""

    @classmethod
    def from_glob(cls, glob: Glob) -> "DenyGlob":
        """What is denied by a pattern that was understood."""
        plain = "[" not in glob.text and name_folding.fold(glob.text) == glob.text
        wide = compile_steps(glob.text, list(parse_steps(glob.text, _folding_reader(_widen_non_ascii))))
        narrow = (
            glob if plain else compile_steps(glob.text, list(parse_steps(glob.text, _folding_reader(_lower_spans))))
        )
        return cls(glob, narrow, wide)

    @classmethod
    def parse(cls, text: str) -> "DenyGlob":
        """The denial as a value; GlobError if it is not a pattern."""
        return cls.from_glob(Glob.parse(text))

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


def first_denial(denials: Sequence[DenyGlob], path: str) -> DenyGlob | None:
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


def _folding_reader(widen: Callable[[Sequence[Span]], tuple[Span, ...]]) -> Callable[[str, int], Iterator[PatternStep]]:
    """How to read a component so that it covers what is folded."""

    def read(component: str, offset: int) -> Iterator[PatternStep]:
        steps = list(parse_component(component, offset))
        runs = [(plain, list(run)) for plain, run in groupby(steps, lambda step: step.plain)]
        for number, (plain, run) in enumerate(runs, 1):
            if plain:
                written = "".join(step.spans[0][0] for step in run)
                yield from map(plain_step, _fold_run(written, whole=len(runs) == 1, last=number == len(runs)))
            else:
                yield from (step if step.star else PatternStep(widen(step.spans), marked=True) for step in run)

    return read


def _fold_run(written: str, *, whole: bool, last: bool) -> str:
    """Letters between wildcards; only where a name ends are its dots and blanks left out."""
    if whole:
        return name_folding.fold(written)
    folded = name_folding.fold_fragment(written)
    return name_folding.trim_end(folded) if last else folded


def _lower_spans(spans: Sequence[Span]) -> tuple[Span, ...]:
    """The spans with each capital as its small letter, which is all that folding does to ASCII."""
    small = {
        sign.lower() for sign in map(chr, range(_FIRST_NON_ASCII)) if any(low <= sign <= high for low, high in spans)
    }
    beyond = [(max(low, chr(_FIRST_NON_ASCII)), high) for low, high in spans if ord(high) >= _FIRST_NON_ASCII]
    return tuple(merge_spans(sorted([*((sign, sign) for sign in small), *beyond])))


def _widen_non_ascii(spans: Sequence[Span]) -> tuple[Span, ...]:
    """The same, but any character where a span holds one that folds to who knows what."""
    return ANY if any(ord(high) >= _FIRST_NON_ASCII for _, high in spans) else _lower_spans(spans)
