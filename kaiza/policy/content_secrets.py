"""No secret is written: every added byte is held against the published shapes of tokens and keys."""

import re
from collections.abc import Container, Iterator

from kaiza.domain.finding import ERROR, Finding

_AWS_SECRET = rb"(?i:aws_?secret_?access_?key)[\"']?\s{0,9}[:=]\s{0,9}[\"']?[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])"
_SLACK_HOOK = rb"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Z0-9]{8,}/[A-Za-z0-9]{8,}/[A-Za-z0-9]{16}"
_SHAPES = (
    ("aws", "an AWS key", rb"(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("aws", "an AWS key", _AWS_SECRET),
    ("github", "a GitHub token", rb"gh[pousr]_[A-Za-z0-9]{36}"),
    ("github", "a GitHub token", rb"github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}"),
    ("gitlab", "a GitLab token", rb"gl(?:pat|oas|dt|rt|rtr|cbt|ptt|ft|imt|agent|soat|ffct)-[A-Za-z0-9_-]{20}"),
    ("google", "a Google key", rb"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    ("google", "a Google key", rb"GOCSPX-[A-Za-z0-9_-]{28}(?![A-Za-z0-9_-])"),
    ("google", "a Google key", rb"ya29\.[A-Za-z0-9_-]{30}"),
    ("slack", "a Slack token", rb"xox[abeoprs]-(?:[0-9]{1,2}-)?[A-Za-z0-9]{8,}-[A-Za-z0-9-]{8}"),
    ("slack", "a Slack token", rb"xapp-[0-9]-[A-Z0-9]{6,}-[0-9]{6,}-[a-z0-9]{16}"),
    ("slack", "a Slack token", _SLACK_HOOK),
    ("stripe", "a Stripe key", rb"[rs]k_(?:live|test)_[A-Za-z0-9]{16}"),
    ("stripe", "a Stripe key", rb"whsec_[A-Za-z0-9+/]{32}"),
    ("npm", "an npm token", rb"npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
    ("pypi", "a PyPI token", rb"pypi-(?:AgEIcHlwaS5vcmc|AgENdGVzdC5weXBpLm9yZw)[A-Za-z0-9_-]{30}"),
    ("anthropic", "an Anthropic key", rb"sk-ant-[a-z]{3,8}[0-9]{2}-[A-Za-z0-9_-]{20}"),
    ("openai", "an OpenAI key", rb"sk-(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20}"),
    ("openai", "an OpenAI key", rb"sk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}"),
    ("openai", "an OpenAI key", rb"sk-[A-Za-z0-9]{48}(?![A-Za-z0-9])"),
)  # fmt: skip
_DISTINCT = frozenset({"github", "gitlab", "slack", "npm", "pypi", "anthropic"})
"""Whose tokens begin so that they are known also inside a longer word, as behind an escape or in a link."""
_BEFORE = rb"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"
_TOKEN = re.compile(
    b"|".join(b"(" + (shape if name in _DISTINCT else _BEFORE + shape) + b")" for name, _, shape in _SHAPES)
)
_KEY = re.compile(rb"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_FIX = "Take it out, and read it from the environment or a secret store"


def secrets(after: bytes, added: Container[int] | None = None) -> Iterator[Finding]:
    """What looks like a secret in the added lines of a file, counted from 0; None means that all lines are new."""
    for number, line in enumerate(after.split(b"\n")):
        if added is None or number in added:
            yield from _in_line(number, line)


def _in_line(number: int, line: bytes) -> Iterator[Finding]:
    """A line as it is; and where nothing is found, without the zeros that wide encodings put between letters."""
    found = _shapes_in(line)
    if not found and b"\0" in line:
        found = {(column * 2, rule, what) for column, rule, what in _shapes_in(line.replace(b"\0", b""))}
    for column, rule, what in sorted(found):
        yield Finding(number, column, ERROR, rule, f"The added text looks like {what}", _FIX)


def _shapes_in(text: bytes) -> set[tuple[int, str, str]]:
    found = {(_column(text, key.start()), "secret-private-key", "a private key") for key in _KEY.finditer(text)}
    for token in _TOKEN.finditer(text):
        name, what, _ = _SHAPES[(token.lastindex or 1) - 1]
        found.add((_column(text, token.start()), f"secret-{name}", what))
    return found


def _column(text: bytes, at: int) -> int:
    """The column in characters."""
    return len(text[:at].decode("utf-8", "replace"))
