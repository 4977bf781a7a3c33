"""Folding of file names: equal for all spellings that some file system, or a reader, treats as the same name."""

import re
import unicodedata
from functools import lru_cache

_TRIMMED_ASCII = ". \t\n\r\v\f\x1c\x1d\x1e\x1f"
_TRIMMED_END = re.compile(f"[{re.escape(_TRIMMED_ASCII)}](?:/|\\Z)")
_FIRST_JAMO_VOWEL, _LAST_JAMO = "\u1160", "\u11ff"
_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


@lru_cache(maxsize=8192)
def skeleton(name: str) -> str:
    """Reduce a name to the form that look-alikes share: case-folded NFKC, no invisible characters or trailing dots."""
    if name.isascii():
        trimmed = name.lower().rstrip(_TRIMMED_ASCII)
        return ".git" if trimmed == "git~1" else trimmed  # the 8.3 name of .git on NTFS
    folded = trim_end(_fold_once(name))
    return folded if folded == name else skeleton(folded)  # one pass can make new foldable text


def trim_end(text: str) -> str:
    """Strip trailing dots and whitespace, as Windows file systems do."""
    while text and (text[-1] == "." or text[-1].isspace()):
        text = text[:-1]
    return text


@lru_cache(maxsize=4096)
def fold(path: str) -> str:
    """Fold a slash-separated path for comparison with deny patterns.

    Each name becomes its decomposed skeleton, so that the pattern `e*` also matches an é. A name with an empty skeleton
    is kept.
    """
    if path.isascii() and path.islower() and not _TRIMMED_END.search(path):
        return path
    return unicodedata.normalize("NFKD", "/".join(skeleton(name) or name for name in path.split("/")))


def fold_fragment(text: str) -> str:
    """Fold part of a name. As `fold`, but trailing dots and whitespace are kept."""
    folded = _fold_once(text)
    return unicodedata.normalize("NFKD", text) if folded == text else fold_fragment(folded)


def is_mark(character: str) -> bool:
    """Whether a character of decomposed text combines with the one before it: a mark, or a Hangul vowel or final."""
    return unicodedata.category(character)[0] == "M" or _FIRST_JAMO_VOWEL <= character <= _LAST_JAMO


def _fold_once(text: str) -> str:
    return _IGNORABLE.sub("", unicodedata.normalize("NFKC", text)).casefold()
