"""A secret is as unreadable in a repository, and under another name of its file, as under its own."""

import json
import os
import zlib
from hashlib import sha1, sha256

import pytest
from agents import WIDE, plan
from repositories import run_git
from scenes import write_adopted_settings

from kaiza.domain.paths import protected_names
from kaiza.domain.paths.rel_path import parse
from kaiza.queries.review_contents import WorkspaceContents

TOKEN = "ghp-token-of-nobody-1234567890"
SECRET = f"TOKEN={TOKEN}\n".encode()
BLOB = b"blob %d\0" % len(SECRET) + SECRET
READABLE = {".git/HEAD", ".git/packed-refs", ".git/refs"}
STORES = [".git", ".hg", ".jj", ".svn", ".bzr", ".pijul", ".sl", "_darcs"]
SPELLINGS = [".Git", ".GIT", ".git.", ".git ", "git~1", ".g\u200bit", "\uff0egit", ".git\u3000"]


def commit_secret(root, url="https://ann:hunter2@example.org/x.git"):
    """A repository whose history, index and configuration have what the work tree does not show."""
    run_git(root, "init", "-q")
    (root / ".env").write_bytes(SECRET)
    run_git(root, "add", "-A", "-f", ".")
    run_git(root, "commit", "-q", "-m", f"add {TOKEN}")
    run_git(root, "tag", "v1")
    run_git(root, "remote", "add", "origin", url)
    run_git(root, "repack", "-q", "-a")
    run_git(root, "pack-refs", "--all")
    (root / "staged").write_bytes(SECRET)
    run_git(root, "add", "-f", "staged")
    (root / "staged").unlink()


def files_below(root, *names):
    return [str(path.relative_to(root)) for name in names for path in (root / name).rglob("*") if path.is_file()]


def ways_of_reading(root, path):
    """Every call that could show something of a file."""
    yield "read_file", {"path": path}
    yield "read_file", {"path": str(root / path)}
    yield "read_files", {"paths": [path]}
    yield "read_location", {"uri": (root / path).as_uri(), "position": {"line": 0, "character": 0}}
    yield "file_info", {"path": path, "with_hash": True}
    yield "search_text", {"query": "a|e|^", "path": path, "regex": True}


def told(app, calls):
    """All that the calls answer, refusals too, as one text; and the invariants of those that were refused."""
    answers = [app.call(tool, arguments) for tool, arguments in calls]
    refused = {answer.envelope["invariant_id"] for answer in answers if answer.envelope}
    for output in (answer.output for answer in answers if answer.output):
        files = output["files"] if isinstance(output.get("files"), list) else [output]
        refused |= {None for file in files if file.get("error_code") != "POLICY_VIOLATION"}
    return json.dumps([[answer.output, answer.envelope] for answer in answers]), refused


def assert_tells_nothing(text):
    for telltale in (TOKEN, "hunter2", sha1(BLOB).hexdigest()[2:], sha256(SECRET).hexdigest()):
        assert telltale not in text


def test_no_tool_reads_what_git_keeps(begun, workspace):
    commit_secret(workspace)
    paths = [path for path in files_below(workspace, ".git") if not path.startswith(".git/refs/")]
    assert any("/objects/pack/" in path for path in paths)
    for path in paths:
        text, refused = told(begun, ways_of_reading(workspace, path))
        if path in READABLE:
            assert_tells_nothing(text)
        else:
            assert refused == {"READ_PROTECTED"}, path


def test_no_walk_enters_a_repository(begun, workspace):
    commit_secret(workspace)
    (workspace / "sub/.GIT").mkdir(parents=True)
    (workspace / "sub/.GIT/config").write_bytes(SECRET)
    for name in STORES[1:]:
        (workspace / "sub" / name).mkdir()
        (workspace / "sub" / name / "data.md").write_bytes(SECRET)
    calls = [
        ("search_text", {"query": "TOKEN", "include_ignored": True}),
        ("search_text", {"query": "TOKEN", "path": "sub", "include_ignored": True}),
        ("find_files", {"pattern": "**/*", "include_ignored": True}),
        *((tool, {}) for tool in ("project_info", "project_assets_summary", "project_references_missing")),
    ]
    text, _ = told(begun, calls)

    assert_tells_nothing(text)
    assert not any(f"{name}/" in text for name in (*STORES, ".GIT"))


@pytest.mark.parametrize("path", [".git", ".git/objects", ".git/logs", ".git/refs/../objects", ".hg", ".svn/pristine"])
def test_a_repository_is_neither_listed_nor_described(begun, workspace, path):
    for name in (".git/objects", ".git/logs", ".git/refs", ".hg", ".svn/pristine"):
        (workspace / name).mkdir(parents=True, exist_ok=True)
    calls = [(tool, {"path": path}) for tool in ("list_directory", "file_info")]
    calls += [("find_files", {"path": path, "pattern": "**"}), ("search_text", {"path": path, "query": "x"})]
    _, refused = told(begun, calls)

    assert refused == ({None} if ".." in path else {"READ_PROTECTED"})


