import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaiza.policy.content import secrets
from kaiza.policy.content.lines import find_suspect_lines
from kaiza.policy.content.secrets import find_secrets

A36 = "aB3" * 12
LONG = "aB3_d-" * 20

# Concatenated, so that this file contains no token for scanners to find.
TOKENS = {
    "aws": ["AKI" + "A" + "Q7" * 8, "ASI" + "A" + "Z2" * 8, "aws_secret_access_" + "key = " + "aB3/+" * 8],
    "github": ["gh" + letter + "_" + A36 for letter in "pousr"]
    + ["github" + "_pat_" + A36[:22] + "_" + A36 + A36[:23]],
    "gitlab": ["gl" + "pat-" + LONG[:20], "gl" + "dt-" + LONG[:20]],
    "google": ["AI" + "za" + LONG[:35], "GOC" + "SPX-" + LONG[:28], "ya" + "29." + LONG[:60]],
    "slack": [
        "xox" + "b-" + "1" * 12 + "-" + "2" * 12 + "-" + A36[:24],
        "xox" + "e-1-" + A36 + "-" + A36,
        "xapp" + "-1-" + "A1" * 5 + "-" + "2" * 13 + "-" + "a1" * 32,
        "hooks." + "slack.com/services/" + "T0" * 5 + "/" + "B0" * 5 + "/" + A36[:24],
    ],
    "stripe": ["sk" + "_live_" + A36[:24], "rk" + "_test_" + A36[:24], "wh" + "sec_" + A36[:32]],
    "npm": ["npm" + "_" + A36],
    "pypi": ["pypi" + "-AgEIcHlwaS5vcmc" + LONG[:80]],
    "openai": [
        "sk" + "-proj-" + LONG[:80],
        "sk" + "-" + A36[:20] + "T3Blbk" + "FJ" + A36[:20],
        "sk" + "-" + "aB3d" * 12,
    ],
    "kaiza": ["kz" + "_" + LONG[:43]],
    "anthropic": ["sk" + "-ant-api03-" + LONG[:95], "sk" + "-ant-oat01-" + LONG[:95]],
}
KEYS = ["", "RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED ", "PGP "]


def rules(text, added=None):
    return [finding.rule for finding in find_secrets(text if isinstance(text, bytes) else text.encode(), added)]


@pytest.mark.parametrize(("name", "token"), [(name, token) for name, tokens in TOKENS.items() for token in tokens])
@pytest.mark.parametrize("around", ["{}", 'key = "{}"', "({})", "a\n  - {}\n", '{{"a": "x\\n{}"}}', "https://u:{}@h/x"])
def test_every_token_format_is_found_in_any_context(name, token, around):
    assert rules(around.format(token)) == [f"secret-{name}"]


@pytest.mark.parametrize("kind", KEYS)
def test_a_private_key_header_is_found_anywhere_in_a_line(kind):
    block = " BLOCK" if kind == "PGP " else ""
    header = "-----BEGIN " + kind + "PRIVATE KEY" + block + "-----"

    assert rules(f'x = "{header}\\nMII"') == ["secret-private-key"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-----BEGIN PUBLIC KEY-----",
        "-----BEGIN CERTIFICATE-----",
        "ghp_short",
        "npm_config_registry",
        "task-" + "a" * 60,
        "risk_test_" + A36,
        "pypi-publish",
        "sk-learn",
        "AKIA",
        "xoxb-",
        "0" * 4000,
        "da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "glpat-",
        "https://hooks.slack.com/services/",
    ],
)
def test_text_that_only_resembles_a_token_is_ignored(text):
    assert rules(text) == []


def test_a_finding_has_a_zero_based_position_in_characters_and_not_the_token():
    token = TOKENS["github"][0]
    found = next(find_secrets(f"a\nüü = {token}\n".encode()))

    assert (found.line, found.column, found.severity) == (1, 5, "error")
    assert token not in found.message + found.fix


