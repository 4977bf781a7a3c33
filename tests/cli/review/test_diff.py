"""`kaiza diff`: what git can apply, what a terminal may show."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from agents import sha
from hostile_texts import INVALID_UTF8, TEXTS, file_names, invisible_characters


def files_below(root):
    return {
        str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mode & 0o111)
        for path in sorted(root.rglob("*"))
        if path.is_file() and not {"audit", ".kaiza", "plans"} & set(path.relative_to(root).parts)
    }


def git_apply(tree, patch, *options):
    return subprocess.run(["git", "apply", *options], input=patch, cwd=tree, capture_output=True, check=False)


@pytest.fixture
def changed(scene, tmp_path):
    """Every kind of change, with the tree as it was before."""
    for name in ("modified", "deleted", "moved", "edited", "restored", "no newline", "crlf", "été"):
        scene.write(f"src/{name}.py", f"{name}\n" + "".join(f"line {number}\n" for number in range(9)))
    scene.write("src/crlf.py", "one\r\ntwo\r\n")
    scene.write("src/no newline.py", "one\ntwo")
    (scene.root / "src/été.py").chmod(0o755)
    before = tmp_path / "before"
    shutil.copytree(scene.root, before)
    text = (scene.root / "src/modified.py").read_text()
    scene.overwrite("src/modified.py", text.replace("line 4", "LINE 4"))
    scene.overwrite("src/été.py", "changed\n")
    scene.overwrite("src/crlf.py", "one\r\n2\r\n")
    scene.overwrite("src/no newline.py", "one\n2")
    scene.overwrite("src/new/deep.py", "new\n")
    scene.overwrite("src/empty.py", "")
    scene.change("delete_file", path="src/deleted.py", expected_hash=sha((scene.root / "src/deleted.py").read_bytes()))
    for name in ("moved", "edited"):
        known = sha((scene.root / f"src/{name}.py").read_bytes())
        scene.change("move_file", source=f"src/{name}.py", destination=f"src/other/{name}.py", expected_hash=known)
    scene.overwrite("src/other/edited.py", (scene.root / "src/other/edited.py").read_text() + "more\n")
    undone = scene.overwrite("src/restored.py", "x\n")
    scene.change("undo_changes", request_ids=[undone["request_id"]])
    scene.before = before
    return scene


def test_git_applies_the_diff_to_what_was_there_before(changed, kaiza):
    patch = kaiza("diff").raw
    check = git_apply(changed.before, patch, "--check")
    applied = git_apply(changed.before, patch)

    assert (check.returncode, check.stderr, applied.returncode) == (0, b"", 0)
    assert files_below(changed.before) == files_below(changed.root)
    assert b"restored.py" not in patch


def test_git_takes_the_diff_back_from_what_is_there_now(changed, kaiza):
    after = git_apply(changed.root, kaiza("diff").raw, "-R", "--check")

    assert (after.returncode, after.stderr) == (0, b"")


def test_the_choices_narrow_what_is_shown(changed, kaiza, monkeypatch):
    by_path = kaiza("diff", "--name-only", "src/other", "src/new/")
    monkeypatch.chdir(changed.root / "src")
    from_below = kaiza("diff", "--name-only", "modified.py")
    by_session = kaiza("diff", "--session", changed.session_id[:6], "--name-only")
    by_plan = kaiza("diff", "--plan", "PLAN-0007", "--name-only")
    call = json.loads(kaiza("diff", "--json").out)

    assert by_path.out.splitlines() == ["src/new/deep.py", "src/other/edited.py", "src/other/moved.py"]
    assert from_below.out == "src/modified.py\n"
    assert by_session.out == by_plan.out
    assert '"src/\\303\\251t\\303\\251.py"' in by_plan.out
    assert {file["path"]: file["operation"] for file in call["files"]}["src/other/moved.py"] == "move"


def test_only_the_agents_part_is_shown_of_a_file_that_changed_since(story, kaiza):
    result = kaiza("diff", "docs/auth.md")

    assert result.status == 0
    assert "+A session token lives for a day." in result.out
    assert "script" not in result.out


def test_what_a_person_undid_is_left_out(scene, kaiza):
    scene.overwrite("src/a.py", "one\n")
    scene.overwrite("src/b.py", "one\n")
    last = scene.overwrite("src/b.py", "two\n")
    scene.close()
    shown = json.loads(kaiza("diff", "--json").out)
    assert kaiza("undo", "--request", last["request_id"], "--yes", "--as", "Ada").status == 0
    undone_once = kaiza("diff")
    assert kaiza("undo", "--session", scene.session_id, "--yes", "--as", "Ada").status == 0
    undone = kaiza("diff")

    assert [file["path"] for file in shown["files"]] == ["src/a.py", "src/b.py"]
    assert ("+one" in undone_once.out, "two" in undone_once.out) == (True, False)
    assert undone.out == ""


def test_what_is_not_kept_is_named_and_the_status_is_1(story, kaiza):
    (story.root / ".kaiza/objects" / f"{story.outcomes.docs['after_hash']}.z").unlink()
    result = kaiza("diff")

    assert result.status == 1
    assert "docs/auth.md is not shown" in result.err
    assert "diff --git a/docs/auth.md" not in result.out
    assert "diff --git a/src/auth/tokens.py" in result.out


def test_changes_of_others_in_between_are_said(scene, kaiza):
    scene.overwrite("src/a.py", "one\n")
    scene.write("src/a.py", "one\ntwo\n")
    scene.overwrite("src/a.py", "one\ntwo\nthree\n")
    result = kaiza("diff")

    assert "+two" in result.out
    assert "src/a.py: others changed it" in result.err


@pytest.mark.parametrize(
    "choice", [["--session", "zz"], ["--plan", "NOPE"], ["--request", "zz"], ["--session", ""], ["--session", "0" * 36]]
)
def test_an_unknown_choice_is_a_failure_that_says_what_to_do(story, kaiza, choice):
    result = kaiza("diff", *choice)

    assert (result.status, result.out) == (1, "")
    assert "`kaiza" in result.err


def test_several_sessions_with_a_prefix_are_listed(scene, kaiza, monkeypatch):
    first = scene.session_id
    scene.overwrite("src/a.py", "one\n")
    while scene.begin()[0] != first[0]:
        pass
    result = kaiza("diff", "--session", first[0])

    assert result.status == 1
    assert first in result.err


def test_without_a_change_there_is_no_last_session(scene, kaiza):
    assert kaiza("diff").status == 1
    assert kaiza("diff", "--session", scene.session_id).status == 0


def test_the_stat_counts_what_git_counts_in_the_same_diff(changed, kaiza):
    patch = kaiza("diff").raw
    git = subprocess.run(["git", "apply", "--stat"], input=patch, capture_output=True, check=True)

    assert kaiza("diff", "--stat").out.splitlines()[-1] == git.stdout.decode().splitlines()[-1]


def test_a_closed_pipe_is_quiet(changed):
    command = f"{sys.executable} -m kaiza diff | head -c 1"
    result = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, check=False)

    assert (result.stderr, result.returncode) == (b"", 0)


def test_hostile_names_are_quoted_as_git_quotes_them_and_contents_are_exact(scene, kaiza, tmp_path):
    before = tmp_path / "empty"
    before.mkdir()
    for name in file_names():
        if scene.call("write_file", path=f"src/{name}", content=name + "\n").envelope:
            continue
    scene.overwrite("src/contents.txt", "\n".join(TEXTS.values()))
    patch = kaiza("diff").raw
    applied = git_apply(before, patch)

    assert applied.returncode == 0
    assert files_below(before) == files_below(scene.root)
    assert len(files_below(before)) > 15


@pytest.fixture
def hostile(scene, tmp_path):
    """Changes of every kind to files that hold every hostile text, and a copy of the tree before."""
    everything = "\n".join(TEXTS.values())
    for name, content in {
        "edited": everything,
        "moved": everything,
        "deleted": everything,
        "cleaned": everything,
    }.items():
        scene.write(f"src/{name}", content)
    scene.write("src/\x1b[31m", "one\n")
    scene.write("src/latin", INVALID_UTF8)
    scene.write("src/empty", "")
    (scene.root / "src/moved").chmod(0o755)
    before = tmp_path / "before"
    shutil.copytree(scene.root, before)
    scene.overwrite("src/edited", everything + "\nmore\n")
    scene.change("move_file", source="src/moved", destination="src/there", expected_hash=sha(everything.encode()))
    scene.overwrite("src/there", "\x1b[2J" + everything)
    scene.change("delete_file", path="src/deleted", expected_hash=sha(everything.encode()))
    scene.overwrite("src/cleaned", "clean\n")
    scene.overwrite("src/created", everything * 30)
    scene.overwrite("src/\x1b[31m", "two\n")
    scene.overwrite("src/latin", "clean\n")
    scene.overwrite("src/empty", "\x07")
    scene.overwrite("src/bidi", TEXTS["bidi"])
    scene.overwrite("src/crlf", "one\r\ntwo\tthree\r\n")
    scene.before = before
    return scene


def test_a_pipe_gets_nothing_that_controls_the_terminal_at_its_end(hostile, kaiza):
    patch, listed = kaiza("diff"), kaiza("diff", "--json")
    shown = {char for result in (patch, listed) for char in result.out + result.err}
    bidi = set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")

    assert {char for char in shown if ord(char) < 32 or 126 < ord(char) < 160} <= {"\n", "\r", "\t"}
    assert shown & bidi == set()
    assert b"\r" not in patch.raw.replace(b"\r\n", b"")
    assert b"+one\r\n" in patch.raw
    assert "src/there: " in patch.err


def test_git_applies_what_a_pipe_gets_of_control_characters_and_takes_it_back(hostile, kaiza):
    patch = kaiza("diff").raw
    applied = git_apply(hostile.before, patch)

    assert applied.returncode == 0
    assert files_below(hostile.before) == files_below(hostile.root)
    assert git_apply(hostile.root, patch, "-R", "--check").returncode == 0


def test_a_pipe_gets_what_a_terminal_gets_if_colour_is_always_wanted(hostile, kaiza):
    result = kaiza("diff", "--color=always")
    lines = [line.removesuffix("\x1b[0m") for line in result.out.splitlines()]
    plain = "".join(line.partition("m")[2] if line.startswith("\x1b[") else line for line in lines)

    assert "\x1b[32m+" in result.out
    assert invisible_characters(plain) == []
    assert result.err == ""


def test_a_terminal_never_gets_control_characters_of_a_file(scene, at_terminal):
    scene.overwrite("src/contents.txt", "\n".join(TEXTS.values()))
    scene.close()
    screen = at_terminal("diff", "--no-pager", NO_COLOR="1")
    status = screen.end()

    assert status == 0
    assert [char for char in invisible_characters(screen.shown) if char != "\r"] == []
    assert "\\x1b[31mred" in screen.shown


def test_colour_is_only_for_a_terminal_and_not_with_no_color(story, kaiza, at_terminal):
    screen = at_terminal("diff", "--no-pager")
    screen.end()

    assert "\x1b[32m" in screen.shown
    assert "\x1b" not in kaiza("diff").out


def test_a_pager_is_used_on_a_terminal_only(story, kaiza, at_terminal, monkeypatch):
    monkeypatch.setenv("PAGER", "sed s/^/paged:/")
    screen, direct = at_terminal("diff"), at_terminal("diff", "--no-pager")
    screen.end()
    direct.end()

    assert "paged:" in screen.shown
    assert "paged:" not in direct.shown
    assert "paged:" not in kaiza("diff").out


@pytest.mark.parametrize("pager", ["", "cat", "no-such-pager", "'unclosed"])
def test_without_a_usable_pager_the_diff_is_printed(story, at_terminal, monkeypatch, pager):
    monkeypatch.setenv("PAGER", pager)
    screen = at_terminal("diff")

    assert screen.end() == 0
    assert "A session token" in screen.shown


def test_a_pager_that_is_left_early_is_no_error(scene, at_terminal, monkeypatch):
    scene.overwrite("src/a.py", "x = 1\n")
    scene.write("src/a.py", "x = 2\n")
    scene.overwrite("src/a.py", "x = 3\n" * 50_000)
    scene.close()
    monkeypatch.setenv("PAGER", "head -n 1")
    screen = at_terminal("diff")

    assert screen.end() == 0
    assert "Traceback" not in screen.shown
    assert "others changed it" in screen.shown


def test_invalid_utf8_is_exact_when_piped_and_shown_as_numbers_on_a_terminal(scene, process, kaiza, at_terminal):
    latin = b"caf\xe9 \xff\xfe\n"
    scene.write("src/a.txt", latin)
    scene.overwrite("src/a.txt", "clean\n")
    scene.close()
    screen = at_terminal("diff", "--no-pager")
    screen.end()

    assert b"-" + latin in process("diff").stdout
    assert "caf\\xe9" in screen.shown
    assert "caf\\\\xe9" in json.dumps(json.loads(kaiza("diff", "--json").out))


def test_a_damaged_log_is_said_and_the_diff_shown_nevertheless(story, kaiza):
    log = story.root / "audit/audit-log.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"duration_ms":', b'"duration_ms":1', 1))
    result = kaiza("diff")

    assert "damaged" in result.err
    assert "+A session token lives for a day." in result.out


@pytest.mark.parametrize("words", [["diff"], ["review", "--open"]])
def test_no_pager_or_browser_is_started_from_the_workspace(story, at_terminal, tmp_path, words):
    """An activated environment in the workspace puts a directory of it in front of PATH."""
    planted, mark = story.root / "venv/bin", tmp_path / "started"
    planted.mkdir(parents=True)
    for name in ("less", "xdg-open", "x-www-browser", "xdg-settings", "gio", "firefox", "www-browser", "w3m"):
        (planted / name).write_text(f"#!/bin/sh\ntouch '{mark}'\n")
        (planted / name).chmod(0o755)
    screen = at_terminal(*words, PATH=f"{planted}{os.pathsep}{os.environ['PATH']}", DISPLAY=":9")
    screen.end()

    assert not mark.exists()
