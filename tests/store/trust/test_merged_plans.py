"""Approval by merge: the plan's bytes are in a ref that a person trusts, and nothing else passes for it."""

import os
import shutil
from pathlib import Path

import pytest
from agents import edit, plan
from repositories import TRUSTED, merge, read_stored, run_git, trust
from scenes import make_ready

from kaiza.store.config import trusted_config
from kaiza.store.disk import state_dir
from kaiza.store.trust import timed_cache
from kaiza.store.trust.merged_plans import check_ref, find_default_branch, find_merge
from kaiza.store.trust.trust_file import FILE, expand_ref, read_trust

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setattr(trusted_config, "MACHINE_DIRECTORY", tmp_path / "etc")
    root = make_ready(tmp_path / "project")
    plan(root)
    return root


def status(root):
    return find_merge(str(root), state_dir.path_of(str(root)), read_stored(root))


def write_configuration(directory, repository, ref="origin/main", more=""):
    directory.mkdir(parents=True, exist_ok=True)
    text = f'[[trust.merged]]\nrepository = "{repository}"\nref = "{ref}"\n{more}'
    (directory / "config.toml").write_text(text)


@pytest.mark.parametrize("refs", [[TRUSTED], ["refs/remotes/origin/other", TRUSTED]])
def test_a_plan_in_one_of_the_trusted_refs_is_merged(root, refs):
    merge(root)
    trust(root, *refs)

    assert (status(root).ref, status(root).problem) == (TRUSTED, None)


def test_without_a_trusted_ref_nothing_is_merged_and_nothing_is_wrong(root):
    merge(root)

    assert (status(root).ref, status(root).problem) == (None, None)


def test_an_edit_after_the_merge_is_another_text(root):
    merge(root)
    trust(root, TRUSTED)
    assert status(root).ref

    edit(root, "# Why", "# Whyever")

    assert status(root).ref is None
    assert "another text" in status(root).problem


def test_a_draft_is_not_looked_for(root):
    plan(root, status="DRAFT")
    merge(root)
    trust(root, TRUSTED)

    assert status(root).ref is None


def test_a_merge_counts_as_soon_as_the_ref_moves_and_no_longer_when_it_moves_back(root):
    (root / "plans/PLAN-1.md").rename(root / "aside")
    merge(root)
    before = run_git(root, "rev-parse", "HEAD")
    (root / "aside").rename(root / "plans/PLAN-1.md")
    trust(root, TRUSTED)
    assert status(root).ref is None

    merge(root)
    assert status(root).ref == TRUSTED

    run_git(root, "pack-refs", "--all")
    assert status(root).ref == TRUSTED

    run_git(root, "update-ref", TRUSTED, before)
    assert status(root).ref is None

    run_git(root, "update-ref", TRUSTED, "HEAD")
    run_git(root, "pack-refs", "--all")
    assert status(root).ref == TRUSTED
    run_git(root, "update-ref", "-d", TRUSTED)
    assert status(root).ref is None


def test_the_commit_at_head_is_not_the_trusted_ref(root):
    (root / "plans/PLAN-1.md").rename(root / "aside")
    merge(root)
    (root / "aside").rename(root / "plans/PLAN-1.md")
    merge(root, "refs/remotes/origin/pull-request")
    trust(root, TRUSTED)

    assert status(root).ref is None
    assert "does not contain" in status(root).problem


@pytest.mark.parametrize("name", ["origin/main", TRUSTED])
@pytest.mark.parametrize("place", ["refs/tags/", "refs/heads/", "refs/"])
def test_a_tag_or_branch_with_the_name_of_the_trusted_branch_does_not_stand_in_for_it(root, place, name):
    merge(root, place + name)
    write_configuration(Path(os.environ["XDG_CONFIG_HOME"], "kaiza"), root)

    assert status(root).ref is None
    assert TRUSTED in status(root).problem
    assert check_ref(str(root), TRUSTED) is not None


def test_a_replaced_object_is_not_the_merged_one(root):
    edit(root, "# Why", "# Harmless")
    merge(root)
    trust(root, TRUSTED)
    merged = run_git(root, "rev-parse", "HEAD:plans/PLAN-1.md")
    edit(root, "# Harmless", "# Evil")
    evil = run_git(root, "hash-object", "-w", "plans/PLAN-1.md")
    run_git(root, "replace", merged, evil)

    assert run_git(root, "cat-file", "blob", merged).endswith("# Evil")
    assert status(root).ref is None


def test_a_checkout_with_other_line_ends_is_still_merged(root):
    merge(root)
    trust(root, TRUSTED)
    path = root / "plans/PLAN-1.md"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))

    assert status(root).ref == TRUSTED


