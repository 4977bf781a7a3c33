"""Which files count as brought by git."""

import os
import shutil
import subprocess

import pytest

from kaiza.store import git
from kaiza.store.trust.git_origin import Origin, find_origins

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")

TEXT = b"status: APPROVED\ntext\n"


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    root = tmp_path / "project"
    (root / "plans").mkdir(parents=True)
    return root


def run_git(root, *words, stdin=b""):
    names = ["-c", "user.name=n", "-c", "user.email=e", "-c", "protocol.file.allow=always"]
    return subprocess.run(["git", *names, *words], cwd=root, check=True, capture_output=True, input=stdin).stdout


def commit(root, content, attributes=b""):
    """Commit a plan and check it out anew, as a clone would."""
    run_git(root, "init", "-q")
    (root / "plans/P.md").write_bytes(b"")
    (root / ".gitattributes").write_bytes(attributes)
    blob = run_git(root, "hash-object", "-w", "--no-filters", "--stdin", stdin=content).decode().strip()
    run_git(root, "add", ".gitattributes")
    run_git(root, "update-index", "--add", "--cacheinfo", f"100644,{blob},plans/P.md")
    run_git(root, "commit", "-qm", "x")
    (root / "plans/P.md").unlink()
    run_git(root, "checkout", "--", "plans/P.md")
    return (root / "plans/P.md").read_bytes()


def origin(root, content, directory="plans"):
    (found,) = find_origins(str(root), directory, [("P.md", content)])
    return found


def origin_if_copied(root, content):
    """The origin of the plan with a time that the index does not have."""
    os.utime(root / "plans/P.md", ns=(0, 0))
    return origin(root, content)


def test_bytes_of_a_commit_come_from_git_and_edited_bytes_do_not(root):
    content = commit(root, TEXT)

    assert find_origins(str(root), "plans", [("P.md", content), ("P.md", TEXT + b"x"), ("Q.md", TEXT)]) == [
        Origin.GIT, Origin.HERE, Origin.GIT
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("blob", "attributes"),
    [
        (TEXT, b"* text eol=crlf\n"),
        (TEXT + b"$Id$\n", b"* ident\n"),
    ],
)
def test_what_a_checkout_converts_reversibly_comes_from_git(root, blob, attributes):
    content = commit(root, blob, attributes)

    assert content != blob
    assert origin(root, content) == Origin.GIT


def test_what_a_checkout_converted_is_of_unknown_origin_also_without_the_attribute(root):
    content = commit(root, "stätus".encode(), b"* working-tree-encoding=latin1\n")
    (root / ".gitattributes").write_bytes(b"")
    converted = origin(root, content)
    (root / "plans/P.md").write_bytes(content)  # as an editor does

    assert content == "stätus".encode("latin1")
    assert converted == Origin.UNKNOWN
    assert origin(root, content) == Origin.HERE


@pytest.mark.parametrize(
    ("blob", "attributes"),
    [
        (b"status: APPROVED\ntext\r\n", b"* text eol=crlf\n"),
        (b"status: APPROVED\ntext\r\n", b"* eol=crlf\n"),
        (b"status: APPROVED\ntext\r\n", b"* crlf\n*.md eol=crlf\n"),
        (TEXT + b"$Id: abc$\n", b"* ident\n"),
        ("stätus".encode(), b"* working-tree-encoding=latin1\n"),
    ],
)
def test_the_origin_of_what_a_checkout_converts_otherwise_is_unknown(root, blob, attributes):
    content = commit(root, blob, attributes)

    assert content != blob
    assert origin(root, content) == Origin.UNKNOWN
    assert origin_if_copied(root, content) == Origin.UNKNOWN


@pytest.mark.parametrize("setting", ["core.autocrlf", "core.eol"])
def test_line_ends_converted_by_the_configuration_come_from_git(root, setting):
    run_git(root, "init", "-q")
    run_git(root, "config", setting, {"core.autocrlf": "true"}.get(setting, "crlf"))
    content = commit(root, TEXT, b"* text=auto\n" if setting == "core.eol" else b"")

    assert b"\r\n" in content
    assert origin(root, content) == Origin.GIT


