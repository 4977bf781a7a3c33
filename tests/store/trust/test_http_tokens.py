"""Tokens for HTTP: which strings authorise, and which files do not."""

import json
import os
import shutil
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from scenes import bind, make_ready

from kaiza.store.disk import state_dir
from kaiza.store.trust import http_tokens
from kaiza.store.trust.http_tokens import HttpToken, TokenAuthenticator, new_token, read_tokens, save_tokens

NOON = "2026-11-18T12:00:00.000Z"
LATER = "2026-11-19T12:00:00.000Z"


@pytest.fixture
def root(tmp_path):
    return os.path.realpath(bind(make_ready(tmp_path / "project")))


def give(root, name="ann", role=None, created=NOON, expires=LATER):
    """Make a token as `kaiza token new` does."""
    token, kept = new_token(name, role, created, expires)
    save_tokens(root, (*read_tokens(root).tokens, kept))
    return token


def file_of(root):
    return state_dir.path_of(root) / http_tokens.FILE.name


def at(now, *roots):
    return TokenAuthenticator(roots, clock=lambda: now)


def edit(root, change):
    """Edit the tokens' file as another program could."""
    document = json.loads(file_of(root).read_bytes())
    change(document)
    file_of(root).write_text(json.dumps(document))


def test_a_token_names_its_principal_workspace_and_role(root):
    token = give(root, "ann", "WINDSURF")
    principal = at(NOON, root).authenticate(token)

    assert (principal.workspace_root, principal.role) == (root, "WINDSURF")
    assert principal.label == f"ann#{read_tokens(root).tokens[0].digest[:8]}"


def test_no_token_is_kept_and_only_its_owner_can_read_the_file(root):
    token = give(root)
    at(NOON, root).authenticate(token)
    kept = b"".join(path.read_bytes() for path in file_of(root).parent.glob("http*"))

    assert token.encode() not in kept
    assert {path.stat().st_mode & 0o777 for path in file_of(root).parent.glob("http*")} == {0o600}


@pytest.mark.parametrize(
    "change",
    [
        lambda token: token + "\n",
        lambda token: " " + token,
        lambda token: token[:-1],
        lambda token: token + "A",
        lambda token: token.swapcase(),
        lambda token: token.upper(),
        lambda token: "KZ_" + token[3:],
        lambda token: token[3:],
        lambda token: token + "=",
        lambda _: "",
        lambda _: "kz_",
        lambda _: "kz_" + "\u0661" * 43,
        lambda _: "kz_" + "\ud800" * 43,
        lambda token: token + "\0",
        lambda token: token + "\ud800",
        lambda token: token[:20] + "\0" + token[21:],
    ],
)
def test_only_the_exact_token_authorises(root, change):
    token = give(root)
    authenticator = at(NOON, root)

    assert authenticator.authenticate(change(token)) is None
    assert authenticator.authenticate(token) is not None


@pytest.mark.parametrize("position", [0, 7, 8, 31, 32, 63])
def test_a_token_whose_hash_differs_in_one_digit_does_not_authorise(root, position):
    def change(document):
        kept = document["tokens"][0]
        digest = kept["digest"]
        kept["digest"] = f"{digest[:position]}{int(digest[position], 16) ^ 1:x}{digest[position + 1 :]}"

    token = give(root)
    edit(root, change)

    assert read_tokens(root).problem is None
    assert at(NOON, root).authenticate(token) is None


def test_a_hash_in_place_of_a_token_authorises_nothing(root):
    give(root)

    assert at(NOON, root).authenticate(read_tokens(root).tokens[0].digest) is None
    assert at(NOON, root).authenticate("kz_" + read_tokens(root).tokens[0].digest[:43]) is None


@pytest.mark.parametrize(
    ("now", "is_valid"),
    [
        ("2026-11-18T11:59:59.999Z", False),
        (NOON, True),
        ("2026-11-19T11:59:59.999Z", True),
        (LATER, False),
        ("2027-01-01T00:00:00.000Z", False),
    ],
    ids=["clock set back", "at once", "just before its end", "at its end", "after its end"],
)
def test_a_token_is_valid_from_its_creation_until_its_end(root, now, is_valid):
    token = give(root)

    assert (at(now, root).authenticate(token) is not None) is is_valid


def test_a_revoked_token_is_called_revoked_after_its_end_too(root):
    give(root)
    (revoked,) = read_tokens(root).revoke("ann", NOON).tokens

    assert [revoked.state_at(now) for now in (NOON, LATER)] == ["revoked", "revoked"]


def test_a_token_expires_while_the_server_runs(root):
    times = [NOON, LATER]
    token = give(root)
    authenticator = TokenAuthenticator([root], clock=lambda: times.pop(0))

    assert [authenticator.authenticate(token) is not None for _ in range(2)] == [True, False]


def test_a_revoked_token_is_refused_by_a_server_that_accepted_it(root):
    token, other = give(root), give(root, "bob")
    authenticator = at(NOON, root)
    before = [authenticator.authenticate(each) is not None for each in (token, other)]
    save_tokens(root, read_tokens(root).revoke("ann", NOON).tokens)

    assert before == [True, True]
    assert [authenticator.authenticate(each) is not None for each in (token, other)] == [False, True]


def test_a_token_that_is_made_while_the_server_runs_is_accepted(root):
    authenticator = at(NOON, root)
    assert authenticator.authenticate("kz_" + "A" * 43) is None

    assert authenticator.authenticate(give(root)) is not None


