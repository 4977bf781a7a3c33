"""Signatures of plans: exactly one text by a trusted key counts."""

import base64
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from agents import edit, plan
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from repositories import NAMESPACES, make_key, read_stored, signer_line, trust
from scenes import make_ready

from kaiza.store.config import trusted_config
from kaiza.store.disk import state_dir
from kaiza.store.trust.signed_plans import (
    MAX_SIGNATURE_BYTES,
    compose_text,
    read_signature,
    sign_plan,
    verify_signature,
    write_signature,
)
from kaiza.store.trust.signers import parse_signer, parse_signers, read_signers, save_signers
from kaiza.store.trust.ssh_keygen import SshKeygenError
from kaiza.store.trust.trust_file import SIGNERS_NAME, WorkspaceTrust, save_trust

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="there is no ssh-keygen")

EXPIRES = 'expires: "2099-01-01T00:00:00Z"\n'
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMXdPnLPqAbHNDnFV9Kv37lTiGeuUw7oJlrMuHNKHqcb"


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(trusted_config, "MACHINE_DIRECTORY", tmp_path / "etc")
    root = make_ready(tmp_path / "project")
    plan(root, more=EXPIRES)
    trust(root, project="app")
    return root


@pytest.fixture
def key(root, tmp_path):
    key = make_key(tmp_path)
    save_signers(str(root), parse_signers(signer_line(key)))
    return key


def status(root):
    return verify_signature(str(root), state_dir.path_of(str(root)), read_stored(root))


def sign(root, key, text=None, namespace="kaiza-plan"):
    """Sign by hand, with any text and namespace."""
    text = compose_text("app", "PLAN-1", read_stored(root).parsed.plan_hash) if text is None else text
    command = ["ssh-keygen", "-Y", "sign", "-n", namespace, "-f", key]
    signature = subprocess.run(command, input=text, capture_output=True, check=True).stdout
    write_signature(str(root), "PLAN-1", signature)


def test_a_signature_by_a_trusted_key_names_its_signer(root, key):
    stored = read_stored(root)
    signature, signer = sign_plan(str(root), state_dir.path_of(str(root)), "PLAN-1", stored.content, key)
    write_signature(str(root), "PLAN-1", signature)

    assert signer == "ann@example.org"
    assert (status(root).signer, status(root).problem) == ("ann@example.org", None)


def test_the_signed_text_has_four_lines(root, key):
    plan_hash = read_stored(root).parsed.plan_hash

    assert compose_text("app", "PLAN-1", plan_hash) == f"kaiza-plan 1\napp\nPLAN-1\n{plan_hash}\n".encode()


def test_without_a_signature_nothing_is_said(root, key):
    assert (status(root).signer, status(root).problem) == (None, None)


@pytest.mark.parametrize(
    ("project", "plan_id", "digest"), [("other", "PLAN-1", None), ("app", "PLAN-2", None), ("app", "PLAN-1", "0" * 64)]
)
def test_a_signature_of_another_project_plan_or_text_does_not_count(root, key, project, plan_id, digest):
    sign(root, key, compose_text(project, plan_id, digest or read_stored(root).parsed.plan_hash))

    assert status(root).signer is None
    assert status(root).problem


def test_a_signature_for_another_purpose_or_by_another_key_does_not_count(root, key, tmp_path):
    sign(root, key, namespace="file")
    assert status(root).signer is None

    sign(root, make_key(tmp_path, "other"))
    assert status(root).signer is None
    assert status(root).problem


def sign_with_token(root, flags):
    """Sign as a hardware key does that sets these flags: 1 means that it was touched. The trusted line of the key."""

    def pack(*fields):
        return b"".join(len(field).to_bytes(4) + field for field in fields)

    token, key_type, application = Ed25519PrivateKey.generate(), b"sk-ssh-ed25519@openssh.com", b"ssh:"
    public = pack(key_type, token.public_key().public_bytes_raw(), application)
    text = compose_text("app", "PLAN-1", read_stored(root).parsed.plan_hash)
    signed = b"SSHSIG" + pack(b"kaiza-plan", b"", b"sha256", hashlib.sha256(text).digest())
    state = bytes([flags]) + bytes(4)
    digests = [hashlib.sha256(each).digest() for each in (application, signed)]
    made = pack(key_type, token.sign(digests[0] + state + digests[1])) + state
    whole = b"SSHSIG" + (1).to_bytes(4) + pack(public, b"kaiza-plan", b"", b"sha256", made)
    lines = (b"-----BEGIN SSH SIGNATURE-----\n", base64.encodebytes(whole), b"-----END SSH SIGNATURE-----\n")
    write_signature(str(root), "PLAN-1", b"".join(lines))
    return f"ann {NAMESPACES} {key_type.decode()} {base64.b64encode(public).decode()}"


