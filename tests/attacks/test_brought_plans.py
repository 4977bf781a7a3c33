"""A plan that git brought as approved does not become one that a person approved here, whatever happens to its file."""

import os
import shutil
import subprocess

import pytest
from agents import HEAD, confirm, hash_of, plan
from scenes import records, see_plans

from kaiza.store import git

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
PATH = "plans/PLAN-1.md"


def run_git(root, *words, fails=False):
    names = ["-c", "user.name=n", "-c", "user.email=e", "-c", "core.editor=true"]
    done = subprocess.run(["git", *names, *words], cwd=root, check=False, capture_output=True, text=True)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout


def commit(root, message="x"):
    run_git(root, "add", "-A", "--", "plans", *(["docs"] if (root / "docs").exists() else []))
    run_git(root, "commit", "-qm", message)


@pytest.fixture
def repository(workspace, monkeypatch):
    """The workspace as a repository, with a draft in its first commit, which was seen."""
    monkeypatch.setenv("HOME", str(workspace.parent))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    (workspace / "src").mkdir()
    run_git(workspace, "init", "-q", "-b", "main")
    plan(workspace, status="DRAFT", more="# The people\n\n")
    commit(workspace)
    return workspace


@pytest.fixture
def write(begun, workspace):
    """Try to change a file under the plan; "ok", how the plan came, or the invariant of the refusal."""

    def write():
        arguments = {"path": "src/a", "content": "x\n", "plan_hash": hash_of(workspace), "dry_run": True}
        envelope = begun.call("write_file", arguments).envelope
        if envelope is None:
            return "ok"
        assert envelope["error_code"] in {"PLAN_NOT_APPROVED", "PLAN_FORMAT_ERROR"}
        return envelope["cause"].get("came_by") or envelope["invariant_id"]

    return write


def change(root, old, new, path=PATH):
    text = (root / path).read_bytes()
    assert old.encode() in text
    (root / path).write_bytes(text.replace(old.encode(), new.encode(), 1))


def approve(root):
    change(root, "status: DRAFT", "status: APPROVED")


def bring_approved(root):
    """Another branch has the plan as approved; it is checked out."""
    run_git(root, "checkout", "-qb", "theirs")
    approve(root)
    commit(root)
    run_git(root, "checkout", "-q", "main")
    see_plans(root)
    run_git(root, "checkout", "-q", "theirs")


FORMATTERS = {
    "end of file": lambda text: text.rstrip(b"\n") + b"\n\n",
    "trailing blanks": lambda text: text.replace(b"# Why\n", b"# Why  \n"),
    "line ends": lambda text: text.replace(b"\n", b"\r\n"),
    "quotes": lambda text: text.replace(b"title: A plan", b'title: "A plan"'),
    "order": lambda text: text.replace(b"title: A plan\nstatus: APPROVED\n", b"status: APPROVED\ntitle: A plan\n"),
    "comments": lambda text: text.replace(b"# The people\n\n", b""),
    "prose": lambda text: text.replace(b"# Why\n", b"Why\n===\n"),
    "time of approval": lambda text: text.replace(b"approved_by: null", b"approved_by: Ann"),
}


@pytest.mark.parametrize(
    ("how", "is_seen"), [*((how, True) for how in FORMATTERS), ("line ends", False), ("quotes", False)]
)
def test_a_formatter_does_not_approve_what_git_brought(repository, write, how, is_seen):
    bring_approved(repository)
    if is_seen:
        see_plans(repository)
    before = (repository / PATH).read_bytes()
    (repository / PATH).write_bytes(FORMATTERS[how](before))

    assert (repository / PATH).read_bytes() != before
    assert write() == "git"


def test_what_was_brought_once_stays_brought_after_its_branch_and_repository_are_gone(repository, write):
    bring_approved(repository)
    see_plans(repository)
    run_git(repository, "checkout", "-q", "main")
    see_plans(repository)
    run_git(repository, "branch", "-qD", "theirs")
    approve(repository)
    change(repository, "# Why\n", "# Why\n\n")
    formatted = write()
    shutil.rmtree(repository / ".git")
    change(repository, "# Why\n", "# Why\n\n")

    assert (formatted, write()) == ("git", "git")


