"""What a person trusted in a workspace does not hold for another one that comes to be at its path."""

import shutil

import pytest
from agents import HEAD, hash_of
from repositories import TRUSTED, merge, run_git, trust
from scenes import make_ready

from kaiza.store.config import trusted_config
from kaiza.store.disk import state_dir
from kaiza.store.trust.trust_file import read_trust

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")


@pytest.fixture(autouse=True)
def _own_machine(tmp_path, monkeypatch):
    monkeypatch.setattr(trusted_config, "MACHINE_DIRECTORY", tmp_path / "etc")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def write_plan(root):
    make_ready(root)
    (root / "src").mkdir()
    text = HEAD.format(plan_id="PLAN-1", status="APPROVED", scope='{create: ["src/**"]}', more="")
    (root / "plans/PLAN-1.md").write_text(text)


def write(app, root, name):
    app.call("begin_session", {"role": "WINDSURF"})
    arguments = {"path": f"src/{name}", "content": "x\n", "plan_hash": hash_of(root)}
    return app.call("write_file", arguments).envelope


def test_a_clone_at_the_path_of_a_trusted_workspace_is_not_trusted(tmp_path, make_app):
    root, evil = tmp_path / "project", tmp_path / "evil"
    write_plan(root)
    merge(root)
    trust(root, TRUSTED)
    assert write(make_app(root), root, "a") is None
    write_plan(evil)
    run_git(evil, "init", "-q")
    run_git(evil, "add", "plans")
    run_git(evil, "commit", "-q", "-m", "x")
    shutil.rmtree(root)

    run_git(tmp_path, "clone", "-q", str(evil), str(root))
    make_ready(root)
    (root / "src").mkdir()
    refused = write(make_app(root), root, "b")

    assert run_git(root, "rev-parse", f"{TRUSTED}:plans/PLAN-1.md")
    assert refused["error_code"] == "PLAN_NOT_APPROVED"
    assert read_trust(state_dir.path_of(str(root))).merged_refs == ()
