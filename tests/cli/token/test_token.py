"""`kaiza token`: a person makes, lists and revokes the tokens of a workspace."""

import fcntl
import json
import os
import re
import subprocess
import sys
from contextlib import suppress
from datetime import datetime

import pytest
from scenes import bind, make_ready, records

from kaiza.app import App
from kaiza.domain import errors
from kaiza.domain.call import CallRequest
from kaiza.domain.caps import Caps
from kaiza.queries import workspaces
from kaiza.store.disk import lock_timeouts, state_dir
from kaiza.store.trust import http_tokens, identity
from kaiza.store.trust.http_tokens import HttpToken, TokenAuthenticator, read_tokens, save_tokens

TOKEN = re.compile(r"kz_[A-Za-z0-9_-]{43}")
LONG_NAME = "a" * 32


def tokens_file(workspace):
    return state_dir.path_of(str(workspace)) / http_tokens.FILE.name


def decisions(workspace):
    return [each["detail"] for each in records(workspace) if each["kind"] == "person"]


def make(kaiza, *words):
    done = kaiza("token", "new", *words)
    assert done.status == 0, done.err
    return done.out.strip()


def begin(app, principal):
    request = CallRequest("begin_session", {"role": "WINDSURF"}, conversational=False, principal=principal)
    return app.answer(app.stamp(request)).output["session_id"]


def test_new_prints_the_token_alone_and_once(workspace, kaiza):
    done = kaiza("token", "new", "ci", "--as", "Ann")

    assert done.status == 0
    assert TOKEN.fullmatch(done.out.removesuffix("\n"))
    assert done.out.strip() not in done.err
    assert TokenAuthenticator([str(workspace)]).authenticate(done.out.strip()).label.startswith("ci#")
    assert done.out.strip() not in kaiza("token", "list").out + kaiza("token", "list", "--json").out


def test_decisions_are_recorded_without_the_token_and_with_eight_digits_of_its_hash(workspace, kaiza):
    token = make(kaiza, "ci", "--as", "Ann", "--role", "WINDSURF")
    kaiza("token", "revoke", "ci", "--as", "Bob")
    kept = read_tokens(str(workspace)).tokens[0]

    assert decisions(workspace) == [
        {"action": "new_token", "person": "Ann", "token": kept.label, "role": "WINDSURF", "expires": kept.expires},
        {"action": "revoke_token", "person": "Bob", "token": kept.label, "sessions": 0},
    ]
    log = (workspace / "audit/audit-log.jsonl").read_text()
    assert token not in log
    assert kept.digest[:9] not in log


def test_json_has_the_token_and_what_it_is_for(workspace, kaiza):
    made = json.loads(make(kaiza, "ci", "--role", "ANTIGRAVITY", "--expires", "12h", "--json"))
    kept = read_tokens(str(workspace)).tokens[0]

    assert made == {
        "token": made["token"],
        "name": "ci",
        "principal": kept.label,
        "role": "ANTIGRAVITY",
        "expires": kept.expires,
        "workspace": str(workspace),
    }
    assert TokenAuthenticator([str(workspace)]).authenticate(made["token"]).role == "ANTIGRAVITY"


@pytest.mark.parametrize(
    ("lifetime", "hours"), [((), 90 * 24), (("--expires", "12h"), 12), (("--expires", "8w"), 1344)]
)
def test_a_token_expires_after_its_lifetime(workspace, kaiza, lifetime, hours):
    make(kaiza, "ci", *lifetime)
    kept = read_tokens(str(workspace)).tokens[0]
    lasts = datetime.fromisoformat(kept.expires) - datetime.fromisoformat(kept.created)

    assert lasts.total_seconds() == hours * 3600


def test_a_name_is_never_used_twice_not_even_after_its_token_was_revoked(workspace, kaiza):
    first = make(kaiza, "ci")
    again = kaiza("token", "new", "ci")
    kaiza("token", "revoke", "ci")
    after = kaiza("token", "new", "ci")

    assert (again.status, again.out, after.status, after.out) == (1, "", 1, "")
    assert [token.name for token in read_tokens(str(workspace)).tokens] == ["ci"]
    assert TokenAuthenticator([str(workspace)]).authenticate(first) is None


@pytest.mark.parametrize(
    "name", ["", "A", "ci ", "ci\n", "c\0i", "\x1b[2J", "-ci", ".ci", "ci/x", "\u0661", "é", "a#b", "a" * 33]
)
def test_a_name_that_could_confuse_a_reader_of_the_log_is_a_usage_error(workspace, kaiza, name):
    done = kaiza("token", "new", "--", name)

    assert (done.status, done.out) == (2, "")
    assert "\x1b" not in done.err
    assert records(workspace) == []


