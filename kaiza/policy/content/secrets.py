"""No secret is written: every added byte is held against the published shapes of tokens and keys.

One search over the whole finds the lines that may hold one; the exact shapes look at these alone.
"""

import re
from collections.abc import Iterator

from kaiza.domain.finding import ERROR, Finding
from kaiza.policy.content.lines import AddedLines, compile_patterns, find_suspect_lines, locate_positions

_WORD_CHARACTERS = rb"A-Za-z0-9"
_AWS_SECRET = rb"(?i:aws_?secret_?access_?key)[\"']?[\s\v]{0,9}[:=][\s\v]{0,9}[\"']?[A-Za-z0-9/+]{40}"
_SLACK_HOOK = rb"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Z0-9]{8,}/[A-Za-z0-9]{8,}/[A-Za-z0-9]{16}"
_SHAPES = (
    # name, what it is, its shape for both re and RE2, what must not follow
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
)  # fmt: skip
_DISTINCT_PREFIXES = frozenset({"github", "gitlab", "slack", "npm", "pypi", "anthropic"})
"""Whose tokens begin so that they are known also inside a longer word, as behind an escape or in a link."""
_WORD_START = rb"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"
_PRIVATE_KEY = rb"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
_KEY = re.compile(_PRIVATE_KEY)
_FIX = "Take it out, and read it from the environment or a secret store"


def _exact_pattern(name: str, shape: bytes, unfollowed: bytes) -> bytes:
    """A shape where it stands for itself, as a group of its own."""
    before = b"" if name in _DISTINCT_PREFIXES else _WORD_START
    after = b"(?![" + unfollowed + b"])" if unfollowed else b""
    return b"(" + before + shape + after + b")"


_TOKEN = re.compile(b"|".join(_exact_pattern(name, shape, unfollowed) for name, _, shape, unfollowed in _SHAPES))
_CANDIDATES = compile_patterns(_PRIVATE_KEY, *(shape for _, _, shape, _ in _SHAPES))
"""Wherever an exact shape matches, this does: it only asks less about what is around."""


def find_secrets(after: bytes, added: AddedLines = None) -> Iterator[Finding]:
    """What looks like a secret in the added lines of a file; no shape holds a zero, so zeros never hide one."""
    suspected = [number for number, _ in find_suspect_lines(_CANDIDATES, after.replace(b"\0", b""), added)]
    lines = after.split(b"\n") if suspected else []
    for number in suspected:
        yield from _scan_line(number, lines[number])


def _scan_line(number: int, line: bytes) -> Iterator[Finding]:
    """A line as it is; and where nothing is found, without the zeros that wide encodings put between letters."""
    width, found = 1, sorted(_match_shapes(line))
    if not found and b"\0" in line:
        width, line = 2, line.replace(b"\0", b"")
        found = sorted(_match_shapes(line))
    for (_, column), (_, rule, what) in zip(locate_positions(line, (at for at, _, _ in found)), found, strict=True):
        yield Finding(number, column * width, ERROR, rule, f"The added text looks like {what}", _FIX)


def _match_shapes(text: bytes) -> set[tuple[int, str, str]]:
    found = {(key.start(), "secret-private-key", "a private key") for key in _KEY.finditer(text)}
    for token in _TOKEN.finditer(text):
        name, what, *_ = _SHAPES[(token.lastindex or 1) - 1]
        found.add((token.start(), f"secret-{name}", what))
    return found
