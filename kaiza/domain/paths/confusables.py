"""Invisible and look-alike characters: finding them in text and spelling them out."""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

_PRINTABLE_ASCII = re.compile(r"[ -~]*")
_WORD = re.compile(r"[^\W\d_]+")
# Cyrillic and Greek letters that are drawn like Latin ones.
_LATIN_LOOKALIKES = frozenset(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0455\u0458\u04bb\u0501\u051b\u051d\u04cf"
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u0406\u0405\u0408"
    "\u03b1\u03b9\u03bd\u03bf\u03c1\u03c5\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"
)
# A black flag with tag characters, such as Scotland's: the only place where tags are text.
_FLAG = "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,6}\U000e007f"
_CONTROL = re.compile(
    f"{_FLAG}|([\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)"
    "|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]|[\U000e0000-\U000e007f])"
)
_JOINER = re.compile("[\u200c\u200d\ufe0e\ufe0f]")
_SELECTORS = "\ufe0e\ufe0f"


def describe_character(character: str) -> str:
    """Code point and Unicode name, such as `U+0430 CYRILLIC SMALL LETTER A`."""
    name = unicodedata.name(character, "")
    return f"U+{ord(character):04X}" + (f" {name}" if name else "")


def find_suspicious(text: str) -> Iterator[tuple[int, str]]:
    """Yield index and character of everything invisible or drawn like something else in a path or glob."""
    if _PRINTABLE_ASCII.fullmatch(text):
        return
    misleading = {word.start() + index for word in _WORD.finditer(text) for index in _misleading_letters(word[0])}
    for index, character in enumerate(text):
        if index in misleading or _is_invisible(character) or unicodedata.normalize("NFKC", character) != character:
            yield index, character


def make_visible(text: str) -> str:
    """Replace every suspicious character by its description in angle brackets."""
    suspicious = dict(find_suspicious(text))
    return "".join(f"<{describe_character(each)}>" if index in suspicious else each for index, each in enumerate(text))


def find_controls(text: str) -> Iterator[tuple[int, str]]:
    """Yield index and character of every terminal control, bidirectional control and tag outside a flag."""
    # A flag matches the pattern's first branch, which has no group: it is skipped as a whole.
    return ((match.start(), match[0]) for match in _CONTROL.finditer(text) if match[1])


def spell_out_controls(text: str) -> str:
    """Replace every control character by its description, so that the text is safe to print."""
    return _CONTROL.sub(lambda match: f"<{describe_character(match[0])}>" if match[1] else match[0], text)


def strip_joiners(text: str) -> str:
    """Remove flags, and joiners and variation selectors that are used as intended; misplaced ones stay."""
    return re.sub(_FLAG, "", _JOINER.sub(lambda match: "" if _is_joining(text, match.start()) else match[0], text))


def _is_joining(text: str, index: int) -> bool:
    """Whether a joiner is between two letters or two symbols, or a selector follows a visible character."""
    before = text[index - 1 : index] if index else " "
    if text[index] in _SELECTORS:
        return not _is_invisible(before) and before not in _SELECTORS + " "
    if before in _SELECTORS:
        before = text[index - 2 : index - 1] if index > 1 else " "
    kinds = {unicodedata.category(each)[0] for each in (before, text[index + 1 : index + 2] or " ")}
    return kinds <= set("LMN") or kinds == {"S"}


def _misleading_letters(word: str) -> Iterator[int]:
    """Indexes of the non-Latin letters in a word that mixes scripts, or that has only letters that look Latin."""
    foreign = [
        index
        for index, letter in enumerate(word)
        if not letter.isascii() and not unicodedata.name(letter, "").startswith("LATIN")
    ]
    is_mixed = 0 < len(foreign) < len(word)
    if is_mixed or all(letter in _LATIN_LOOKALIKES for letter in word):
        yield from foreign


def _is_invisible(character: str) -> bool:
    """Whether it is a control, format, private or unassigned character, or whitespace other than a space."""
    return unicodedata.category(character)[0] in "CZ" and character != " "


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
