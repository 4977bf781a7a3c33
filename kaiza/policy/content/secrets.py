"""Finds secrets: tokens and private keys by their published formats.

One linear RE2 search over the file finds candidate lines; the exact patterns run on these lines only.
"""

import re
from collections.abc import Iterator

from kaiza.domain.finding import ERROR, Finding
from kaiza.policy.content.lines import AddedLines, compile_patterns, find_suspect_lines, locate_positions

_WORD_CHARACTERS = rb"A-Za-z0-9"
_AWS_SECRET = rb"(?i:aws_?secret_?access_?key)[\"']?[\s\v]{0,9}[:=][\s\v]{0,9}[\"']?[A-Za-z0-9/+]{40}"
_SLACK_HOOK = rb"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Z0-9]{8,}/[A-Za-z0-9]{8,}/[A-Za-z0-9]{16}"
_FORMATS = (
    # name, description, pattern in the syntax common to re and RE2, characters that must not follow
    ("aws", "an AWS key", rb"(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}", _WORD_CHARACTERS),
    ("aws", "an AWS key", _AWS_SECRET, rb"A-Za-z0-9/+="),
    ("github", "a GitHub token", rb"gh[pousr]_[A-Za-z0-9]{36}", b""),
    ("github", "a GitHub token", rb"github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}", b""),
    ("gitlab", "a GitLab token", rb"gl(?:pat|oas|dt|rt|rtr|cbt|ptt|ft|imt|agent|soat|ffct)-[A-Za-z0-9_-]{20}", b""),
    ("google", "a Google key", rb"AIza[A-Za-z0-9_-]{35}", rb"A-Za-z0-9_-"),
    ("google", "a Google key", rb"GOCSPX-[A-Za-z0-9_-]{28}", rb"A-Za-z0-9_-"),
    ("google", "a Google key", rb"ya29\.[A-Za-z0-9_-]{30}", b""),
    ("slack", "a Slack token", rb"xox[abeoprs]-(?:[0-9]{1,2}-)?[A-Za-z0-9]{8,}-[A-Za-z0-9-]{8}", b""),
    ("slack", "a Slack token", rb"xapp-[0-9]-[A-Z0-9]{6,}-[0-9]{6,}-[a-z0-9]{16}", b""),
    ("slack", "a Slack token", _SLACK_HOOK, b""),
    ("stripe", "a Stripe key", rb"[rs]k_(?:live|test)_[A-Za-z0-9]{16}", b""),
    ("stripe", "a Stripe key", rb"whsec_[A-Za-z0-9+/]{32}", b""),
    ("npm", "an npm token", rb"npm_[A-Za-z0-9]{36}", _WORD_CHARACTERS),
    ("pypi", "a PyPI token", rb"pypi-(?:AgEIcHlwaS5vcmc|AgENdGVzdC5weXBpLm9yZw)[A-Za-z0-9_-]{30}", b""),
    ("anthropic", "an Anthropic key", rb"sk-ant-[a-z]{3,8}[0-9]{2}-[A-Za-z0-9_-]{20}", b""),
    ("openai", "an OpenAI key", rb"sk-(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20}", b""),
    ("openai", "an OpenAI key", rb"sk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}", b""),
    ("openai", "an OpenAI key", rb"sk-[A-Za-z0-9]{48}", _WORD_CHARACTERS),
    ("kaiza", "a token of Kaiza's", rb"kz_[A-Za-z0-9_-]{43}", rb"A-Za-z0-9_-"),
)  # fmt: skip
_DISTINCT_PREFIXES = frozenset({"github", "gitlab", "slack", "npm", "pypi", "anthropic"})
"""Tokens with a prefix so distinct that they are found inside a longer word too, as in a URL."""
# Other tokens must start a word. The letter of an escape before one (`\n`, `\r`, `\t`) is not part of the word.
_WORD_START = rb"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"
_PRIVATE_KEY = rb"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
_KEY = re.compile(_PRIVATE_KEY)
_FIX = "Remove it, and read it from the environment or a secret store"


# One group per format, so that `lastindex` tells which one matched.
_TOKEN = re.compile(
    b"|".join(
        b"(%s%s%s)" % (b"" if name in _DISTINCT_PREFIXES else _WORD_START, pattern, b"(?![%s])" % tail if tail else b"")
        for name, _, pattern, tail in _FORMATS
    )
)
_CANDIDATES = compile_patterns(_PRIVATE_KEY, *(pattern for _, _, pattern, _ in _FORMATS))
"""The same patterns without lookaround, which RE2 lacks: finds every line that `_TOKEN` does, and some others."""


def find_secrets(after: bytes, added: AddedLines = None) -> Iterator[Finding]:
    """Likely secrets in the added lines of a file."""
    # UTF-16 puts NULs between ASCII characters. No pattern contains one, so removing them all hides nothing.
    suspected = [number for number, _ in find_suspect_lines(_CANDIDATES, after.replace(b"\0", b""), added)]
    lines = after.split(b"\n") if suspected else []
    for number in suspected:
        yield from _scan_line(number, lines[number])


def _scan_line(number: int, line: bytes) -> Iterator[Finding]:
    bytes_per_character, found = 1, sorted(_match_formats(line))
    if not found and b"\0" in line:
        bytes_per_character, line = 2, line.replace(b"\0", b"")
        found = sorted(_match_formats(line))
    positions = locate_positions(line, (start for start, _, _ in found))
    for (_, column), (_, rule, kind) in zip(positions, found, strict=True):
        yield Finding(number, column * bytes_per_character, ERROR, rule, f"The added text looks like {kind}", _FIX)


def _match_formats(text: bytes) -> set[tuple[int, str, str]]:
    found = {(key.start(), "secret-private-key", "a private key") for key in _KEY.finditer(text)}
    for token in _TOKEN.finditer(text):
        name, kind, *_ = _FORMATS[(token.lastindex or 1) - 1]
        found.add((token.start(), f"secret-{name}", kind))
    return found