@pytest.mark.parametrize(
    ("path", "is_staged_only"),
    [
        *((path, False) for path in ("docs/PLAN-1.md", "docs/Old plan.txt", "plans/PLAN-1.md.orig")),
        ("plans/old/PLAN-9.md", True),
    ],
)
def test_an_approved_copy_elsewhere_in_the_repository_means_that_git_brought_it(
    repository, write, path, is_staged_only
):
    target = repository / path
    target.parent.mkdir(exist_ok=True)
    target.write_text((repository / PATH).read_text().replace("status: DRAFT", "status: APPROVED"))
    commit(repository)
    if is_staged_only:
        run_git(repository, "reset", "-q", "--soft", "HEAD~1")
    else:
        run_git(repository, "rm", "-q", "--cached", path)
    target.rename(repository / PATH)
    change(repository, "# Why\n", "# Why\n\n")

    assert write() == "git"


def map_head(text, convert):
    """The plan with the lines of its front matter converted."""
    _, head, rest = text.split(b"---\n", 2)
    return b"---\n" + convert(head) + b"---\n" + rest


REFUSED_FORMS = {
    "indented": lambda text: map_head(text, lambda head: b" " + head.rstrip(b"\n").replace(b"\n", b"\n ") + b"\n"),
    "line ends": lambda text: text.replace(b"\n", b"\r"),
    "too large": lambda text: text + b"\n" * 400_000,
    "too large inside": lambda text: text.replace(b"# Why\n", b"# Why" + b" " * 400_000 + b"\n"),
    "utf-16": lambda text: text.decode().encode("utf-16"),
    "byte order mark": lambda text: b"\xef\xbb\xbf" + text,
    "blank line first": lambda text: b"\n" + text,
    "quoted key": lambda text: text.replace(b"kaiza_plan:", b'"kaiza_plan":'),
    "directive": lambda text: b"%YAML 1.2\n" + text,
    "flow mapping": lambda text: map_head(text, lambda head: b"{" + head.rstrip(b"\n").replace(b"\n", b",\n") + b"}\n"),
    "lower case": lambda text: text.replace(b"APPROVED", b"approved"),
    "escaped status": lambda text: text.replace(b"APPROVED", b'"\\x41PPROVED"').replace(b"kaiza_plan", b" kaiza_plan"),
    "without delimiter": lambda text: text.removeprefix(b"---\n"),
}


@pytest.mark.parametrize("how", REFUSED_FORMS)
def test_an_approval_that_git_brought_in_a_form_that_is_refused_does_not_count_once_it_is_mended(
    repository, write, how
):
    approve(repository)
    mended = (repository / PATH).read_bytes()
    put_blob(repository, REFUSED_FORMS[how](mended))
    see_plans(repository)
    (repository / PATH).write_bytes(mended)

    assert write() == "git"


@pytest.mark.parametrize("status", ["DRAFT", "<STATUS>"])
def test_a_template_with_a_backslash_in_its_text_brings_no_plan(repository, write, status):
    (repository / "docs").mkdir()
    template = f"---\nkaiza_plan: 1\nplan_id: <ID>\nstatus: {status}\n---\nSay APPROVED and \\d or \\x41 here.\n"
    (repository / "docs/template.md").write_text(template)
    commit(repository)
    see_plans(repository)
    approve(repository)

    assert write() == "ok"


def test_a_git_that_cannot_read_one_of_its_files_may_have_the_plan_in_it(repository, write):
    (repository / "docs").mkdir()
    (repository / "docs/lost.md").write_text("lost\n")
    commit(repository)
    name = run_git(repository, "rev-parse", "HEAD:docs/lost.md").strip()
    (repository / ".git/objects" / name[:2] / name[2:]).unlink()
    approve(repository)

    assert write() == "git"


