"""Where in a file some lines stand almost: most of them alike, or words in common; in time that grows with the file."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

_MAX_PLACES = 200
_MAX_LINES = 200
_MAX_WORDS = 50
_ASCII = 127


@dataclass(frozen=True, slots=True)
class NearMatch:
    """Lines `first` to `last` (outside) come nearest; `only_endings`: they differ in CR alone."""

    first: int
    last: int
    text: bytes
    only_line_endings: bool


def find_nearest(content: bytes, wanted: bytes) -> NearMatch | None:
    """The place that is most like the wanted lines, if anything is alike."""
    have, want = content.split(b"\n"), wanted.split(b"\n")
    if not have[-1]:
        have.pop()
    while len(want) > 1 and not want[-1]:
        want.pop()
    first = _match_by_lines(have, want)
    if first is None:
        first = _match_by_words(have, want)
    if first is None:
        return None
    last = min(first + len(want), len(have))
    found = b"\n".join(have[first:last])
    return NearMatch(first, last, found, only_line_endings=_strip_line_endings(wanted) in _strip_line_endings(found))


def _strip_line_endings(text: bytes) -> bytes:
    return text.replace(b"\r\n", b"\n").rstrip(b"\r\n")


def _match_by_lines(have: Sequence[bytes], want: Sequence[bytes]) -> int | None:
    """Each line found again, blanks at its ends aside, votes for where the first one would stand."""
    asked = {line.strip() for line in want[:_MAX_LINES]} - {b""}
    places: dict[bytes, list[int]] = {}
    for at, line in enumerate(have):
        bare = line.strip()
        if bare in asked:
            places.setdefault(bare, []).append(at)
    votes: Counter[int] = Counter()
    for offset, line in enumerate(want[:_MAX_LINES]):
        found = places.get(line.strip(), [])
        votes.update(max(at - offset, 0) for at in found[:_MAX_PLACES])
    head = want[0].strip()
    return max(votes, key=lambda first: (votes[first], have[first].strip() == head, -first)) if votes else None


def _match_by_words(have: Sequence[bytes], want: Sequence[bytes]) -> int | None:
    """The line that shares most words with the longest wanted one."""
    offset = max(range(len(want)), key=lambda at: len(want[at].strip()))
    words = set(_split_words(want[offset]))
    best, most = None, 0
    for at, line in enumerate(have):
        shared = len(words.intersection(_split_words(line)))
        if shared > most:
            best, most = at, shared
    return None if best is None else max(best - offset, 0)


def _split_words(line: bytes) -> list[bytes]:
    spaced = line.translate(_WORD_SEPARATORS)
    return spaced.split(None, _MAX_WORDS)[:_MAX_WORDS]


_WORD_SEPARATORS = bytes(
    byte if chr(byte).isalnum() or byte > _ASCII or byte == ord("_") else 0x20 for byte in range(256)
)