def test_tokens_on_consecutive_lines_are_all_found():
    token = TOKENS["github"][0]

    assert [found.line for found in find_secrets(f"{token}\n{token}\n\n{token}\n{token}".encode())] == [0, 1, 3, 4]


def test_only_secrets_in_added_lines_are_found():
    text = f"{TOKENS['npm'][0]}\nplain\n{TOKENS['github'][0]}\n"

    assert rules(text, {1}) == []
    assert rules(text, {0}) == ["secret-npm"]
    assert rules(text, {2}) == ["secret-github"]


def test_several_tokens_in_one_line_are_all_found():
    assert rules(" ".join(tokens[0] for tokens in TOKENS.values())) == [f"secret-{name}" for name in TOKENS]


def test_tokens_in_utf16_are_found():
    assert rules(TOKENS["github"][0].encode("utf-16")) == ["secret-github"]
    assert rules(TOKENS["anthropic"][0].encode("utf-16-be")) == ["secret-anthropic"]


def test_a_position_in_utf16_counts_bytes():
    found = next(find_secrets(("ab " + TOKENS["github"][0]).encode("utf-16-le")))

    assert (found.line, found.column) == (0, 6)


def test_tokens_in_binary_content_are_found():
    assert rules(b"\xff\xfe\x00" + TOKENS["stripe"][0].encode() + b"\x80") == ["secret-stripe"]


def test_random_text_gives_no_false_positives():
    rng = random.Random(7)
    text = "\n".join("".join(rng.choices("abcXYZ0189+/_-", k=76)) for _ in range(3000))

    assert rules(text) == []


INTACT = [token.encode() for tokens in TOKENS.values() for token in tokens] + [
    ("-----BEGIN " + kind + "PRIVATE KEY-----").encode() for kind in KEYS
]
DAMAGED = st.builds(lambda token, at: token[:at] + token[at + 1 :], st.sampled_from(INTACT), st.integers(0, 60))
WIDE = st.sampled_from(INTACT).map(lambda token: token.decode().encode("utf-16"))
AROUND = [
    b"\n",
    b"\r",
    b"\v",
    b"\0",
    b" ",
    b"=",
    b":",
    b'"',
    b"x",
    b"9",
    b"_",
    b"-",
    b"/",
    b"\\n",
    b"\xff",
    b"\xc3\xa9",
]
PARTS = [b"aws_secret_" + b"access_key", b"aB3/+" * 8, b"AKI" + b"A", b"gh" + b"p_", b"sk" + b"-", b"aB3" * 12]
TEXTS = st.lists(
    st.sampled_from(INTACT) | DAMAGED | WIDE | st.sampled_from(AROUND) | st.sampled_from(PARTS) | st.binary(max_size=9)
).map(b"".join)


@given(TEXTS, st.none() | st.sets(st.integers(0, 5)))
def test_the_candidate_search_misses_no_line_that_the_exact_patterns_match(text, added):
    line_by_line = [
        finding
        for number, line in enumerate(text.split(b"\n"))
        if added is None or number in added
        for finding in secrets._scan_line(number, line)
    ]

    assert list(find_secrets(text, added)) == line_by_line


@pytest.mark.parametrize("space", [" ", "\t", "\v", "\f", "\r"])
def test_any_whitespace_around_the_equals_sign_is_accepted(space):
    assert rules("aws_secret_access_" + f"key{space}={space}" + "aB3/+" * 8) == ["secret-aws"]


def test_ordinary_lines_are_not_candidates():
    text = b"def f(a):\n    return ghp_config + sk_test(a, AKIA)\n" * 100 + b"a" * 8192 + b"\0" * 100

    assert list(find_suspect_lines(secrets._CANDIDATES, text, None)) == []


def test_positions_of_many_tokens_in_one_line_take_linear_time():
    one = "é " + TOKENS["github"][0]
    found = list(find_secrets((one * 50_000).encode()))

    assert [finding.column for finding in found] == [2 + len(one) * number for number in range(50_000)]