def test_a_draft_whose_text_speaks_of_approval_may_be_approved_by_editing(repository, write):
    change(repository, "# Why\n", "# Why\nOnce it is APPROVED.\n")
    (repository / "docs").mkdir()
    (repository / "docs/guide.md").write_text("PLAN-1 says\n```\nstatus: APPROVED\n```\n")
    commit(repository)
    see_plans(repository)
    approve(repository)

    assert write() == "ok"


def conflict(root, *words):
    """Two branches, one with the approval, change the same line of prose; the person keeps theirs by hand."""
    run_git(root, "checkout", "-qb", "theirs")
    approve(root)
    change(root, "# Why\n", "# Why they\n")
    commit(root)
    run_git(root, "checkout", "-q", "main")
    change(root, "# Why\n", "# Why we\n")
    commit(root)
    see_plans(root)
    run_git(root, *words, fails=True)
    text = (root / PATH).read_text()
    assert "<<<<<<<" in text
    assert "status: APPROVED" in text
    head, _, rest = text.partition("<<<<<<<")
    mine = rest.partition("\n")[2].partition("=======\n")[0]
    (root / PATH).write_text(head + mine + rest.partition(">>>>>>>")[2].partition("\n")[2])
    assert "# Why we" in (root / PATH).read_text()


@pytest.mark.parametrize(
    ("words", "then"),
    [
        *((words, "at once") for words in ("merge theirs", "cherry-pick theirs", "merge --squash theirs")),
        *(("merge theirs", then) for then in ("committed", "reset", "taken up again")),
    ],
)
def test_resolving_a_conflict_in_the_text_does_not_approve(repository, write, words, then):
    conflict(repository, *words.split())
    if then == "committed":
        commit(repository)
    elif then == "reset":
        run_git(repository, "reset", "-q")
    elif then == "taken up again":
        see_plans(repository)
        run_git(repository, "reset", "-q", "--mixed")
        for name in ("MERGE_HEAD", "CHERRY_PICK_HEAD", "SQUASH_MSG"):
            (repository / ".git" / name).unlink(missing_ok=True)
        change(repository, "# Why we\n", "# Why we\n\n")

    assert write() not in {"ok", None}


@pytest.mark.parametrize("how", ["restore", "reset"])
def test_a_file_taken_from_a_branch_or_left_by_a_reset_was_brought(repository, write, how):
    run_git(repository, "checkout", "-qb", "theirs")
    approve(repository)
    commit(repository)
    if how == "restore":
        run_git(repository, "checkout", "-q", "main")
        run_git(repository, "restore", "--source=theirs", "plans")
    else:
        run_git(repository, "reset", "-q", "HEAD~1")
    change(repository, "# Why\n", "# Why\n\n")

    assert write() == "git"


def test_a_first_approval_of_what_another_branch_has_approved_needs_the_command(repository, write):
    run_git(repository, "checkout", "-qb", "theirs")
    approve(repository)
    commit(repository)
    run_git(repository, "checkout", "-q", "main")
    see_plans(repository)
    approve(repository)
    change(repository, "# Why\n", "# Why\n\n")

    assert write() == "git"
    assert confirm(repository, "plan", "approve", "PLAN-1") == 0
    assert write() == "ok"


@pytest.mark.parametrize("name", ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "sequencer"])
@pytest.mark.parametrize("is_worktree", [False, True])
def test_nothing_counts_anew_while_git_is_in_the_middle_of_something(repository, write, name, is_worktree):
    directory = repository / ".git"
    if is_worktree:
        run_git(repository, "worktree", "add", "-q", "--detach", str(repository.parent / "linked"))
        directory = repository / ".git/worktrees/linked"
        shutil.move(repository / ".git", repository.parent / "real")
        directory = repository.parent / "real/worktrees/linked"
        (repository / ".git").write_text(f"gitdir: {directory}\n")
        (directory / "gitdir").write_text(f"{repository / '.git'}\n")
        run_git(repository, "reset", "-q", "--hard")
    (directory / name).mkdir() if name.startswith(("rebase", "sequencer")) else (directory / name).write_text("0" * 40)
    approve(repository)

    assert write() in {"in_progress", "git"}


