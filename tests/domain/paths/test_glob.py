import os
import random
import re
import shutil
import subprocess
from pathlib import Path

import pathspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaiza.domain.paths.glob import Glob
from kaiza.domain.paths.glob_parser import GlobError


def matches(pattern, path):
    return Glob.parse(pattern).matches(path.split("/"))


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("src/app.py", "src/app.py"),
        ("src/*.py", "src/app.py"),
        ("src/*.py", "src/.py"),
        ("src/*", "src/.hidden"),
        ("src/a?c", "src/abc"),
        ("src/a?c", "src/aüc"),
        ("[ab]/[!c]", "a/d"),
        ("[^a-c]x", "dx"),
        ("[]]", "]"),
        ("[!]]", "a"),
        ("[a-]", "-"),
        ("[*]", "*"),
        ("**", "a"),
        ("**", "a/b/c"),
        ("**/x", "x"),
        ("**/x", "a/b/x"),
        ("a/**/b", "a/b"),
        ("a/**/b", "a/x/y/b"),
        ("a/**/**/b", "a/b"),
        ("a/**", "a/b/c"),
        ("a/**/*.py", "a/x.py"),
        ("**/a/**/b/*", "x/a/y/b/z"),
        ("a**b", "axxb"),
        ("***/x", "a/b/x"),
    ],
)
def test_patterns_match_these_paths(pattern, path):
    assert matches(pattern, path)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("src/app.py", "src/app.pyc"),
        ("src/app.py", "src/App.py"),
        ("src/app.py", "a/src/app.py"),
        ("src", "src/app.py"),
        ("app.py", "src/app.py"),
        ("src/*.py", "src/a/b.py"),
        ("src/*", "src"),
        ("src/a?c", "src/ac"),
        ("a?c", "a/c"),
        ("a[!b]c", "a/c"),
        ("a[.-0]c", "a/c"),
        ("a/**", "a"),
        ("a/**/b", "a/xb"),
        ("a/**/b", "ab"),
        ("a**b", "a/b"),
        ("*", "a/b"),
        ("{a,b}", "a"),
        ("a/**/**", "a"),
    ],
)
def test_patterns_do_not_match_these_paths(pattern, path):
    assert not matches(pattern, path)


def test_no_pattern_matches_the_root():
    assert not Glob.parse("**").matches(())
    assert not Glob.parse("*").matches(())


@pytest.mark.parametrize(
    "pattern",
    ["", "/", "/a", "a/", "a//b", "./a", "a/./b", "../a", "a/..", "!a", "a\\b", "a\0", "[", "[]", "[!]", "a[b/c]",
     "[b-a]", "[[:alpha:]]", "x" * 1025],
)  # fmt: skip
def test_an_invalid_pattern_raises_an_error_with_a_fix(pattern):
    with pytest.raises(GlobError) as refusal:
        Glob.parse(pattern)

    assert refusal.value.fix


def test_a_pattern_without_wildcards_is_literal():
    assert Glob.parse("a/b.py").is_literal
    assert not any(Glob.parse(pattern).is_literal for pattern in ("a/*", "a?", "**", "[ab]", "a/**", "a[*]", "[.][.]"))


class _Counted(str):
    """A path that records which of its characters are read."""

    __slots__ = ("reads",)

    def __getitem__(self, key):
        rest = _Counted(super().__getitem__(key))
        rest.reads = self.reads
        return rest

    def __iter__(self):
        for character in super().__iter__():
            self.reads.append(character)
            yield character


@pytest.mark.parametrize("pattern", ["*a" * 100, "**/" * 66 + "x", "**/a*b?[c-e]/" * 15 + "z", "[!b]*" * 40])
@pytest.mark.parametrize("path", ["a" * 4000, "a/" * 1999 + "ab", ("a" * 200 + "/") * 19 + "b" * 100])
def test_each_character_is_read_once_whatever_the_pattern(pattern, path):
    counted = _Counted(path)
    counted.reads = []

    Glob.parse(pattern[:200]).matches_text(counted)

    assert len(counted.reads) <= len(path)


