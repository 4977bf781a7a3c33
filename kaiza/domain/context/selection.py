"""Selection of a cache's documents for a query within a budget. The same input always gives the same bytes."""

import re
import struct
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kaiza.domain.context.cache_format import CacheEntry

BYTES_PER_TOKEN = 4
_FLOAT = struct.Struct("<f")
_MAX_DIGITS = 9  # enough to distinguish any two 32-bit floats
# Unicode White_Space. `str.split` would also split at U+001C to U+001F.
_WORD = re.compile("[^\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
_NO_WHITE_SPACE = "\x1c\x1d\x1e\x1f"


@dataclass(frozen=True, slots=True)
class ScoredDocument:
    """A document and how well it matches the query; its content is not kept."""

    entry: CacheEntry
    tokens: int
    term_matches: int
    total_words: int

    @property
    def score(self) -> float:
        """Share of the words that match, as the shortest decimal of a 32-bit float."""
        return round_to_single(self.term_matches / self.total_words) if self.total_words else 0.0


@dataclass(frozen=True, slots=True)
class Selection:
    """The documents selected for a query, in order, out of how many."""

    query: str
    budget: int
    documents: Sequence[ScoredDocument]
    considered: int

    def as_json(self, contents: Sequence[str]) -> dict[str, Any]:
        """Answer of a resolve with the contents of the selected documents. The order of members is part of it."""
        terms = split_words(self.query)
        selected = [_document_json(one, text, terms) for one, text in zip(self.documents, contents, strict=True)]
        return {
            "documents": selected,
            "selection": {
                "query": self.query,
                "budget": self.budget,
                "tokens_used": sum(one.tokens for one in self.documents),
                "documents_considered": self.considered,
                "documents_selected": len(self.documents),
                "documents_excluded_by_budget": self.considered - len(self.documents),
            },
        }


def split_words(text: str) -> list[str]:
    """The words of a text, in lower case."""
    lowered = text.lower()
    # `split` is four times as fast, and nearly every text has none of these.
    is_usual = not any(map(lowered.__contains__, _NO_WHITE_SPACE))
    return lowered.split() if is_usual else _WORD.findall(lowered)


def score_document(entry: CacheEntry, content: str, terms: Collection[str]) -> ScoredDocument:
    """Score a document. A word counts once, however often its term is in the query."""
    words = split_words(content)
    tokens = -(-len(content.encode()) // BYTES_PER_TOKEN)
    return ScoredDocument(entry, tokens, sum(map(terms.__contains__, words)), len(words))


def select_documents(query: str, budget: int, scored: Iterable[ScoredDocument]) -> Selection:
    """Select the best documents that fit into the budget. One that does not fit is skipped, never cut."""
    ranked = sorted(scored, key=lambda one: (-one.score, one.entry.document_id))
    selected, used = [], 0
    for document in ranked:
        # A budget of 0 selects nothing, not even an empty document.
        if budget and used + document.tokens <= budget:
            selected.append(document)
            used += document.tokens
    return Selection(query, budget, selected, len(ranked))


def round_to_single(value: float) -> float:
    """Round to a 32-bit float; the double that prints as its shortest decimal."""
    (single,) = _FLOAT.unpack(_FLOAT.pack(value))
    for digits in range(1, _MAX_DIGITS):
        shortened = float(f"{single:.{digits}g}")
        if _FLOAT.unpack(_FLOAT.pack(shortened)) == (single,):
            return shortened
    return float(f"{single:.{_MAX_DIGITS}g}")


def _document_json(scored: ScoredDocument, content: str, terms: Sequence[str]) -> dict[str, Any]:
    return {
        "id": scored.entry.document_id,
        "version": scored.entry.version,
        "content": content,
        "score": scored.score,
        "tokens": scored.tokens,
        "why": {
            "query_terms": terms,
            "term_matches": scored.term_matches,
            "total_words": scored.total_words,
        },
    }