def test_a_workspace_below_the_top_of_its_repository_has_its_own_plans(root):
    below = make_ready(root / "services" / "api")
    plan(below, scope='{modify: ["api/**"]}')
    merge(root)
    for each in (root, below):
        trust(each, TRUSTED)

    assert status(below).ref == TRUSTED
    shutil.copy(root / "plans/PLAN-1.md", below / "plans/PLAN-1.md")
    assert status(below).ref is None


@pytest.mark.parametrize("case", ["no repository", "no ref", "no git", "damaged"])
def test_what_git_cannot_answer_is_not_merged_and_says_why(root, case, monkeypatch):
    if case != "no repository":
        merge(root)
    trust(root, "refs/remotes/origin/gone" if case == "no ref" else TRUSTED)
    if case == "no git":
        monkeypatch.setenv("PATH", "/dev/null/none")
    if case == "damaged":
        shutil.rmtree(root / ".git" / "objects")

    assert status(root).ref is None
    assert status(root).problem


def test_a_program_in_the_repository_is_not_started(root, tmp_path, monkeypatch):
    merge(root)
    trust(root, TRUSTED)
    trace = tmp_path / "trace"
    program = root / "git"
    program.write_text(f"#!/bin/sh\necho started >> {trace}\n")
    program.chmod(0o755)
    for key in (
        "core.fsmonitor",
        "core.sshCommand",
        "core.pager",
        "core.hooksPath",
        "filter.x.smudge",
        "diff.x.textconv",
    ):
        run_git(root, "config", key, str(program))
    (root / ".gitattributes").write_text("* filter=x diff=x\n")
    monkeypatch.setenv("PATH", f"{root}{os.pathsep}{os.environ['PATH']}")

    assert status(root).ref == TRUSTED
    assert not trace.exists()


def test_another_workspace_at_the_same_path_is_not_trusted(root):
    merge(root)
    trust(root, TRUSTED)
    assert status(root).ref

    (state_dir.path_of(str(root)) / "workspace.json").write_text('{"id": "another"}')

    assert (status(root).ref, status(root).problem) == (None, None)


def test_a_trust_file_in_the_workspace_is_not_read(root):
    merge(root)
    for directory in (root, root / "plans", root / "audit", root / ".kaiza"):
        directory.mkdir(exist_ok=True)
        (directory / FILE.name).write_text(
            '{"format": 1, "workspace": null, "merged": [{"ref": "refs/remotes/origin/main"}], "project": null}'
        )

    assert status(root).ref is None


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", '{"format": 1, "workspace": null, "merged": [{"ref": 1}], "project": null}', '{"merged": 1}'],
)
def test_a_damaged_trust_file_gives_no_authority(root, content):
    merge(root)
    trust(root, TRUSTED)
    (state_dir.path_of(str(root)) / FILE.name).write_text(content)

    assert status(root).ref is None
    assert read_trust(state_dir.path_of(str(root))).problem


def test_the_users_configuration_trusts_a_ref_of_exactly_this_repository(root, tmp_path):
    merge(root)
    user = tmp_path / "config" / "kaiza"

    write_configuration(user, root)
    assert status(root).ref == TRUSTED
    write_configuration(user, root.parent)
    assert status(root).ref is None


def test_only_the_machines_configuration_trusts_everything_below_a_directory(root, tmp_path):
    merge(root)
    write_configuration(tmp_path / "etc", root.parent, more="everything_below = true\n")
    assert status(root).ref == TRUSTED

    (tmp_path / "etc" / "config.toml").unlink()
    write_configuration(tmp_path / "config" / "kaiza", root.parent, more="everything_below = true\n")
    assert status(root).ref is None
    assert status(root).problem


@pytest.mark.parametrize(
    "name",
    ["", "origin/main~0", "origin/main^0", "origin/main@{0}", "origin/main..", "o*", "origin/main:", "origin/ma in\n"],
)
def test_what_is_no_name_of_a_ref_is_refused(root, name):
    merge(root)
    assert check_ref(str(root), "origin/main") is None

    with pytest.raises(ValueError, match="not the name of a ref"):
        expand_ref(name)
    assert check_ref(str(root), name)


def test_a_name_without_refs_is_a_remote_tracking_branch(root):
    merge(root)

    assert check_ref(str(root), "origin/main") is None
    assert check_ref(str(root), "main")


def test_the_default_branch_is_the_one_behind_origin_head(root):
    merge(root)
    assert find_default_branch(str(root)) is None

    run_git(root, "symbolic-ref", "refs/remotes/origin/HEAD", TRUSTED)
    assert find_default_branch(str(root)) == TRUSTED


def test_the_same_question_starts_git_once(root, tmp_path, monkeypatch):
    monkeypatch.setattr(timed_cache, "SECONDS", 3600)
    merge(root)
    trust(root, TRUSTED)
    count = tmp_path / "count"
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho x >> {count}\nexec {shutil.which("git")} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")

    assert status(root).ref == TRUSTED
    started = count.read_text()
    assert status(root).ref == TRUSTED

    assert count.read_text() == started
