"""Parsing of paths and URIs, and protected names in disguise."""

import os
import pathlib
import unicodedata
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaiza.domain import errors
from kaiza.domain.paths import confusables, protected_names, rel_path
from kaiza.domain.paths.rel_path import ROOT, RelPath, parse, parse_uri, to_uri

WORKSPACE = "/home/ada/project"
CONTROL_PLANE = sorted(protected_names.CONTROL_PLANE_AT_ROOT | protected_names.CONTROL_PLANE_ANYWHERE)
STEERING = sorted(protected_names.STEERING_NAMES)
SECRETS = [
    *sorted(protected_names.UNREADABLE_NAMES),
    ".env.local",
    ".env.production",
    *("x" + end for end in protected_names.UNREADABLE_SUFFIXES),
]
DOTS = ".\u2024\ufe52\uff0e"
BLANKS = ". \t\uff0e\u00a0\u2003\u3000\u200b"
IGNORED = "\u00ad\u034f\u115f\u17b4\u180b\u200b\u200c\u200d\u200e\u202e\u2060\u2066\u3164\ufe0f\ufeff\uffa0\U000e0041"
REFUSALS = {"INVALID_INPUT_VALUE", "INVALID_PATH", "PATH_TRAVERSAL_BLOCKED", "OUTSIDE_WORKSPACE"}
LOOK_ALIKES = {"k": "\u212a", "s": "\u017f", "a": "\u1d43", "e": "\u2091", "i": "\u2170", "v": "\u2174"}

name_characters = st.characters(exclude_characters="/\0", exclude_categories=["Cs"])
names = st.text(name_characters, min_size=1, max_size=60).filter(lambda name: name not in {".", ".."})
good_paths = st.lists(names, max_size=8).map(tuple).map(RelPath)


def code_of(text, root=WORKSPACE, reader=parse):
    with pytest.raises(errors.SystemError) as caught:
        reader(text, root)
    return caught.value.error_code


@st.composite
def look_alikes(draw, protected):
    """Another spelling of a protected name that some file system or reader takes for the same name."""
    spelled = []
    for letter in draw(st.sampled_from(protected)):
        choices = [letter, letter.upper(), LOOK_ALIKES.get(letter, letter)]
        choices += list(DOTS) if letter == "." else [chr(ord(letter) + 0xFEE0)]
        spelled.append(draw(st.sampled_from(choices)))
        spelled.append(draw(st.text(IGNORED, max_size=1)))
    return "".join(spelled) + draw(st.text(BLANKS, max_size=3))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a", ("a",)),
        ("./a", ("a",)),
        ("a//b", ("a", "b")),
        ("a/./b/", ("a", "b")),
        (".", ()),
        ("./.", ()),
        (WORKSPACE, ()),
        (f"{WORKSPACE}/", ()),
        (f"{WORKSPACE}/a/b", ("a", "b")),
        (" a ", (" a ",)),
        ("~/a", ("~", "a")),
        ("a%2Fb", ("a%2Fb",)),
        ('"a"', ('"a"',)),
        ("a\\..\\b", ("a\\..\\b",)),
        ("...", ("...",)),
        ("e\u0301", ("e\u0301",)),
        ("a\nb", ("a\nb",)),
        ("é" * 127, ("é" * 127,)),
        ("x" * 255, ("x" * 255,)),
    ],
)
def test_a_path_is_parsed_without_changing_its_names(text, parts):
    assert parse(text, WORKSPACE).parts == parts


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "INVALID_INPUT_VALUE"),
        ("a\0b", "INVALID_PATH"),
        ("a\ud800", "INVALID_PATH"),
        ("x" * 256, "INVALID_PATH"),
        ("é" * 128, "INVALID_PATH"),
        ("a/" * 2047 + "ab", "INVALID_PATH"),
        ("..", "PATH_TRAVERSAL_BLOCKED"),
        ("a/../b", "PATH_TRAVERSAL_BLOCKED"),
        ("../", "PATH_TRAVERSAL_BLOCKED"),
        (f"{WORKSPACE}/../other", "PATH_TRAVERSAL_BLOCKED"),
        ("/etc/passwd", "OUTSIDE_WORKSPACE"),
        ("/", "OUTSIDE_WORKSPACE"),
        (f"{WORKSPACE}2/a", "OUTSIDE_WORKSPACE"),
        ("/home/ada", "OUTSIDE_WORKSPACE"),
        (f"/{WORKSPACE}/a", "OUTSIDE_WORKSPACE"),
        ("/home//ada/project/a", "OUTSIDE_WORKSPACE"),
        ("/HOME/ada/project/a", "OUTSIDE_WORKSPACE"),
    ],
)
def test_an_invalid_path_is_refused_with_its_code(text, code):
    assert code_of(text) == code


