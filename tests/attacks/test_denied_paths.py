"""What is denied is denied in every spelling that a file system or a reader takes for the same, by every tool."""

import base64
import unicodedata
from functools import partial

import pytest
from agents import plan, sha
from hypothesis import example, given
from hypothesis import strategies as st

from kaiza.app import App
from kaiza.domain.paths import name_folding
from kaiza.domain.paths.denial import DenyGlob
from kaiza.domain.paths.glob import Glob

MINE = sha(b"mine\n")
SCOPE = '{{modify: ["**"], create: ["**"], delete: ["**"], move: [{{from: "**", to: "**"}}], deny: ["{denied}"]}}'
PHASES = 'phases: [{{phase_id: A, scope: {{modify: ["**"], create: ["**"], delete: ["**"], move: [{{from: "**", to: "**"}}], deny: ["{denied}"]}}}}]\n'  # noqa: E501
FREELY = SCOPE.format(denied="nothing")
CASES = [
    ("src/keys/**", "src/keys/x"),
    ("src/keys/**", "src/Keys/x"),
    ("src/keys/**", "SRC/KEYS/x"),
    ("src/keys/**", "src/keys\u200b/x"),
    ("src/keys/**", "src/k\u00adeys/x"),
    ("src/keys/**", "src/keys./x"),
    ("src/keys/**", "src/keys /x"),
    ("src/keys/**", "src/\uff4b\uff45\uff59\uff53/x"),
    ("src/keys/**", "src/\u212aeys/x"),
    ("src/keys/**", "src/Keys/..."),
    ("src/Keys/**", "src/keys/x"),
    ("src/caf\u00e9/**", "src/cafe\u0301/x"),
    ("src/cafe\u0301/**", "src/caf\u00e9/x"),
    ("src/caf\u00e9/**", "src/CAFE\u0301/x"),
    ("src/cafe*/x", "src/CAF\u00c9s/x"),
    ("src/caf?/x", "src/CAFE\u0301/x"),
    ("src/stra\u00dfe/*", "src/STRASSE/x"),
    ("src/*.secret", "src/a.SECRET"),
    ("src/*.secret", "src/a.secret..."),
    ("src/*.", "src/A"),
    ("src/[a-c]x", "src/BX"),
    ("src/[\u00e9]x", "src/\u00c9x"),
    ("src/[A-C]x", "src/bx"),
    ("src/[!0-9]x", "src/Ax"),
    ("src/[!a]x", "src/ax"),
    ("src/\u00e9*", "src/\u00c9x"),
    ("**/[kK]eys/**", "a/\uff2beys/x"),
]
FREE = [
    ("src/keys/**", "src/key/x"),
    ("src/keys/**", "src/keys"),
    ("src/keys/**", "src/keys2/X"),
    ("src/*.secret", "src/a.Secrets"),
    ("src/caf?", "src/caf"),
    ("src/caf?", "src/Cafes"),
    ("src/[a-c]x", "src/Dx"),
    ("src/[!0-9]x", "src/1X"),
    ("src/[!aA]x", "src/ax"),
    ("src/?.py", "src/AB.py"),
    ("src/?\u00e9", "src/AB\u00e9"),
    ("src/A.*", "src/Ab"),
    ("src/caf\u00e9", "src/Cafe"),
]


def tools(path, plan_hash, **more):
    """Every change that names this path: as its file, as either end of a move, and the same through a patch."""
    new = f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"
    old = f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-mine\n+ours\n"
    gone = f"--- a/{path}\n+++ /dev/null\n@@ -1 +0,0 @@\n-mine\n"
    to = f"diff --git a/mine b/{path}\nsimilarity index 100%\nrename from mine\nrename to {path}\n"
    away = f"diff --git a/{path} b/new\nsimilarity index 100%\nrename from {path}\nrename to new\n"
    given = {"plan_hash": plan_hash, **more}
    yield "write_file", {"path": path, "content": "x\n", **given}
    yield "write_file", {"path": path, "content": "x\n", "expected_hash": MINE, **given}
    yield "edit_file", {"path": path, "expected_hash": MINE, "edits": [{"old_text": "mine", "new_text": "o"}], **given}
    yield "delete_file", {"path": path, "expected_hash": MINE, **given}
    yield "move_file", {"source": "mine", "destination": path, "expected_hash": MINE, **given}
    yield "move_file", {"source": path, "destination": "new", "expected_hash": MINE, **given}
    for patch in (new, old, gone, to, away):
        yield "apply_patch", {"patch": base64.b64encode(patch.encode()).decode(), "encoding": "base64", **given}