@pytest.mark.parametrize("is_brought", [False, True])
def test_a_lock_of_the_index_only_postpones_the_decision(repository, write, is_brought):
    lock = repository / ".git/index.lock"
    if is_brought:
        bring_approved(repository)
        change(repository, "# Why\n", "# Why\n\n")
    else:
        approve(repository)
    lock.write_text("")
    results = [write(), write()]
    lock.unlink()

    assert [*results, write()] == ["locked", "locked", "git" if is_brought else "ok"]


def test_popping_a_stash_into_other_text_does_not_approve(repository, write):
    run_git(repository, "checkout", "-qb", "theirs")
    approve(repository)
    change(repository, "# Why\n", "# Why they\n")
    run_git(repository, "stash", "-q")
    run_git(repository, "checkout", "-q", "main")
    change(repository, "# Why\n", "# Why we\n")
    commit(repository)
    see_plans(repository)
    run_git(repository, "stash", "pop", fails=True)
    run_git(repository, "stash", "drop", "-q")
    text = run_git(repository, "show", "main:" + PATH).replace("status: DRAFT", "status: APPROVED")
    (repository / PATH).write_text(text)  # resolved by hand; the stages of the index still have both

    assert run_git(repository, "ls-files", "-u")
    assert write() == "git"


@pytest.mark.parametrize(
    ("name", "place"),
    [*((name, "root") for name in (".hg", ".svn", ".jj", ".bzr", "_darcs")), (".hg", "above"), (".hg", "plans")],
)
def test_under_another_version_control_an_edit_does_not_count(workspace, write, name, place):
    (workspace / "src").mkdir()
    plan(workspace, status="DRAFT")
    {"root": workspace, "above": workspace.parent, "plans": workspace / "plans"}[place].joinpath(name).mkdir()
    approve(workspace)

    assert write() == "other_vcs"
    assert confirm(workspace, "plan", "approve", "PLAN-1") == 0
    assert write() == "ok"


def put_blob(root, content):
    """Commit these bytes as the plan, as another machine would, and check them out."""
    blob = subprocess.run(
        ["git", "hash-object", "-w", "--no-filters", "--stdin"], cwd=root, capture_output=True, check=True,
        input=content,
    ).stdout.decode().strip()  # fmt: skip
    run_git(root, "update-index", "--cacheinfo", f"100644,{blob},{PATH}")
    run_git(root, "commit", "-qm", "theirs")
    (root / PATH).unlink()
    run_git(root, "checkout", "--", PATH)


@pytest.mark.parametrize("is_formatted", [False, True])
@pytest.mark.parametrize("attribute", ["working-tree-encoding=latin1", "filter=shout"])
def test_what_a_checkout_converts_into_an_approval_does_not_count(repository, write, attribute, is_formatted):
    (repository / "plans/.gitattributes").write_text(f"*.md {attribute}\n")
    run_git(repository, "add", "plans/.gitattributes")
    draft = (repository / PATH).read_bytes().replace(b"A plan", "Ä plan".encode())
    if "encoding" in attribute:
        draft = draft.decode("latin1").encode()  # what a checkout as latin1 turns into the text
    put_blob(repository, draft)
    see_plans(repository)
    if "filter" in attribute:
        run_git(repository, "config", "filter.shout.smudge", "sed s/DRAFT/APPROVED/")
        (repository / PATH).unlink()
        run_git(repository, "checkout", "--", PATH)
    else:
        put_blob(repository, draft.replace(b"DRAFT", b"APPROVED"))
    content = (repository / PATH).read_bytes()
    if is_formatted:
        (repository / PATH).write_bytes(content + b"\n")

    assert b"status: APPROVED" in content
    assert hash_of(repository) not in run_git(repository, "cat-file", "--batch-check", "--batch-all-objects")
    assert write() == "git"