def test_a_token_of_one_workspace_is_that_workspaces_principal_where_several_are_served(root, tmp_path):
    other = os.path.realpath(bind(make_ready(tmp_path / "other")))
    tokens = {each: give(each) for each in (root, other)}
    authenticator = at(NOON, root, other)

    assert {authenticator.authenticate(token).workspace_root for token in tokens.values()} == {root, other}
    assert at(NOON, root).authenticate(tokens[other]) is None


def as_link(path):
    path.rename(path.with_name("moved"))
    path.symlink_to(path.with_name("moved"))


def as_fifo(path):
    path.unlink()
    os.mkfifo(path, 0o600)


def as_directory(path):
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "spoil",
    [
        as_link,
        as_fifo,
        as_directory,
        lambda path: path.chmod(0o640),
        lambda path: path.chmod(0o606),
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"[]"),
        lambda path: path.write_bytes(b"\xff"),
    ],
    ids=["link", "fifo", "directory", "group", "others", "cut", "empty", "list", "bytes"],
)
def test_no_token_is_valid_once_the_file_is_not_what_kaiza_wrote(root, spoil):
    token = give(root)
    authenticator = at(NOON, root)
    before = authenticator.authenticate(token)
    spoil(file_of(root))

    assert before is not None
    assert authenticator.authenticate(token) is None
    assert read_tokens(root).problem is not None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_no_token_is_valid_in_a_file_of_another_account(root):
    token = give(root)
    os.chown(file_of(root), 65534, 65534)

    assert at(NOON, root).authenticate(token) is None
    assert read_tokens(root).problem is not None


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document.update(format=2),
        lambda document: document["tokens"].append(document["tokens"][0]),
        lambda document: document["tokens"][0].update(name="\0"),
        lambda document: document["tokens"][0].update(name="ann\n"),
        lambda document: document["tokens"][0].update(name="Ann\x1b[2J"),
        lambda document: document["tokens"][0].update(expires="never"),
        lambda document: document["tokens"][0].update(expires=None),
        lambda document: document["tokens"][0].update(revoked=""),
        lambda document: document["tokens"][0].update(role="ADMIN"),
        lambda document: document["tokens"][0].update(more=1),
        lambda document: document["tokens"].append({}),
        lambda document: document["tokens"].append({**document["tokens"][0], "name": "bob", "digest": "é" * 64}),
        lambda document: document["tokens"].append({**document["tokens"][0], "name": "bob", "digest": 7}),
    ],
)
def test_one_entry_that_kaiza_did_not_write_invalidates_all_tokens(root, change):
    token = give(root)
    edit(root, change)

    assert at(NOON, root).authenticate(token) is None
    assert read_tokens(root).problem is not None


@pytest.mark.parametrize("workspace_id", [None, "0" * 32])
def test_tokens_of_another_workspace_at_this_path_authorise_nothing(root, workspace_id):
    token = give(root)
    edit(root, lambda document: document.update(workspace=workspace_id))

    assert at(NOON, root).authenticate(token) is None
    assert read_tokens(root) == http_tokens.TokenList()


def test_tokens_of_no_workspace_are_not_those_of_a_workspace_without_an_id(root):
    give(root)
    edit(root, lambda document: document.update(workspace=None))
    (state_dir.path_of(root) / "workspace.json").unlink()

    assert read_tokens(root) == http_tokens.TokenList()


def test_tokens_authorise_nothing_once_a_workspace_from_elsewhere_is_at_the_path(root):
    token = give(root)
    authenticator = at(NOON, root)
    before = authenticator.authenticate(token)
    Path(root, ".kaiza/id").write_text("f" * 32 + "\n")

    assert before is not None
    assert authenticator.authenticate(token) is None


def test_a_copy_of_the_workspace_has_no_tokens(root, tmp_path):
    token = give(root)
    shutil.copytree(root, tmp_path / "copy")

    assert at(NOON, str(tmp_path / "copy")).authenticate(token) is None


def test_the_last_use_of_each_token_is_kept_to_the_minute(root):
    tokens = {name: give(root, name) for name in ("ann", "bob")}
    authenticator = TokenAuthenticator([root], clock=iter([NOON, "2026-11-18T12:00:09.000Z", NOON]).__next__)
    labels = [authenticator.authenticate(tokens[name]).label for name in ("ann", "ann", "bob")]

    assert http_tokens.read_uses(root) == {labels[0]: NOON, labels[2]: NOON}


def test_a_use_that_cannot_be_written_fails_no_request(root):
    token = give(root)
    (state_dir.path_of(root) / http_tokens.USES.name).mkdir()

    assert at(NOON, root).authenticate(token) is not None
    assert http_tokens.read_uses(root) == {}


@pytest.mark.parametrize("content", [b"", b"[]", b'{"format": 1, "uses": {"ann#00000000": 7}}', b"\xff"])
def test_unreadable_uses_count_as_none(root, content):
    give(root)
    path = state_dir.path_of(root) / http_tokens.USES.name
    path.write_bytes(content)
    path.chmod(0o600)

    assert http_tokens.read_uses(root) == {}


def test_the_last_of_ten_thousand_tokens_is_found(root):
    end = datetime.fromisoformat(NOON)
    rows = [
        HttpToken(f"t{n}", f"{n:064x}", None, NOON, (end + timedelta(days=n % 9 + 1)).isoformat()[:19] + ".000Z")
        for n in range(http_tokens.MAX_TOKENS - 1)
    ]
    save_tokens(root, rows)
    token = give(root, "last")

    assert at(NOON, root).authenticate(token).label.startswith("last#")
    assert len(read_tokens(root).tokens) == http_tokens.MAX_TOKENS