def envelopes(app, asked):
    for tool, arguments in asked:
        yield app.call(tool, arguments).envelope
        facts = next(iter(app.services.workspaces.values())).audit_state
        facts.locks.clear()
        facts.usage.clear()


def scene(workspace, path, *, there):
    (workspace / "mine").write_text("mine\n")
    if there:
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text("mine\n")


@pytest.mark.parametrize("whose", ["plan", "phase"])
@pytest.mark.parametrize("there", [True, False], ids=["there", "absent"])
@pytest.mark.parametrize(("denied", "path"), CASES)
def test_no_tool_changes_a_denied_path_in_another_spelling(begun, workspace, denied, path, there, whose):
    scene(workspace, path, there=there)
    if whose == "plan":
        asked = tools(path, plan(workspace, scope=SCOPE.format(denied=denied)))
    else:
        phased = plan(workspace, scope=FREELY, more=PHASES.format(denied=denied))
        asked = tools(path, phased, phase_id="A")
    found = [told and (told["error_code"], told["cause"].get("denied_by")) for told in envelopes(begun, asked)]
    patches = {("PATCH_INVALID", None), ("INVALID_PATH", None), ("PLAN_SCOPE_VIOLATION", denied)}

    assert set(found[:6]) == {("PLAN_SCOPE_VIOLATION", denied)}
    assert set(found[6:]) <= patches
    assert (workspace / "mine").read_text() == "mine\n"
    assert not there or (workspace / path).read_text() == "mine\n"


@pytest.mark.parametrize(("denied", "path"), FREE)
def test_a_different_name_is_not_denied(begun, workspace, denied, path):
    approved = plan(workspace, scope=SCOPE.format(denied=denied))

    assert begun.call("write_file", {"path": path, "content": "x\n", "plan_hash": approved}).envelope is None


@pytest.fixture
def reader(workspace):
    """Makes a session in a workspace whose settings deny a pattern."""
    opened = []

    def begin(denied, *more):
        (workspace / "kaiza.toml").write_text(f'deny_read = ["{denied}"]\n' + "\n".join(more))
        opened.append(App([str(workspace)]))
        opened[-1].call("begin_session", {"role": "WINDSURF"})
        return opened[-1]

    yield begin
    for app in opened:
        app.close()


@pytest.mark.parametrize(("denied", "path"), CASES)
def test_a_path_denied_for_reading_is_unreadable_in_every_spelling(reader, workspace, denied, path):
    scene(workspace, path, there=True)
    app = reader(denied)
    told = app.call("read_file", {"path": path}).envelope
    found = app.call("search_text", {"query": "mine"}).output["items"]

    assert (told["error_code"], told["invariant_id"]) == ("POLICY_VIOLATION", "READ_PROTECTED")
    assert [hit["path"] for hit in found] == ["mine"]


@pytest.mark.parametrize("path", ["open/x", "src/Keys/x"])
def test_read_denials_apply_to_a_link_and_to_its_target(reader, workspace, path):
    scene(workspace, "src/Keys/x", there=True)
    (workspace / "open").symlink_to("src/Keys")
    (workspace / "Vault").symlink_to("mine-too")
    (workspace / "mine-too").write_text("mine\n")
    app = reader('src/keys/**", "vault')

    assert app.call("read_file", {"path": path}).envelope["invariant_id"] == "READ_PROTECTED"
    assert app.call("read_file", {"path": "Vault"}).envelope["invariant_id"] == "READ_PROTECTED"
    assert app.call("read_file", {"path": "mine-too"}).envelope is None


