"""Sentences whose quoted parts came from an agent, a file or the log.

Every form of the report escapes and marks the quoted parts in its own way; the other parts are Kaiza's own words.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kaiza.domain.paths.shown_names import escape_name


@dataclass(frozen=True, slots=True)
class Phrase:
    """Part of a sentence. `is_quoted`: a path, a name or another text that is not Kaiza's own."""

    text: str
    is_quoted: bool = False


@dataclass(frozen=True, slots=True)
class Sentence:
    """Phrases in order."""

    phrases: tuple[Phrase, ...] = ()

    def as_json(self) -> str:
        """The text without any marks."""
        return "".join(escape_name(phrase.text) if phrase.is_quoted else phrase.text for phrase in self.phrases)


def say(*parts: str | Phrase) -> Sentence:
    """Make a sentence of Kaiza's own words and quoted parts."""
    return Sentence(tuple(Phrase(part) if isinstance(part, str) else part for part in parts))


def quote(text: str) -> Phrase:
    """Quote a text that is not Kaiza's own."""
    return Phrase(text, is_quoted=True)


def join_quoted(texts: Sequence[str], last: str = "and") -> list[str | Phrase]:
    """Join quoted texts to a list in a sentence: `a`, `b` and `c`."""
    parts: list[str | Phrase] = []
    for at, text in enumerate(texts):
        if at:
            parts.append(f" {last} " if at == len(texts) - 1 else ", ")
        parts.append(quote(text))
    return parts
