"""What a person trusts, and what a workspace is known by, is on disk when the call that writes it returns."""

import os

import pytest
from scenes import bind

from kaiza.store.disk import state_dir
from kaiza.store.trust import identity, retired_state
from kaiza.store.trust.adopted_settings import save_adopted
from kaiza.store.trust.identity import KnownWorkspace
from kaiza.store.trust.signed_plans import write_signature
from kaiza.store.trust.signers import save_signers
from kaiza.store.trust.trust_file import WorkspaceTrust, save_trust


@pytest.fixture
def synced(monkeypatch):
    """Inode numbers of the files and directories that were fsynced, in order."""
    numbers, fsync = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (numbers.append(os.fstat(fd).st_ino), fsync(fd)))
    return numbers


def state_of(root):
    return state_dir.path_of(str(root), create=True)


@pytest.mark.parametrize(
    ("write", "place"),
    [
        (lambda root: save_adopted(str(root), {"approval.require": "command"}), "settings.json"),
        (lambda root: save_trust(str(root), WorkspaceTrust()), "trust.json"),
        (lambda root: save_signers(str(root), []), "allowed_signers"),
        (lambda root: identity.write_known(state_of(root), KnownWorkspace("0" * 32)), "workspace.json"),
        (lambda root: identity.write_local_id(str(root), "0" * 32), ".kaiza/id"),
        (lambda root: write_signature(str(root), "PLAN-1", b"x"), "plans/PLAN-1.md.sig"),
    ],
    ids=["settings", "trust", "signers", "workspace", "id", "signature"],
)
def test_a_written_file_is_synced_before_its_directory(workspace, synced, write, place):
    write(workspace)
    path = (workspace if "/" in place else state_of(workspace)) / place

    assert synced[-2:] == [path.stat().st_ino, path.parent.stat().st_ino]


def test_a_retired_state_is_synced(workspace, synced):
    bind(workspace)
    (state_of(workspace) / "index.json").touch()
    synced.clear()
    retired_state.retire(state_of(workspace))

    assert (state_of(workspace) / "retired-1/index.json").exists()
    assert synced[-1:] == [state_of(workspace).stat().st_ino]