def test_allowed_paths_are_allowed_only_as_spelled(begun, reader, workspace):
    narrow = plan(workspace, scope='{create: ["src/keys/*"], unlock: ["AGENTS.md"]}')
    found = [
        begun.call("write_file", {"path": path, "content": "x\n", "plan_hash": narrow, "dry_run": True}).envelope
        for path in ("src/keys/x", "src/Keys/x", "src/keys./x", "agents.md")
    ]
    scene(workspace, "vault/a", there=True)
    scene(workspace, "Vault/a", there=True)
    app = reader("vault/*", 'allow_read = ["vault/a"]')

    assert [told and told["error_code"] for told in found] == [None, *["PLAN_SCOPE_VIOLATION"] * 2, "POLICY_VIOLATION"]
    assert app.call("read_file", {"path": "vault/a"}).envelope is None
    assert app.call("read_file", {"path": "Vault/a"}).envelope["invariant_id"] == "READ_PROTECTED"


_letters = "abkKsSzé\u0301ßﬁ\u212a\uff21\uff11.~ -\u200b\u0130한"
_name = st.text(_letters, min_size=1, max_size=5).filter(lambda name: name not in {".", ".."})
_paths = st.lists(_name, min_size=1, max_size=4).map("/".join)
_piece = st.lists(
    st.one_of(st.sampled_from(["*", "?", "[a-k]", "[!a]", "[é]", "[!0-9]"]), st.sampled_from(_letters)), min_size=1,
    max_size=4,
).map("".join)  # fmt: skip
_patterns = st.lists(
    st.one_of(_piece.filter(lambda piece: piece not in {".", ".."}), st.just("**")), min_size=1, max_size=4
).map("/".join)


@given(_patterns, _paths)
def test_a_deny_glob_matches_whatever_its_plain_glob_matches(pattern, path):
    assert DenyGlob.parse(pattern).matches_text(path) >= Glob.parse(pattern).matches_text(path)


def _wide(text):
    return "".join(chr(ord(each) + 0xFEE0) if each.isascii() and each.isalnum() else each for each in text)


DISGUISES = [
    str.upper,
    str.lower,
    str.swapcase,
    partial(unicodedata.normalize, "NFC"),
    partial(unicodedata.normalize, "NFD"),
    lambda path: path.replace("/", "./"),
    lambda path: path + " ",
    lambda path: path.replace("k", "\u200bk"),
]
_plain_name = st.text("abkKzé한-", min_size=1, max_size=5)


@pytest.mark.parametrize("disguise", [*DISGUISES, _wide])
@given(
    pattern=st.lists(
        st.one_of(
            st.lists(
                st.one_of(st.sampled_from(["*", "?", "[a-k]", "[!a]", "[b-zé]"]), st.sampled_from("abkKé한-")),
                min_size=1,
                max_size=3,
            ).map("".join),
            st.just("**"),
        ),
        min_size=1,
        max_size=3,
    ).map("/".join),
    path=st.lists(_plain_name, min_size=1, max_size=3).map("/".join),
)
@example(pattern="e*", path="é")
@example(pattern="?/k", path="é/k")
def test_a_deny_glob_matches_disguised_paths(pattern, path, disguise):
    if Glob.parse(pattern).matches_text(path):
        assert DenyGlob.parse(pattern).matches_text(disguise(path))


@given(_paths)
def test_equivalent_spellings_of_a_path_have_one_fold(path):
    folded = name_folding.fold(path)

    assert name_folding.fold(folded) == folded
    assert {name_folding.fold(disguise(path)) for disguise in DISGUISES[3:5]} == {folded}


@given(st.lists(st.text("ab12_-", min_size=1), min_size=1).map("/".join))
def test_a_plain_ascii_path_is_its_own_fold(path):
    assert name_folding.fold(path) == path
