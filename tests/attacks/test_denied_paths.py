"""Denied paths are denied to every tool in every spelling that a file system or a reader takes for the same."""

import base64
import unicodedata
from functools import partial

import pytest
from agents import plan, sha
from hypothesis import example, given
from hypothesis import strategies as st
from scenes import write_adopted_settings

from kaiza.app import App
from kaiza.domain.paths.denial import DenyGlob
from kaiza.domain.paths.glob import Glob

OLD_HASH = sha(b"mine\n")
SCOPE = '{{modify: ["**"], create: ["**"], delete: ["**"], move: [{{from: "**", to: "**"}}], deny: ["{denied}"]}}'
PHASES = 'phases: [{{phase_id: A, scope: {{modify: ["**"], create: ["**"], delete: ["**"], move: [{{from: "**", to: "**"}}], deny: ["{denied}"]}}}}]\n'  # noqa: E501
ALLOW_ALL = SCOPE.format(denied="nothing")
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
NOT_DENIED = [
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


def changing_calls(path, plan_hash, **more):
    """Every call that would change this path: directly, as either end of a move, and through a patch."""
    new = f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"
    old = f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-mine\n+ours\n"
    deleted = f"--- a/{path}\n+++ /dev/null\n@@ -1 +0,0 @@\n-mine\n"
    moved_to = f"diff --git a/mine b/{path}\nsimilarity index 100%\nrename from mine\nrename to {path}\n"
    moved_away = f"diff --git a/{path} b/new\nsimilarity index 100%\nrename from {path}\nrename to new\n"
    common = {"plan_hash": plan_hash, **more}
    yield "write_file", {"path": path, "content": "x\n", **common}
    yield "write_file", {"path": path, "content": "x\n", "expected_hash": OLD_HASH, **common}
    yield (
        "edit_file",
        {"path": path, "expected_hash": OLD_HASH, "edits": [{"old_text": "mine", "new_text": "o"}], **common},
    )
    yield "delete_file", {"path": path, "expected_hash": OLD_HASH, **common}
    yield "move_file", {"source": "mine", "destination": path, "expected_hash": OLD_HASH, **common}
    yield "move_file", {"source": path, "destination": "new", "expected_hash": OLD_HASH, **common}
    for patch in (new, old, deleted, moved_to, moved_away):
        yield "apply_patch", {"patch": base64.b64encode(patch.encode()).decode(), "encoding": "base64", **common}


def envelopes(app, calls):
    """The envelope of each call, with locks and usage cleared in between."""
    for tool, arguments in calls:
        yield app.call(tool, arguments).envelope
        audit_state = next(iter(app.services.workspaces.values())).audit_state
        audit_state.locks.clear()
        audit_state.usage.clear()


def write_files(workspace, path, *, exists):
    (workspace / "mine").write_text("mine\n")
    if exists:
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text("mine\n")


@pytest.mark.parametrize(
    ("denied", "path", "exists", "whose"),
    [
        *((*case, exists, "plan") for case in CASES for exists in (True, False)),
        *((*case, True, "phase") for case in CASES[:3]),
    ],
)
def test_no_tool_changes_a_denied_path_in_another_spelling(begun, workspace, denied, path, exists, whose):
    write_files(workspace, path, exists=exists)
    if whose == "plan":
        calls = changing_calls(path, plan(workspace, scope=SCOPE.format(denied=denied)))
    else:
        phased = plan(workspace, scope=ALLOW_ALL, more=PHASES.format(denied=denied))
        calls = changing_calls(path, phased, phase_id="A")
    results = [each and (each["error_code"], each["cause"].get("denied_by")) for each in envelopes(begun, calls)]
    patch_results = {("PATCH_INVALID", None), ("INVALID_PATH", None), ("PLAN_SCOPE_VIOLATION", denied)}

    assert set(results[:6]) == {("PLAN_SCOPE_VIOLATION", denied)}
    assert set(results[6:]) <= patch_results
    assert (workspace / "mine").read_text() == "mine\n"
    assert not exists or (workspace / path).read_text() == "mine\n"


@pytest.mark.parametrize(("denied", "path"), NOT_DENIED)
def test_a_different_name_is_not_denied(begun, workspace, denied, path):
    approved = plan(workspace, scope=SCOPE.format(denied=denied))

    assert begun.call("write_file", {"path": path, "content": "x\n", "plan_hash": approved}).envelope is None


@pytest.fixture
def reader(workspace):
    """Opens a session in a workspace whose settings deny reading a pattern."""
    opened = []

    def begin(denied, *more):
        write_adopted_settings(workspace, f'deny_read = ["{denied}"]\n' + "\n".join(more))
        opened.append(App([str(workspace)]))
        opened[-1].call("begin_session", {"role": "WINDSURF"})
        return opened[-1]

    yield begin
    for app in opened:
        app.close()


@pytest.mark.parametrize(("denied", "path"), CASES)
def test_a_path_denied_for_reading_is_unreadable_in_every_spelling(reader, workspace, denied, path):
    write_files(workspace, path, exists=True)
    app = reader(denied)
    envelope = app.call("read_file", {"path": path}).envelope
    hits = app.call("search_text", {"query": "mine"}).output["items"]

    assert (envelope["error_code"], envelope["invariant_id"]) == ("POLICY_VIOLATION", "READ_PROTECTED")
    assert [hit["path"] for hit in hits] == ["mine"]


@pytest.mark.parametrize("path", ["open/x", "src/Keys/x"])
def test_read_denials_apply_to_a_link_and_to_its_target(reader, workspace, path):
    write_files(workspace, "src/Keys/x", exists=True)
    (workspace / "open").symlink_to("src/Keys")
    (workspace / "Vault").symlink_to("mine-too")
    (workspace / "mine-too").write_text("mine\n")
    app = reader('src/keys/**", "vault')

    assert app.call("read_file", {"path": path}).envelope["invariant_id"] == "READ_PROTECTED"
    assert app.call("read_file", {"path": "Vault"}).envelope["invariant_id"] == "READ_PROTECTED"
    assert app.call("read_file", {"path": "mine-too"}).envelope is None


def test_allowed_paths_are_allowed_only_as_spelled(begun, reader, workspace):
    narrow = plan(workspace, scope='{create: ["src/keys/*"], unlock: ["AGENTS.md"]}')
    written = [
        begun.call("write_file", {"path": path, "content": "x\n", "plan_hash": narrow, "dry_run": True}).envelope
        for path in ("src/keys/x", "src/Keys/x", "src/keys./x", "agents.md")
    ]
    write_files(workspace, "vault/a", exists=True)
    write_files(workspace, "Vault/a", exists=True)
    app = reader("vault/*", 'allow_read = ["vault/a"]')

    codes = [envelope and envelope["error_code"] for envelope in written]
    assert codes == [None, *["PLAN_SCOPE_VIOLATION"] * 2, "POLICY_VIOLATION"]
    assert app.call("read_file", {"path": "vault/a"}).envelope is None
    assert app.call("read_file", {"path": "Vault/a"}).envelope["invariant_id"] == "READ_PROTECTED"


def _to_full_width(text):
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


@pytest.mark.parametrize("disguise", [*DISGUISES, _to_full_width])
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