@pytest.mark.parametrize(
    "lifetime", ["0d", "3651d", "99999w", "1y", "d", "1.5d", "-1d", "\u0661d", "1d\n", " 1d", "never", ""]
)
def test_a_malformed_lifetime_is_a_usage_error(workspace, kaiza, lifetime):
    assert kaiza("token", "new", "ci", f"--expires={lifetime}").status == 2
    assert records(workspace) == []


def test_two_people_who_choose_one_name_at_once_get_one_token(workspace):
    command = [sys.executable, "-m", "kaiza", "token", "new", "ci"]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for _ in range(3)]
    printed = [process.communicate(timeout=60)[0].decode().strip() for process in started]

    assert sorted(process.returncode for process in started) == [0, 1, 1]
    assert TokenAuthenticator([str(workspace)]).authenticate("".join(printed)) is not None
    assert [each["action"] for each in decisions(workspace)] == ["new_token"]


def test_tokens_are_made_and_revoked_under_the_lock(workspace, kaiza, monkeypatch):
    saved = []

    def save(root, tokens):
        with pytest.raises(errors.SystemError), identity.lock_identity(state_dir.path_of(root)):
            pass
        save_tokens(root, tokens)
        saved.append(len(tokens))

    monkeypatch.setattr(lock_timeouts, "IDENTITY", 0.05)
    monkeypatch.setattr(http_tokens, "save_tokens", save)
    make(kaiza, "ci")
    kaiza("token", "revoke", "ci")

    assert saved == [1, 1]


def test_revoking_ends_the_sessions_and_holds_from_the_next_request(workspace, kaiza):
    token = make(kaiza, "ci")
    app, authenticator = App([str(workspace)]), TokenAuthenticator([str(workspace)])
    principal = authenticator.authenticate(token)
    sessions = [begin(app, principal) for _ in range(2)]
    revoked = json.loads(kaiza("token", "revoke", "ci", "--json").out)
    request = CallRequest("session_status", {"session_id": sessions[0]}, conversational=False, principal=principal)
    outcome = app.answer(app.stamp(request))
    app.close()

    assert revoked == {"name": "ci", "principal": principal.label, "sessions_ended": 2}
    assert authenticator.authenticate(token) is None
    assert outcome.envelope["error_code"] == "SESSION_NOT_INITIALIZED"
    listed = json.loads(kaiza("session", "list", "--json").out)["sessions"]
    assert {(each["state"], each["principal"]) for each in listed} == {("ended", principal.label)}
    assert json.loads(kaiza("status", "--json").out)["sessions"] == []


def test_a_token_that_is_not_there_or_revoked_cannot_be_revoked(workspace, kaiza):
    make(kaiza, "ci")
    kaiza("token", "revoke", "ci")

    assert [kaiza("token", "revoke", name).status for name in ("ci", "other")] == [1, 1]
    assert [each["action"] for each in decisions(workspace)] == ["new_token", "revoke_token"]


def test_revoking_works_under_settings_that_cannot_be_read_and_on_a_damaged_log(workspace, kaiza):
    token = make(kaiza, "ci")
    (workspace / "kaiza.toml").write_text("no settings")
    log = workspace / "audit/audit-log.jsonl"
    log.write_bytes(log.read_bytes().replace(b"new_token", b"old_token"))

    assert kaiza("token", "revoke", "ci").status == 0
    assert TokenAuthenticator([str(workspace)]).authenticate(token) is None


def test_a_token_is_revoked_while_the_log_is_locked_and_recorded_by_the_next_run(workspace, kaiza, monkeypatch):
    monkeypatch.setattr(workspaces, "Caps", lambda: Caps(audit_lock_ms=50))
    token = make(kaiza, "ci")
    with (workspace / "audit/audit-log.jsonl").open("rb") as log:
        fcntl.flock(log, fcntl.LOCK_EX)
        locked = kaiza("token", "revoke", "ci")
        authorised = TokenAuthenticator([str(workspace)]).authenticate(token)
    unrecorded = [each["action"] for each in decisions(workspace)]
    statuses = [kaiza("token", "revoke", "ci").status for _ in range(2)]

    assert (locked.status, authorised, unrecorded) == (3, None, ["new_token"])
    assert "Run the command again" in locked.err
    assert statuses == [0, 1]
    assert [each["action"] for each in decisions(workspace)] == ["new_token", "revoke_token"]


def test_a_revocation_that_a_full_disk_prevents_says_that_the_token_is_valid(tmp_path, kaiza, small_disk, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(small_disk))
    workspace = bind(make_ready(tmp_path / "other"))
    monkeypatch.chdir(workspace)
    token = make(kaiza, "ci")
    with suppress(OSError):
        (small_disk / "filler").write_bytes(b"x" * 1_000_000)
    failed = kaiza("token", "revoke", "ci")
    still_valid = TokenAuthenticator([str(workspace)]).authenticate(token) is not None
    (small_disk / "filler").unlink()

    assert (failed.status, still_valid) == (3, True)
    assert "ci is still valid" in failed.err
    assert kaiza("token", "revoke", "ci").status == 0


