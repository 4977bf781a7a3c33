import pytest

from kaiza.domain.paths import gitignore


def verdict(rules, path, *, directory=False):
    return gitignore.parse(rules.encode()).is_ignored(path.encode(), directory=directory)


@pytest.mark.parametrize(
    ("rules", "path", "expected"),
    [
        ("a", "a", True),
        ("a", "deep/a", True),
        ("a", "ab", None),
        ("/a", "deep/a", None),
        ("deep/a", "deep/a", True),
        ("deep/a", "x/deep/a", None),
        ("*.o", "x/y.o", True),
        ("*.o\n!keep.o", "keep.o", False),
        ("!keep.o\n*.o", "keep.o", True),
        ("# a", "# a", None),
        ("\\# a", "# a", True),
        ("\\!a", "!a", True),
        ("a   ", "a", True),
        ("a\\ ", "a ", True),
        ("a\r", "a", True),
        ("**/b", "b", True),
        ("**/b", "a/x/b", True),
        ("a/**/b", "a/b", True),
        ("a/**/b", "a/x/y/b", True),
        ("a/**", "a/x/y", True),
        ("a/**", "a", None),
        ("a/*", "a/x/y", None),
        ("[a-c]x", "bx", True),
        ("[!a-c]x", "bx", None),
        ("[]x", "x", None),
        ("a\\", "a\\", None),
        ("?", "é", None),
        ("??", "é", True),
        ("", "", None),
        ("/", "a", None),
    ],
)
def test_rules_match_as_in_git(rules, path, expected):
    assert verdict(rules, path) is expected


def test_a_rule_that_ends_with_a_slash_matches_directories_only():
    assert verdict("a/", "a") is None
    assert verdict("a/", "a", directory=True) is True
    assert verdict("*x/\n", "yx", directory=True) is True
    assert verdict("*x/\n", "yx") is None


def test_a_byte_order_mark_is_not_part_of_the_first_rule():
    assert gitignore.parse(b"\xef\xbb\xbfa\n").is_ignored(b"a", directory=False) is True


@pytest.mark.usefixtures("alarm")
def test_many_stars_do_not_cause_exponential_time():
    assert verdict("*a" * 100 + "*b", "a" * 250) is None
    assert verdict("**/a" * 100 + "/b", "a/" * 120 + "c") is None