def test_a_path_of_the_maximum_length_is_accepted():
    text = "a/" * 2047 + "a"

    assert len(text) == rel_path.MAX_PATH
    assert str(parse(text)) == text


def test_without_a_root_every_absolute_path_is_outside():
    assert code_of(f"{WORKSPACE}/a", None) == "OUTSIDE_WORKSPACE"


def test_with_the_root_directory_as_workspace_every_absolute_path_is_inside():
    assert parse("/etc/passwd", "/").parts == ("etc", "passwd")


@pytest.mark.parametrize("part", ["", ".", "..", "a/b", "a\0"])
def test_a_path_cannot_be_constructed_from_an_invalid_name(part):
    with pytest.raises(ValueError, match="not a name"):
        RelPath(("a", part))


def test_name_parent_and_child_of_a_path():
    path = RelPath(("a", "b"))

    assert (path.name, path.parent, path / "c") == ("b", RelPath(("a",)), RelPath(("a", "b", "c")))
    assert (str(ROOT), ROOT.name, ROOT.parent) == (".", "", ROOT)


@given(good_paths)
def test_the_text_of_a_path_parses_to_the_same_path(path):
    assert parse(str(path)) == path
    assert parse(f"{WORKSPACE}/{path}", WORKSPACE) == path
    assert RelPath.from_bytes(path.to_bytes()) == path


@given(st.lists(st.binary(min_size=1, max_size=20).filter(lambda raw: not {0, 47} & set(raw)), min_size=1))
def test_names_of_any_bytes_survive_decoding_and_encoding(raw):
    raw = [name for name in raw if name not in {b".", b".."}]

    assert RelPath.from_bytes(b"/".join(raw)).to_bytes() == (b"/".join(raw) or b".")


@given(st.text())
def test_any_text_parses_to_a_valid_path_or_is_refused(text):
    try:
        unexpected = {"", ".", ".."} & set(parse(text, WORKSPACE).parts)
    except errors.SystemError as error:
        unexpected = {error.error_code} - REFUSALS

    assert not unexpected


@given(good_paths)
def test_a_uri_parses_to_its_path_and_equals_pathlibs(path):
    uri = to_uri(WORKSPACE, path)

    assert parse_uri(uri, WORKSPACE) == path
    assert uri == (pathlib.PurePosixPath(WORKSPACE) / str(path)).as_uri()


def test_uris_of_the_root_directory_and_of_non_utf8_bytes():
    assert to_uri("/", ROOT) == "file:///"
    assert to_uri("/", RelPath(("a b",))) == "file:///a%20b"
    assert to_uri("/w", RelPath((os.fsdecode(b"\xff"),))) == "file:///w/%FF"


@pytest.mark.parametrize(
    "uri",
    [
        f"file://{WORKSPACE}/a%20b",
        f"file:{WORKSPACE}/a%20b",
        f"FILE://localhost{WORKSPACE}/./a%20b",
        f"file://{WORKSPACE}/%61%20b",
    ],
)
def test_all_forms_of_a_file_uri_are_accepted(uri):
    assert parse_uri(uri, WORKSPACE).parts == ("a b",)


@pytest.mark.parametrize(
    ("uri", "code"),
    [
        ("/etc/hosts", "INVALID_INPUT_FORMAT"),
        ("a.py", "INVALID_INPUT_FORMAT"),
        ("", "INVALID_INPUT_FORMAT"),
        ("http://x", "INVALID_INPUT_FORMAT"),
        ("file:", "INVALID_INPUT_FORMAT"),
        ("file:a.py", "INVALID_INPUT_FORMAT"),
        ("file://elsewhere/a.py", "INVALID_INPUT_FORMAT"),
        (f"file://{WORKSPACE}/a?b", "INVALID_INPUT_FORMAT"),
        (f"file://{WORKSPACE}/a#b", "INVALID_INPUT_FORMAT"),
        (f"file://{WORKSPACE}/a%2", "INVALID_INPUT_FORMAT"),
        (f"file://{WORKSPACE}/a%2Fb", "INVALID_PATH"),
        (f"file://{WORKSPACE}/a%00b", "INVALID_PATH"),
        (f"file://{WORKSPACE}/a%FF", "INVALID_PATH"),
        (f"file://{WORKSPACE}/a\udcff", "INVALID_PATH"),
        (f"file://{WORKSPACE}/%2E%2E/b", "PATH_TRAVERSAL_BLOCKED"),
        ("file:///etc/hosts", "OUTSIDE_WORKSPACE"),
        (f"file://{WORKSPACE}2/a", "OUTSIDE_WORKSPACE"),
    ],
)
def test_an_invalid_uri_is_refused_with_its_code(uri, code):
    assert code_of(uri, reader=parse_uri) == code