def test_no_token_is_made_in_a_workspace_from_elsewhere(workspace, kaiza):
    make(kaiza, "first")
    (workspace / ".kaiza/id").write_text("f" * 32 + "\n")
    done, listed = kaiza("token", "new", "ci"), kaiza("token", "list")

    assert (done.status, done.out) == (1, "")
    assert (listed.status, "kaiza adopt" in listed.err) == (1, True)
    assert json.loads(kaiza("token", "list", "--json").out)["problem"] is not None


def test_no_token_is_made_on_a_damaged_log(workspace, kaiza):
    make(kaiza, "first")
    log = workspace / "audit/audit-log.jsonl"
    log.write_bytes(log.read_bytes().replace(b"new_token", b"old_token"))
    done = kaiza("token", "new", "ci")

    assert (done.status, done.out) == (1, "")


def test_a_file_that_others_can_read_is_named_and_changed_by_nothing(workspace, kaiza):
    make(kaiza, "ci")
    tokens_file(workspace).chmod(0o644)
    before = tokens_file(workspace).read_bytes()
    done = [kaiza("token", *words) for words in (("new", "bob"), ("revoke", "ci"), ("list",))]

    assert [each.status for each in done] == [1, 1, 1]
    assert all(str(tokens_file(workspace)) in each.err and "chmod 600" in each.err for each in done)
    assert tokens_file(workspace).read_bytes() == before
    assert json.loads(kaiza("token", "list", "--json").out)["problem"] is not None


def test_no_more_tokens_are_made_than_a_server_reads(workspace, kaiza):
    make(kaiza, "first")
    rows = [HttpToken(f"t{n}", f"{n:064x}", None, "2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z")
            for n in range(http_tokens.MAX_TOKENS)]  # fmt: skip
    save_tokens(str(workspace), rows)

    assert kaiza("token", "new", "ci").status == 1
    assert read_tokens(str(workspace)).problem is None


def test_list_shows_state_and_last_use(workspace, kaiza):
    tokens = {name: make(kaiza, name) for name in ("ci", "old")}
    kaiza("token", "revoke", "old")
    TokenAuthenticator([str(workspace)]).authenticate(tokens["ci"])
    rows = {row["name"]: row for row in json.loads(kaiza("token", "list", "--json").out)["tokens"]}

    assert {name: row["state"] for name, row in rows.items()} == {"ci": "valid", "old": "revoked"}
    assert rows["ci"]["last_use"] is not None
    assert rows["old"]["last_use"] is None


def test_without_tokens_list_says_how_to_make_one(workspace, kaiza):
    done = kaiza("token", "list")

    assert (done.status, done.out) == (0, "")
    assert "kaiza token new" in done.err


@pytest.mark.parametrize("columns", [80, 120])
def test_everything_to_be_typed_is_shown_whole_on_a_narrow_terminal(workspace, screen, kaiza, columns):
    shown = screen("token", "new", LONG_NAME, "--role", "ANTIGRAVITY", columns=columns, NO_COLOR="1")
    assert shown.end() == 0
    listed = screen("token", "list", columns=columns, NO_COLOR="1")
    assert listed.end() == 0

    assert TOKEN.search(shown.shown)
    assert LONG_NAME in listed.shown
    assert max(map(len, listed.shown.splitlines())) <= columns
    assert max(map(len, shown.shown.splitlines())) <= columns


def test_session_list_and_audit_show_name_the_token(workspace, kaiza, screen):
    token = make(kaiza, LONG_NAME)
    app = App([str(workspace)])
    principal = TokenAuthenticator([str(workspace)]).authenticate(token)
    begin(app, principal)
    app.close()
    last = len(records(workspace))
    commands = [("session", "list"), ("status",), ("audit", "show", str(last)), ("audit", "show", "--kind", "call")]
    shown = [screen(*words, columns=80, NO_COLOR="1") for words in commands]
    assert [each.end() for each in shown] == [0] * 4

    assert all(principal.label in each.shown for each in shown)
    assert max(len(line) for each in shown for line in each.shown.splitlines()) <= 80


def test_a_workspace_in_which_nothing_is_recorded_yet_can_have_tokens(tmp_path, monkeypatch, kaiza):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    root = make_ready(tmp_path / "new")
    token = make(kaiza, "ci", "--workspace", str(root))

    assert TokenAuthenticator([os.path.realpath(root)]).authenticate(token) is not None
