"""Plans that a merge or a signature approves: a change under them, from a call to the record of its basis."""

import os
import shutil

import pytest
from agents import HEAD, edit, hash_of
from repositories import TRUSTED, make_key, merge, read_stored, run_git, signer_line, trust
from scenes import records

from kaiza.store.config import trusted_config
from kaiza.store.disk import state_dir
from kaiza.store.trust import timed_cache
from kaiza.store.trust.signed_plans import sign_plan, write_signature
from kaiza.store.trust.signers import save_signers

pytestmark = pytest.mark.skipif(
    not (shutil.which("git") and shutil.which("ssh-keygen")), reason="there is no git or no ssh-keygen"
)

EXPIRES = 'expires: "2099-01-01T00:00:00Z"\n'


@pytest.fixture(autouse=True)
def _own_machine(tmp_path, monkeypatch):
    monkeypatch.setattr(trusted_config, "MACHINE_DIRECTORY", tmp_path / "etc")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def arrived(workspace):
    """A plan that git brought as approved: it was never seen here as a draft."""
    text = HEAD.format(plan_id="PLAN-1", status="APPROVED", scope='{create: ["src/**"]}', more=EXPIRES)
    (workspace / "plans/PLAN-1.md").write_text(text)
    (workspace / "src").mkdir()
    merge(workspace, "refs/remotes/origin/other")
    return workspace


@pytest.fixture
def key(arrived, tmp_path):
    """A trusted key, and the plan's signature by it."""
    key = make_key(tmp_path)
    root, content = str(arrived), read_stored(arrived).content
    trust(root, project="app", signers=signer_line(key))
    write_signature(root, "PLAN-1", sign_plan(root, state_dir.path_of(root), "PLAN-1", content, key)[0])
    return key


@pytest.fixture
def write(make_app, workspace):
    """Writes a new file under the plan's current hash with a server of its own; the answer."""
    apps = []

    def call(name, plan_hash=None):
        if not apps:
            apps.append(make_app(workspace))
            apps[0].call("begin_session", {"role": "WINDSURF"})
        arguments = {"path": f"src/{name}", "content": "x\n", "plan_hash": plan_hash or hash_of(workspace)}
        return apps[0].call("write_file", arguments).envelope or {"error_code": "ok"}

    return call


def require(root, how):
    (root / "kaiza.toml").write_text(f'[approval]\nrequire = "{how}"\n')


def seals(root):
    return [each["detail"]["how"] for each in records(root) if each["kind"] == "plan"]


def test_a_plan_that_git_brought_counts_only_once_it_is_in_the_trusted_ref(arrived, write):
    refused = write("a")
    trust(arrived, TRUSTED, project="app")
    not_yet = write("a")
    merge(arrived)

    assert refused["invariant_id"] == "PLAN_ARRIVED_APPROVED"
    assert not_yet["invariant_id"] == "PLAN_ARRIVED_APPROVED"
    assert TRUSTED in str(not_yet["cause"]["problems"])
    assert write("a")["error_code"] == "ok"
    assert seals(arrived) == ["merged"]


def test_a_signed_plan_that_git_brought_counts(arrived, key, write):
    assert write("a")["error_code"] == "ok"
    assert seals(arrived) == ["signed"]


def test_a_withdrawal_here_holds_against_a_merge_and_a_signature(arrived, key, write, monkeypatch):
    trust(arrived, "refs/remotes/origin/other", project="app")
    assert write("a")["error_code"] == "ok"
    approved = hash_of(arrived)
    edit(arrived, "status: APPROVED", "status: REVOKED")
    write("b", approved)
    run_git(arrived, "checkout", "--", "plans/PLAN-1.md")

    assert hash_of(arrived) == approved
    assert write("b")["invariant_id"] == "PLAN_WITHDRAWN"


def test_where_a_command_is_required_a_merge_does_not_count_and_a_signature_does(arrived, write, tmp_path, request):
    require(arrived, "command")
    trust(arrived, "refs/remotes/origin/other", project="app")
    assert write("a")["error_code"] == "PLAN_NOT_APPROVED"

    request.getfixturevalue("key")
    assert write("a")["error_code"] == "ok"


def test_where_a_signature_is_required_nothing_else_counts_and_a_removed_signer_ends_it(arrived, key, write):
    require(arrived, "signature")
    trust(arrived, "refs/remotes/origin/other", project="app")
    assert write("a")["error_code"] == "ok"

    save_signers(str(arrived), [])
    refused = write("b")

    assert refused["error_code"] == "PLAN_NOT_APPROVED"
    assert refused["cause"]["problems"]


def test_no_program_is_started_for_each_change(arrived, key, write, tmp_path, monkeypatch):
    monkeypatch.setattr(timed_cache, "SECONDS", 3600)
    trust(arrived, "refs/remotes/origin/other", project="app")
    assert write("a")["error_code"] == "ok"
    count = tmp_path / "count"
    (tmp_path / "bin").mkdir()
    for name in ("git", "ssh-keygen"):
        program = tmp_path / "bin" / name
        program.write_text(f'#!/bin/sh\necho x >> {count}\nexec {shutil.which(name)} "$@"\n')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")

    assert write("b")["error_code"] == "ok"
    assert not count.exists()


def test_a_signature_file_cannot_be_written_by_an_agent(arrived, key, make_app):
    app = make_app(arrived)
    app.call("begin_session", {"role": "WINDSURF"})
    for path in ("plans/PLAN-1.md.sig", "plans/PLAN-2.md.SIG"):
        arguments = {"path": path, "content": "x\n", "plan_hash": hash_of(arrived)}

        assert app.call("write_file", arguments).envelope
        assert "x\n" not in [each.read_text() for each in (arrived / "plans").iterdir()]