def test_head_and_refs_are_readable(begun, workspace):
    commit_secret(workspace)
    head = run_git(workspace, "rev-parse", "HEAD")
    run_git(workspace, "branch", "feature/x")

    assert begun.call("read_file", {"path": ".git/HEAD"}).output["content"] == "ref: refs/heads/main\n"
    assert head in begun.call("read_file", {"path": ".git/packed-refs"}).output["content"]
    assert begun.call("read_file", {"path": ".git/refs/heads/feature/x"}).output["content"] == f"{head}\n"
    assert [item["name"] for item in begun.call("list_directory", {"path": ".git/refs"}).output["items"]] == [
        "heads",
        "tags",
    ]


@pytest.mark.parametrize(
    "path",
    [
        *(f"{spelled}/HEAD" for spelled in SPELLINGS),
        *(f"{store}/HEAD" for store in STORES[1:]),
        ".git", ".git/head", ".git/HEAD/x", ".git/Refs/heads/main", ".git/refs/.git/config", ".git/refs/x.pem",
        ".git/modules/lib/HEAD", ".git/worktrees/w/HEAD", ".git/packed-refs.lock", ".git/COMMIT_EDITMSG", ".git/index",
        ".git/FETCH_HEAD", ".git/logs/HEAD", ".git/refs/heads/.hg/store", "a/b/.git/config",
        "a/.jj/repo/store/git/HEAD", "x\uff0f.git\uff0fconfig",
    ],
)  # fmt: skip
def test_nothing_else_in_a_repository_is_readable(path):
    assert protected_names.is_unreadable(parse(path))


@pytest.mark.parametrize("path", [".git/HEAD", "a/.git/HEAD", ".git/packed-refs", ".git/refs", ".git/refs/heads/a/b"])
def test_the_short_list_is_readable_at_any_depth(path):
    assert not protected_names.is_unreadable(parse(path))


def test_a_person_can_exempt_a_file_of_a_repository_by_its_exact_path(make_app, workspace):
    paths = (".git/description", "a/.git/description")
    for path in paths:
        (workspace / path).parent.mkdir(parents=True)
        (workspace / path).write_text("x")
    write_adopted_settings(workspace, 'allow_read = [".git/description"]')
    app = make_app(workspace)
    app.call("begin_session", {"role": "WINDSURF"})

    assert [app.call("read_file", {"path": path}).envelope is None for path in paths] == [True, False]


def test_the_file_that_leads_to_a_worktrees_repository_is_unreadable(begun, workspace):
    commit_secret(workspace)
    run_git(workspace, "worktree", "add", "-q", "tree")
    _, refused = told(begun, ways_of_reading(workspace, "tree/.git"))

    assert refused == {"READ_PROTECTED"}


@pytest.mark.parametrize("via", ["link", "deep/link"])
def test_links_into_a_repository_show_nothing_of_it(begun, workspace, via):
    """Not even that an object exists: it is named by the hash of its content, so that would confirm a guess."""
    commit_secret(workspace)
    (workspace / "deep").mkdir()
    (workspace / via).symlink_to(os.path.relpath(workspace / ".git", (workspace / via).parent))
    name = sha1(BLOB).hexdigest()
    there = f"{via}/objects/{name[:2]}/{name[2:]}"
    (workspace / there).parent.mkdir(exist_ok=True)
    (workspace / there).write_bytes(zlib.compress(BLOB))
    for path in (there, f"{via}/config", f"{via}/index"):
        text, refused = told(begun, ways_of_reading(workspace, path))

        assert refused == {"READ_PROTECTED"}
        assert TOKEN not in text
    answer = begun.call("list_directory", {"path": via})
    assert answer.envelope["invariant_id"] == "READ_PROTECTED"


def test_a_bare_repository_is_as_unreadable_as_one_called_git(begun, workspace):
    source = workspace / "source"
    source.mkdir()
    commit_secret(source)
    run_git(workspace, "clone", "-q", "--bare", "source", "mirror")
    run_git(workspace / "mirror", "remote", "set-url", "origin", "https://ann:hunter2@example.org/x.git")
    for name in ("rebase-merge", "rebase-apply", "sequencer", "lost-found"):
        (workspace / "mirror" / name).mkdir()
        (workspace / "mirror" / name / "patch").write_text("password = 'hunter2'\n")
    for path in files_below(workspace, "mirror"):
        if path.split("/")[1] not in ("HEAD", "packed-refs", "refs", "description"):
            _, refused = told(begun, ways_of_reading(workspace, path))
            assert refused == {"READ_PROTECTED"}, path
    text, _ = told(
        begun,
        [
            ("search_text", {"query": "hunter2|TOKEN", "regex": True, "include_ignored": True}),
            ("find_files", {"pattern": "**/*", "include_ignored": True}),
        ],
    )

    (workspace / "link").symlink_to("mirror/objects")
    _, through_link = told(begun, [("file_info", {"path": "link/pack"}), ("file_info", {"path": "link"})])

    assert_tells_nothing(text)
    assert "objects" not in text
    assert through_link == {"READ_PROTECTED"}
    assert begun.call("read_file", {"path": "mirror/HEAD"}).output["content"] == "ref: refs/heads/main\n"