@pytest.mark.parametrize(("flags", "signer"), [(1, "ann"), (5, "ann"), (0, None), (4, None)])
def test_a_signature_by_a_hardware_key_counts_only_if_the_key_was_touched(root, flags, signer):
    save_signers(str(root), parse_signers(sign_with_token(root, flags)))

    assert status(root).signer == signer
    assert (status(root).problem is None) is (signer is not None)


def test_a_signature_that_is_none_does_not_count(root, key):
    write_signature(str(root), "PLAN-1", b"-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n")

    assert status(root).signer is None


@pytest.mark.parametrize(
    "end",
    [
        lambda root: edit(root, "# Why", "# Whyever"),
        lambda root: save_signers(str(root), []),
        lambda root: save_trust(str(root), WorkspaceTrust(project="other")),
    ],
    ids=["edit", "removed signer", "another project"],
)
def test_a_signature_counts_no_longer_for_another_text_signer_or_project(root, key, end):
    sign(root, key)
    assert status(root).signer

    end(root)

    assert status(root).signer is None


def test_a_key_counts_only_for_plans_and_within_its_dates(root, tmp_path):
    key = make_key(tmp_path)
    sign(root, key)
    for options, signer in (
        ('namespaces="kaiza-plan",valid-before="20200101"', None),
        ('namespaces="kaiza-plan",valid-after="20200101"', "ann@example.org"),
        ('namespaces="kaiza-directive"', None),
    ):
        save_signers(str(root), parse_signers(signer_line(key, options=options)))

        assert status(root).signer == signer


def test_a_plan_without_an_expiry_cannot_be_signed(root, key):
    plan(root)
    sign(root, key)

    assert status(root).signer is None
    assert "expires" in status(root).problem


def test_a_signature_file_that_is_no_plain_small_file_does_not_count(root, key, tmp_path):
    sign(root, key)
    path = root / "plans/PLAN-1.md.sig"
    outside = path.rename(tmp_path / "outside.sig")

    path.symlink_to(outside)
    assert (status(root).signer, bool(status(root).problem)) == (None, True)
    path.unlink()
    os.mkfifo(path)
    pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    try:
        os.write(pipe, outside.read_bytes())
        assert (status(root).signer, bool(status(root).problem)) == (None, True)
    finally:
        os.close(pipe)
    path.unlink()
    path.write_bytes(outside.read_bytes() + b"\n" * MAX_SIGNATURE_BYTES)
    assert (status(root).signer, bool(status(root).problem)) == (None, True)


def test_another_workspace_at_the_same_path_has_no_signers(root, key):
    sign(root, key)
    assert status(root).signer
    state = state_dir.path_of(str(root))

    (state / "workspace.json").write_text('{"id": "another"}')
    assert status(root).signer is None
    assert read_signers(state).signers == ()

    trust(root, project="app")
    (state / "workspace.json").unlink(missing_ok=True)
    save_trust(str(root), WorkspaceTrust(project="app"))
    assert read_signers(state).signers == ()


def test_signers_in_the_workspace_are_not_read(root, tmp_path):
    key = make_key(tmp_path)
    for directory in (root, root / "plans", root / "audit", root / ".kaiza", root / ".ssh"):
        directory.mkdir(exist_ok=True)
        (directory / SIGNERS_NAME).write_text(signer_line(key))
    sign(root, key)

    assert status(root).signer is None


def test_the_machines_list_takes_the_place_of_the_workspaces_own(root, key, tmp_path):
    sign(root, key)
    (tmp_path / "etc").mkdir()
    other = make_key(tmp_path, "other")
    (tmp_path / "etc" / SIGNERS_NAME).write_text(signer_line(other, "bob@example.org"))
    assert status(root).signer is None

    sign(root, other)
    assert status(root).signer == "bob@example.org"


