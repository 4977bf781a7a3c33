"""Characters that a reader does not see, or takes for others, made visible."""

import re
import unicodedata
from collections.abc import Iterator

_PLAIN = re.compile(r"[ -~]*")
_WORD = re.compile(r"[^\W\d_]+")
_LIKE_LATIN = frozenset(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0455\u0458\u04bb\u0501\u051b\u051d\u04cf"
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u0406\u0405\u0408"
    "\u03b1\u03b9\u03bd\u03bf\u03c1\u03c5\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"
)
"""Cyrillic and Greek letters that are drawn like Latin ones."""
_FLAG = "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,6}\U000e007f"
"""A black flag and the tags that say whose it is, such as Scotland's."""
_CONTROL = re.compile(
    f"{_FLAG}|([\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)"
    "|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]|[\U000e0000-\U000e007f])"
)
_JOINER = re.compile("[\u200c\u200d\ufe0e\ufe0f]")
_SELECTORS = "\ufe0e\ufe0f"


def describe_character(character: str) -> str:
    """The character as U+0430 and its name."""
    name = unicodedata.name(character, "")
    return f"U+{ord(character):04X}" + (f" {name}" if name else "")


def find_suspicious(text: str) -> Iterator[tuple[int, str]]:
    """The places of what is invisible, or drawn like something else, in order; `text` is a path or a glob."""
    if _PLAIN.fullmatch(text):
        return
    misleading = set()
    for word in _WORD.finditer(text):
        misleading |= {word.start() + index for index in _misleading_letters(word[0])}
    for index, character in enumerate(text):
        if index in misleading or _is_invisible(character) or unicodedata.normalize("NFKC", character) != character:
            yield index, character


def make_visible(text: str) -> str:
    """The text with everything suspicious spelled out between angle brackets."""
    marks = dict(find_suspicious(text))
    return "".join(f"<{describe_character(each)}>" if index in marks else each for index, each in enumerate(text))


def find_controls(text: str) -> Iterator[tuple[int, str]]:
    """The places of what steers a terminal, turns the direction of text, or hides text in tags; flags are text."""
    return ((found.start(), found[0]) for found in _CONTROL.finditer(text) if found[1])


def spell_out_controls(text: str) -> str:
    """The text with its control characters written by name, so that it can be shown as it is."""
    return _CONTROL.sub(lambda found: f"<{describe_character(found[0])}>" if found[1] else found[0], text)


def strip_joiners(text: str) -> str:
    """The text less what joins its letters and symbols as it should: flags, and joiners and selectors in sequences."""
    return re.sub(_FLAG, "", _JOINER.sub(lambda found: "" if _is_joining(text, found.start()) else found[0], text))


def _is_joining(text: str, index: int) -> bool:
    """Whether a joiner is between letters or between symbols, or a selector behind what it chooses the look of."""
    before = text[index - 1 : index] if index else " "
    if text[index] in _SELECTORS:
        return not _is_invisible(before) and before not in _SELECTORS + " "
    if before in _SELECTORS:
        before = text[index - 2 : index - 1] if index > 1 else " "
    kinds = {unicodedata.category(each)[0] for each in (before, text[index + 1 : index + 2] or " ")}
    return kinds <= set("LMN") or kinds == {"S"}


def _misleading_letters(word: str) -> Iterator[int]:
    """Letters of a second writing inside a word, and a word made only of letters that look Latin."""
    foreign = [index for index, letter in enumerate(word) if not _is_latin(letter)]
    mixed = 0 < len(foreign) < len(word)
    if mixed or all(letter in _LIKE_LATIN for letter in word):
        yield from foreign


def _is_latin(letter: str) -> bool:
    return letter.isascii() or unicodedata.name(letter, "").startswith("LATIN")


def _is_invisible(character: str) -> bool:
    """Controls, formats, private and unassigned characters, and every blank but the plain one."""
    return unicodedata.category(character)[0] in "CZ" and character != " "