@pytest.mark.parametrize("status", ["DRAFT", "REVOKED", "REJECTED", "DONE"])
def test_a_status_edited_here_withdraws_until_a_person_approves(repository, write, status):
    approve(repository)
    approved, content = write(), (repository / PATH).read_bytes()
    commit(repository)
    change(repository, "status: APPROVED", f"status: {status}")
    edited = write()
    run_git(repository, "checkout", "--", "plans")
    restored = write()
    kept = [each["detail"] for each in records(repository) if each["kind"] == "recovery"]
    assert confirm(repository, "plan", "approve", "PLAN-1") == 0

    assert (approved, edited, restored, write()) == ("ok", "PLAN_CHANGED_AFTER_APPROVAL", "PLAN_WITHDRAWN", "ok")
    assert (repository / PATH).read_bytes() == content
    assert kept == [{"result": "plan_withdrawn", "status": status}]


@pytest.mark.parametrize("how", ["checkout", "edit"])
def test_a_discarded_approval_is_withdrawn_and_no_branch_brings_it_back(repository, write, how):
    see_plans(repository)
    approve(repository)
    results, approved = [write()], (repository / PATH).read_bytes()
    if how == "edit":
        change(repository, "status: APPROVED", "status: DRAFT")
    else:
        run_git(repository, "checkout", "--", PATH)
    results.append(write())
    run_git(repository, "checkout", "-qb", "other")
    put_blob(repository, approved)

    assert [*results, write()] == ["ok", "PLAN_CHANGED_AFTER_APPROVAL", "PLAN_WITHDRAWN"]


@pytest.mark.parametrize("has_git", [True, False])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("APPROVED", "revoked"),
        ("APPROVED", "Revoked"),
        ("APPROVED", ""),
        ("title: A plan\nstatus: APPROVED", "title: A plan: not now\nstatus: REVOKED"),
        ("status: APPROVED", "status: DRAFT\nreason: unsafe"),
    ],
)
def test_a_withdrawal_that_makes_the_file_invalid_is_one(repository, begun, write, old, new, has_git):
    if not has_git:
        shutil.rmtree(repository / ".git")
    approve(repository)
    results, content = [write()], (repository / PATH).read_bytes()
    change(repository, old, new)
    see_plans(repository)
    (repository / PATH).write_bytes(content)
    results.append(write())
    assert confirm(repository, "plan", "approve", "PLAN-1") == 0

    assert [*results, write()] == ["ok", "PLAN_WITHDRAWN", "ok"]


@pytest.mark.parametrize(
    ("old", "new"), [("title: A plan", "title: A plan: more"), ("status: APPROVED", "status: approved"), ("", None)]
)
def test_an_invalid_file_that_sets_no_other_status_withdraws_nothing(repository, write, old, new):
    approve(repository)
    results, content = [write()], (repository / PATH).read_bytes()
    (repository / PATH).write_bytes(content[:60] if new is None else content.replace(old.encode(), new.encode()))
    see_plans(repository)
    (repository / PATH).write_bytes(content)

    assert [*results, write()] == ["ok", "ok"]


@pytest.mark.parametrize("status", ["DRAFT", "REVOKED", "DONE"])
def test_a_status_that_a_branch_has_suspends_and_one_that_a_commit_set_withdraws(repository, write, status):
    run_git(repository, "checkout", "-qb", "other")
    if status != "DRAFT":
        change(repository, "status: DRAFT", f"status: {status}")
        commit(repository)
        run_git(repository, "rm", "-q", "--cached", PATH)
        run_git(repository, "reset", "-q", "--hard")
    run_git(repository, "checkout", "-q", "main")
    see_plans(repository)
    approve(repository)
    results = [write()]
    commit(repository)
    run_git(repository, "checkout", "-q", "other")
    results.append(write())
    run_git(repository, "checkout", "-q", "main")
    results.append(write())
    run_git(repository, "checkout", "-qb", "teammate")
    put_blob(repository, (repository / PATH).read_bytes().replace(b"APPROVED", status.encode()))
    results.append(write())
    run_git(repository, "checkout", "-q", "main")
    results.append(write())

    changed = "PLAN_CHANGED_AFTER_APPROVAL"
    assert results == ["ok", changed, "ok", changed, "PLAN_WITHDRAWN"]