def test_the_origin_of_what_a_filter_wrote_is_unknown(root):
    run_git(root, "init", "-q")
    run_git(root, "config", "filter.x.smudge", "tr a-z A-Z")
    content = commit(root, b"draft\n", b"*.md filter=x\n")

    assert content == b"DRAFT\n"
    assert origin(root, content) == Origin.UNKNOWN
    assert origin_if_copied(root, content) == Origin.UNKNOWN


def test_edited_bytes_with_usual_attributes_are_from_here(root):
    commit(root, TEXT, b"* text=auto eol=lf\n*.md -filter diff\n")

    assert origin(root, TEXT + b"edited\n") == Origin.HERE


def test_a_repository_with_sha256_is_understood(root):
    run_git(root, "init", "-q", "--object-format=sha256")

    assert origin(root, commit(root, TEXT)) == Origin.GIT
    assert origin(root, TEXT + b"x") == Origin.HERE


def test_a_stashed_edit_is_an_object_of_git(root):
    commit(root, TEXT)
    (root / "plans/P.md").write_bytes(b"edited\n")
    run_git(root, "stash")

    assert origin(root, b"edited\n") == Origin.GIT


def test_a_workspace_below_the_repository_is_asked_about_too(root):
    content = commit(root, TEXT)
    inner = root / "packages/one"
    (inner / "plans").mkdir(parents=True)

    assert origin(inner, content) == Origin.GIT
    # A tree that looks like a bare repository does not hide the one around it.
    for name in ("objects", "refs"):
        (inner / name).mkdir()
    (inner / "HEAD").write_text("ref: refs/heads/main\n")
    assert origin(inner, content) == Origin.GIT
    assert origin(inner, b"other") == Origin.HERE


def test_plans_in_a_worktree_or_a_submodule_are_found(root, tmp_path):
    content = commit(root, TEXT)
    run_git(root, "worktree", "add", "-q", str(tmp_path / "tree"))
    outer = tmp_path / "outer"
    outer.mkdir()
    run_git(outer, "init", "-q")
    run_git(outer, "submodule", "add", "-q", str(root), "plans")

    assert origin(tmp_path / "tree", content) == Origin.GIT
    assert origin(outer, content) == Origin.GIT
    assert origin(outer, b"other") == Origin.HERE


def test_without_a_repository_everything_is_from_here_and_in_one_without_git_nothing_is_known(root, monkeypatch):
    assert origin(root, TEXT) == Origin.HERE
    content = commit(root, TEXT)
    monkeypatch.setenv("PATH", "/nowhere")
    assert origin(root, content) == Origin.UNKNOWN


@pytest.mark.parametrize("damage", ["gitfile", "config", "head", "empty"])
def test_in_a_repository_that_git_cannot_read_every_origin_is_unknown(root, damage):
    commit(root, TEXT)
    if damage == "config":
        (root / ".git/config").write_text("[core\n")
    elif damage == "head":
        (root / ".git/HEAD").unlink()
    else:
        shutil.rmtree(root / ".git")
        (root / ".git").write_text("gitdir: /nowhere\n") if damage == "gitfile" else (root / ".git").mkdir()

    assert origin(root, b"edited\n") == Origin.UNKNOWN


@pytest.mark.parametrize("command", ["cat-file", "check-attr"])
def test_without_an_answer_of_git_the_origin_is_unknown(root, monkeypatch, command):
    commit(root, TEXT)
    run = git.run
    monkeypatch.setattr(
        git, "run", lambda top, name, *words, **more: None if name == command else run(top, name, *words, **more)
    )

    assert origin(root, b"edited\n") == Origin.UNKNOWN


def test_a_file_beside_plans_is_found_by_the_same_question(root):
    commit(root, TEXT)

    assert find_origins(str(root), ".", [("kaiza.toml", TEXT), ("kaiza.toml", b"")]) == [Origin.GIT, Origin.GIT]
    assert find_origins(str(root), ".", [("kaiza.toml", b"x")]) == [Origin.HERE]
    assert find_origins(str(root), ".", []) == []