_names = st.text("abü.", min_size=1, max_size=4).filter(lambda name: name not in {".", ".."})


@given(st.text(max_size=60), st.lists(_names, max_size=4))
def test_any_text_parses_or_raises_glob_error(text, parts):
    try:
        glob = Glob.parse(text)
    except GlobError:
        return

    assert glob.matches(parts) in {True, False}


_PIECES = ["a", "b", "ab", "*", "?", "**", "[ab]", "[!a]", "[^b]", "[a-b]", "[]a]", "[a-]", ".", "-", "]", "a*", "*b"]
_NAMES = ["a", "a", "b", "ab", ".", "-", "]"]


def _random_cases(count):
    chance = random.Random(20261118)
    cases = []
    while len(cases) < count:
        pattern = [_random_name(chance, _PIECES) for _ in range(chance.randint(1, 4))]
        path = [_random_name(chance, _NAMES) for _ in range(chance.randint(1, 5))]
        if chance.random() < 0.7:
            path = _likely_path(chance, pattern)
        if not {".", ".."} & {*pattern, *path} and not any(map(_has_inner_stars, pattern)):
            cases.append((Glob.parse("/".join(pattern)), "/".join(path)))
    return cases


def _random_name(chance, pieces):
    return "".join(chance.choices(pieces, k=chance.randint(1, 3)))


def _likely_path(chance, pattern):
    """A path that the pattern is likely to match: each wildcard replaced at random."""
    filled = []
    for component in pattern:
        if component == "**":
            filled += [_random_name(chance, _NAMES) for _ in range(chance.randint(0, 2))]
        else:
            name = re.sub(r"\[.[^]]*\]|\?", lambda _: chance.choice(_NAMES), component)
            filled.append(name.replace("*", _random_name(chance, [*_NAMES, ""])) or "a")
    return filled or ["a"]


def _has_inner_stars(component):
    """Whether `**` is next to other characters: there git compares unrelated pointers, and its answer varies."""
    return "**" in component and component != "**"


def _is_ignored(glob, path):
    """Whether git would ignore the path: it or a directory above it matches."""
    parts = path.split("/")
    return any(glob.matches(parts[:depth]) for depth in range(1, len(parts) + 1))


@pytest.mark.skipif(shutil.which("git") is None, reason="git is the oracle")
def test_git_check_ignore_agrees(tmp_path):
    cases = _random_cases(10_000)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", "init", "-q", tmp_path], check=True, env=environment)

    differing = []
    for start in range(0, len(cases), 500):
        batch = cases[start : start + 500]
        rules = "".join(f"/case{number}/{glob.text}\n" for number, (glob, _) in enumerate(batch))
        Path(tmp_path, ".gitignore").write_text(rules, encoding="utf-8")
        paths = "\0".join(f"case{number}/{path}" for number, (_, path) in enumerate(batch))
        result = subprocess.run(
            ["git", "-C", tmp_path, "check-ignore", "--no-index", "-z", "--stdin"],
            input=paths.encode(), capture_output=True, check=False, env=environment,
        )  # fmt: skip
        ignored = set(result.stdout.decode().split("\0"))
        differing += [
            (glob.text, path)
            for number, (glob, path) in enumerate(batch)
            if _is_ignored(glob, path) != (f"case{number}/{path}" in ignored)
        ]

    assert differing == []
    assert 0.1 < sum(_is_ignored(*case) for case in cases) / len(cases) < 0.9


def test_pathspec_agrees():
    differing = []
    for glob, path in _random_cases(10_000):
        if "[!" in glob.text or "[^" in glob.text:
            continue  # in pathspec a negated class matches a slash, in git it does not
        spec = pathspec.GitIgnoreSpec.from_lines([f"/{glob.text}"])
        if spec.match_file(path) != _is_ignored(glob, path):
            differing.append((glob.text, path))

    assert differing == []