@pytest.mark.parametrize("tool", ["write_file", "list_plans", "begin_session"])
def test_an_approval_that_a_call_has_seen_outlives_the_commit(repository, make_app, begun, write, tool):
    approve(repository)
    if tool == "write_file":
        assert write() == "ok"
    elif tool == "list_plans":
        begun.call("list_plans", {})
    else:
        make_app(repository).call("begin_session", {"role": "WINDSURF"})
    commit(repository)

    assert write() == "ok"
    assert [each["detail"]["how"] for each in records(repository) if each["kind"] == "plan"] == ["edited"]


@pytest.mark.parametrize("has_git", [True, False])
def test_an_approved_plan_that_lay_there_when_the_workspace_was_bound_was_brought(
    workspace, make_app, monkeypatch, has_git
):
    monkeypatch.setenv("HOME", str(workspace.parent))
    text = HEAD.format(plan_id="PLAN-1", status="APPROVED", scope='{create: ["src/**"]}', more="")
    (workspace / PATH).write_text(text)
    if has_git:
        run_git(workspace, "init", "-q")
    app = make_app(workspace)
    app.call("begin_session", {"role": "WINDSURF"})

    def write():
        arguments = {"path": "src/a", "content": "x\n", "plan_hash": hash_of(workspace)}
        envelope = app.call("write_file", {**arguments, "dry_run": True}).envelope
        return envelope and (envelope["cause"].get("came_by") or envelope["invariant_id"])

    lay_there = write()
    (workspace / PATH).write_text(text.replace("APPROVED", "DRAFT"))
    see_plans(workspace)
    (workspace / PATH).write_text(text + "\n")

    assert (lay_there, write()) == ("bound", "PLAN_WITHDRAWN")
    assert confirm(workspace, "plan", "approve", "PLAN-1") == 0
    assert write() is None


def test_a_draft_seen_in_an_earlier_workspace_does_not_approve_a_plan_of_the_next(workspace, make_app):
    plan(workspace, status="DRAFT")
    app = make_app(workspace)
    app.call("begin_session", {"role": "WINDSURF"})
    app.close()
    content = (workspace / PATH).read_text().replace("DRAFT", "APPROVED")
    for name in (".kaiza", "audit", "plans"):
        shutil.rmtree(workspace / name)
    for name in ("audit", "plans"):
        (workspace / name).mkdir()
    (workspace / PATH).write_text(content)
    app = make_app(workspace)
    app.call("begin_session", {"role": "WINDSURF"})
    arguments = {"path": "a", "content": "x\n", "plan_hash": hash_of(workspace)}

    assert app.call("write_file", arguments).envelope["cause"].get("came_by") == "bound"


@pytest.mark.parametrize(
    ("name", "what"),
    [
        *((name, "fifo") for name in ("HEAD", "index", "config", "packed-refs", "refs/heads/main", "info/attributes")),
        *((name, what) for name in ("HEAD", "config") for what in ("loop", "directory")),
    ],
)
def test_odd_files_in_git_s_directory_make_nobody_wait(repository, write, monkeypatch, name, what):
    path = repository / ".git" / name
    path.unlink(missing_ok=True)
    if what == "fifo":
        os.mkfifo(path)
    elif what == "loop":
        path.symlink_to(path.name)
    else:
        path.mkdir()
    approve(repository)
    waited = []
    real_run = subprocess.run

    def note(*words, **options):
        try:
            return real_run(*words, **{**options, "timeout": 5})
        except subprocess.TimeoutExpired:
            waited.append(words)
            raise

    monkeypatch.setattr(subprocess, "run", note)
    git.read_head(str(repository))

    assert write() != "ok" or what == "directory"
    assert waited == []