def test_work_trees_in_a_bare_repository_and_ordinary_directories_are_readable(begun, workspace):
    source = workspace / "source"
    source.mkdir()
    (source / "config").mkdir()
    (source / "config/a.py").write_text("a = 1\n")
    run_git(source, "init", "-q")
    run_git(source, "add", "-A")
    run_git(source, "commit", "-q", "-m", "x")
    run_git(workspace, "clone", "-q", "--bare", "source", "bare")
    run_git(workspace / "bare", "worktree", "add", "-q", "work", "main")
    hits = begun.call("search_text", {"query": "a = 1"}).output["items"]

    assert sorted(hit["path"] for hit in hits) == ["bare/work/config/a.py", "source/config/a.py"]
    assert begun.call("read_file", {"path": "bare/work/config/a.py"}).envelope is None


SECRETS = [".env", "deep/er/id_rsa", ".git/config", ".kaiza/x", "vault/a.pem"]


def link_secret(root, secret, link="notes.txt"):
    (root / secret).parent.mkdir(parents=True, exist_ok=True)
    (root / secret).write_bytes(SECRET)
    os.link(root / secret, root / link)


@pytest.mark.parametrize("secret", SECRETS)
def test_another_name_of_a_secret_is_unreadable(begun, workspace, secret):
    link_secret(workspace, secret)
    text, refused = told(begun, ways_of_reading(workspace, "notes.txt"))
    found = begun.call("search_text", {"query": "TOKEN"}).output

    assert refused == {"READ_PROTECTED"}
    assert found["items"] == []
    assert "may not be read" in found["diagnostics"][0]
    assert_tells_nothing(text)


def test_a_review_shows_nothing_of_another_name_of_a_secret(begun, workspace):
    link_secret(workspace, ".env")
    (workspace / "plain").write_text("plain\n")
    (opened,) = begun.services.workspaces.values()
    contents = WorkspaceContents(opened)

    assert (contents.read_current("notes.txt").is_readable, contents.read_current("notes.txt").content) == (False, None)
    assert contents.read_current("plain").content == b"plain\n"


def test_another_name_of_a_secret_is_not_changed_either(begun, workspace):
    link_secret(workspace, ".env")
    approved = plan(workspace, scope=WIDE)
    asked = {"plan_hash": approved, "expected_hash": sha256(SECRET).hexdigest()}
    for tool, arguments in (
        ("write_file", {"path": "notes.txt", "content": "x\n"}),
        ("delete_file", {"path": "notes.txt"}),
        ("move_file", {"source": "notes.txt", "destination": "other"}),
    ):
        text, refused = told(begun, [(tool, {**asked, **arguments})])
        next(iter(begun.services.workspaces.values())).audit_state.locks.clear()

        assert refused == {"READ_PROTECTED"}
        assert TOKEN not in text
    assert (workspace / ".env").read_bytes() == SECRET


def test_a_link_made_after_the_last_look_is_found(begun, workspace):
    (workspace / "one").write_text("1\n")
    os.link(workspace / "one", workspace / "two")
    (workspace / ".env").write_bytes(SECRET)
    first = begun.call("read_file", {"path": "two"}).envelope
    os.link(workspace / ".env", workspace / "notes.txt")
    second = begun.call("read_file", {"path": "notes.txt"}).envelope
    (workspace / "plain").write_bytes(SECRET)
    os.link(workspace / "plain", workspace / "other")
    third = begun.call("read_file", {"path": "other"}).envelope
    os.rename(workspace / "plain", workspace / ".env")
    fourth = begun.call("read_file", {"path": "other"}).envelope

    assert (first, third) == (None, None)
    assert {each["invariant_id"] for each in (second, fourth)} == {"READ_PROTECTED"}


def test_links_that_package_managers_make_are_readable(begun, workspace):
    (workspace / "node_modules/a").mkdir(parents=True)
    (workspace / "node_modules/a/index.js").write_text("needle;\n")
    os.link(workspace / "node_modules/a/index.js", workspace / "node_modules/a/copy.js")
    for name in (".npmrc", "empty.js"):  # a store of contents has one file for all that are empty
        (workspace / "node_modules/a" / name).touch()
    (workspace / "node_modules/a/empty.js").unlink()
    os.link(workspace / "node_modules/a/.npmrc", workspace / "node_modules/a/empty.js")
    hits = begun.call("search_text", {"query": "needle"}).output

    assert [hit["path"] for hit in hits["items"]] == ["node_modules/a/copy.js", "node_modules/a/index.js"]
    assert begun.call("read_file", {"path": "node_modules/a/empty.js"}).envelope is None


def test_a_link_that_a_person_exempts_is_readable(make_app, workspace):
    link_secret(workspace, ".env")
    write_adopted_settings(workspace, 'allow_read = ["notes.txt"]\n')
    app = make_app(workspace)
    app.call("begin_session", {"role": "WINDSURF"})

    assert app.call("read_file", {"path": "notes.txt"}).envelope is None