@given(st.text(name_characters))
def test_a_skeleton_is_idempotent_and_ignores_case_and_unicode_form(name):
    skeleton = confusables.skeleton(name)

    assert confusables.skeleton(skeleton) == skeleton
    assert confusables.skeleton(unicodedata.normalize("NFKC", name)) == skeleton
    assert confusables.skeleton(unicodedata.normalize("NFKD", name)) == skeleton
    assert confusables.skeleton(name.casefold()) == skeleton


@given(look_alikes(CONTROL_PLANE), st.text(BLANKS, max_size=2))
def test_look_alikes_of_control_plane_names_are_control_plane(name, tail):
    assert protected_names.is_control_plane(RelPath((name + tail,)))
    assert protected_names.is_control_plane(RelPath((name, "below")))


@given(look_alikes(sorted(protected_names.CONTROL_PLANE_ANYWHERE)), good_paths)
def test_git_names_are_control_plane_at_any_depth(name, above):
    assert protected_names.is_control_plane(RelPath((*above.parts, name, "config")))


@pytest.mark.parametrize("name", ["git~1", "GIT~1", "\uff27it~1", "git~1."])
def test_the_short_name_of_git_is_control_plane(name):
    assert protected_names.is_control_plane(RelPath(("vendored", name, "hooks")))


@given(look_alikes(STEERING), good_paths)
def test_look_alikes_of_steering_names_are_steering(name, above):
    part = protected_names.find_steering_part(RelPath((*above.parts, name, "below")))

    assert part is not None
    assert len(part.parts) <= len(above.parts) + 1


@given(look_alikes([".github"]), look_alikes(["workflows", "hooks"]))
def test_look_alikes_of_workflow_directories_are_steering(first, second):
    assert protected_names.find_steering_part(RelPath(("a", first, second, "ci.yml"))) == RelPath(("a", first, second))


def test_the_outermost_steering_part_is_returned_as_spelled():
    assert protected_names.find_steering_part(parse("a/.Claude/.vscode/x")) == RelPath(("a", ".Claude"))
    assert protected_names.find_steering_part(parse("docs/agents.MD")) == parse("docs/agents.MD")


@given(look_alikes(SECRETS), good_paths)
def test_look_alikes_of_secret_names_are_unreadable(name, above):
    assert protected_names.is_unreadable(RelPath((*above.parts, name)))
    assert protected_names.is_unreadable(RelPath((*above.parts, name, "below")))


@pytest.mark.parametrize(
    "text",
    ["src/plans", "src/audit/a", "kaiza.toml.bak", "git", ".gitignore", ".github/x.md", "docs/workflows/a", "AGENTS"],
)
def test_similar_names_are_not_protected(text):
    assert not protected_names.is_control_plane(parse(text))
    assert protected_names.find_steering_part(parse(text)) is None


@pytest.mark.parametrize(
    "text", [".env.example", "a/.env.test", "b/.env.sample", ".env.template", "key.py", ".envoy", "pem", "id_rsa.pub"]
)
def test_similar_names_are_readable(text):
    assert not protected_names.is_unreadable(parse(text))


def test_the_root_is_neither_protected_nor_unreadable():
    assert not protected_names.is_control_plane(ROOT)
    assert protected_names.find_steering_part(ROOT) is None
    assert not protected_names.is_unreadable(ROOT)


class Wildcard:
    def __init__(self, pattern):
        self.pattern = pattern

    def matches(self, parts):
        return fnmatchcase("/".join(parts), self.pattern)


def test_a_denied_directory_makes_its_content_unreadable():
    deny = [Wildcard("vault"), Wildcard("*.secret")]

    assert protected_names.is_secret(parse("vault/deep/a.txt"), deny)
    assert protected_names.is_secret(parse("a/b.secret"), deny)
    assert not protected_names.is_secret(parse("a/vault.txt"), deny)


def test_allow_exempts_exact_paths_only_and_never_kaizas_own():
    allow = {"certs/dev.pem", ".kaiza/objects", "vault/a"}

    assert not protected_names.is_secret(parse("certs/dev.pem"), allow=allow)
    assert protected_names.is_secret(parse("certs/Dev.pem"), allow=allow)
    assert not protected_names.is_secret(parse("vault/a"), [Wildcard("vault*")], allow)
    assert protected_names.is_secret(parse(".kaiza/objects"), allow=allow)
