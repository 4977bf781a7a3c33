"""Finds relative imports of Python, JavaScript and TypeScript."""

import re
from collections.abc import Iterator

from kaiza.domain.references.reference import Reference

# Every alternative of these patterns is possessive and ends at the latest where the text does, so that no character
# is read twice.
_PYTHON_TEXT = re.compile(
    r'#[^\n]*+|"""(?:[^"\\]|\\[\s\S]|"(?!""))*+(?:""")?'
    r"|'''(?:[^'\\]|\\[\s\S]|'(?!''))*+(?:''')?"
    r'|"(?:[^"\\\n]|\\[\s\S])*+"?'
    r"|'(?:[^'\\\n]|\\[\s\S])*+'?"
)
"""Comments and strings."""
_PYTHON_IMPORT = re.compile(r"^[ \t]*+from[ \t]*+(\.++)[ \t]*+([A-Za-z_][\w.]*+)[ \t]++import\b", re.MULTILINE)
_SCRIPT_TOKEN = re.compile(
    r"//[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?|`(?:[^`\\]|\\[\s\S])*+`?"
    r"""|(?P<string>"(?:[^"\\\n]|\\[\s\S])*+"?|'(?:[^'\\\n]|\\[\s\S])*+'?)"""
    r"|\b(?P<word>from|import|require)\b"
)
_MAX_GAP = 64
"""Characters between a keyword and its string."""


def find_python_imports(text: str) -> Iterator[Reference]:
    """Modules of `from .module import name`. `from . import name` is left out: the name may not be a module."""
    code = _PYTHON_TEXT.sub(lambda found: "\n" * found[0].count("\n"), text)
    number, counted = 1, 0
    for found in _PYTHON_IMPORT.finditer(code):
        number, counted = number + code.count("\n", counted, found.start(1)), found.start(1)
        yield Reference(number, found[1] + found[2], "python_import")


def find_script_imports(text: str) -> Iterator[Reference]:
    """Targets of `from`, `import` and `require` that begin with a dot; not in comments, strings and templates."""
    number, counted, word_end = 1, 0, -1
    for token in _SCRIPT_TOKEN.finditer(text):
        if token.lastgroup == "word":
            word_end = token.end()
        elif token.lastgroup == "string":
            target = token["string"][1:-1]
            if word_end >= 0 and target.startswith(("./", "../")) and _is_adjacent(text, word_end, token.start()):
                number, counted = number + text.count("\n", counted, token.start()), token.start()
                yield Reference(number, target, "script_import")
            word_end = -1


def _is_adjacent(text: str, end: int, start: int) -> bool:
    return start - end <= _MAX_GAP and text[end:start].strip() in {"", "("}