@pytest.mark.parametrize("case", ["link", "directory", "large", "not UTF-8"])
def test_a_list_of_the_machine_that_cannot_be_read_trusts_no_one(root, key, tmp_path, case):
    sign(root, key)
    (tmp_path / "etc").mkdir()
    path, line = tmp_path / "etc" / SIGNERS_NAME, signer_line(key).encode()
    if case == "link":
        path.symlink_to(tmp_path / "nothing")
    elif case == "directory":
        path.mkdir()
    else:
        path.write_bytes(line + (b"#" * 70_000 if case == "large" else b"\xff\n"))

    assert status(root).signer is None
    assert read_signers(state_dir.path_of(str(root))).problems


def test_the_machines_configuration_names_the_project(root, key, tmp_path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "config.toml").write_text('[trust]\nproject = "theirs"\n')
    sign(root, key)
    assert status(root).signer is None

    sign(root, key, compose_text("theirs", "PLAN-1", read_stored(root).parsed.plan_hash))
    assert status(root).signer == "ann@example.org"


def test_a_line_without_a_namespace_is_ignored_and_reported(root, key, tmp_path):
    careless = make_key(tmp_path, "careless")
    path = state_dir.path_of(str(root)) / SIGNERS_NAME
    path.write_text(f"bob@example.org {careless.with_suffix('.pub').read_text()}{signer_line(key)}")

    sign(root, careless)
    assert status(root).signer is None
    assert len(read_signers(state_dir.path_of(str(root))).problems) == 1
    sign(root, key)
    assert status(root).signer == "ann@example.org"


@pytest.mark.parametrize(
    "line",
    [
        f"ann {KEY}",
        f'ann namespaces="file" {KEY}',
        f'ann namespaces="kaiza-plan,file" {KEY}',
        f'ann namespaces="*" {KEY}',
        f'ann namespaces="" {KEY}',
        f'ann namespaces="kaiza-plan",namespaces="*" {KEY}',
        f'ann namespaces="*",namespaces="kaiza-plan" {KEY}',
        f'ann cert-authority,namespaces="kaiza-plan" {KEY}',
        f"ann namespaces=kaiza-plan {KEY}",
        f'* namespaces="kaiza-plan" {KEY}',
        f'ann,bob namespaces="kaiza-plan" {KEY}',
        f'"ann" namespaces="kaiza-plan" {KEY}',
        'ann namespaces="kaiza-plan" ssh-ed25519',
        'ann namespaces="kaiza-plan" ssh-ed25519 A',
        "ann",
    ],
)
def test_a_line_that_trusts_more_than_one_key_for_plans_is_refused(line):
    with pytest.raises(ValueError, match=r"ann|line|pattern"):
        parse_signer(line)


def test_a_signer_has_the_fingerprint_that_ssh_keygen_prints(tmp_path):
    key = make_key(tmp_path)
    printed = subprocess.run(["ssh-keygen", "-l", "-f", key], capture_output=True, check=True, text=True).stdout

    assert parse_signer(signer_line(key)).fingerprint == printed.split()[1]


def test_without_ssh_keygen_no_signature_counts_and_the_reason_is_given(root, key, monkeypatch):
    sign(root, key)
    monkeypatch.setenv("PATH", "/dev/null/none")

    assert status(root).signer is None
    assert "not installed" in status(root).problem


def test_a_program_in_the_workspace_is_not_started(root, tmp_path, monkeypatch):
    save_signers(str(root), parse_signers(signer_line(make_key(tmp_path))))
    sign(root, make_key(tmp_path, "other"))
    program = root / "ssh-keygen"
    program.write_text("#!/bin/sh\necho ann@example.org\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{root}{os.pathsep}{os.environ['PATH']}")

    assert status(root).signer is None


def test_a_signature_that_would_not_count_is_not_made(root, key, tmp_path):
    content, state = read_stored(root).content, state_dir.path_of(str(root))

    with pytest.raises(SshKeygenError):
        sign_plan(str(root), state, "PLAN-1", content, make_key(tmp_path, "other"))


def test_a_signature_replaces_a_link_and_not_its_target(root, key, tmp_path):
    target = tmp_path / "target"
    target.write_text("mine")
    Path(root, "plans/PLAN-1.md.sig").symlink_to(target)

    write_signature(str(root), "PLAN-1", b"signature")

    assert target.read_text() == "mine"
    assert read_signature(str(root), "PLAN-1") == b"signature"
    assert sorted(path.name for path in (root / "plans").iterdir()) == ["PLAN-1.md", "PLAN-1.md.sig"]
