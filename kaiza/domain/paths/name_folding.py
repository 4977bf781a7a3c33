"""Folding of names: spellings that a file system or a reader could take for the same come out as one."""

import re
import unicodedata
from functools import lru_cache

_ASCII_ENDS = ". \t\n\r\v\f\x1c\x1d\x1e\x1f"
_LOOSE_END = re.compile(f"[{re.escape(_ASCII_ENDS)}](?:/|\\Z)")
_FIRST_JAMO_VOWEL, _LAST_JAMO = "\u1160", "\u11ff"
_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


@lru_cache(maxsize=8192)
def skeleton(name: str) -> str:
    """Reduce a name to what a file system or a reader could take it for: look-alikes share one skeleton."""
    if name.isascii():
        bare = name.lower().rstrip(_ASCII_ENDS)
        return ".git" if bare == "git~1" else bare
    folded = trim_end(_fold_once(name))
    return folded if folded == name else skeleton(folded)


def trim_end(text: str) -> str:
    """Leave out the dots and blanks at the end, as some file systems do."""
    while text and (text[-1] == "." or text[-1].isspace()):
        text = text[:-1]
    return text


@lru_cache(maxsize=4096)
def fold(path: str) -> str:
    """Spell a path, its names joined by slashes, as denials compare it: paths that could be one file share one fold.

    Each name is its skeleton, decomposed, so that a pattern's `e*` also begins an é; a name without one stays as it is.
    """
    if path.isascii() and path.islower() and not _LOOSE_END.search(path):
        return path
    return unicodedata.normalize("NFKD", "/".join(skeleton(name) or name for name in path.split("/")))


def fold_fragment(text: str) -> str:
    """Spell a part of a name as `fold` spells the whole; how it ends is left as it is."""
    folded = _fold_once(text)
    return unicodedata.normalize("NFKD", text) if folded == text else fold_fragment(folded)


def is_mark(character: str) -> bool:
    """Whether a character of a decomposed text belongs to the one before it."""
    return unicodedata.category(character)[0] == "M" or _FIRST_JAMO_VOWEL <= character <= _LAST_JAMO


def _fold_once(text: str) -> str:
    return _IGNORABLE.sub("", unicodedata.normalize("NFKC", text)).casefold()
