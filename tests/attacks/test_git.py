"""Hostile repositories: no git command of Kaiza starts a program that the repository names."""

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from scenes import make_ready

import kaiza
from kaiza.store import git

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")

EXECUTABLE = re.compile(
    r"fsmonitor|ssh|pager|editor|clean|smudge|process|external|helper|program|command|cmd|textconv|driver|alias|askpass"
    r"|proxy|hook|browser|uploadpack|receivepack|packobjects|alternaterefs|filter|tocmd|cccmd|difftool|mergetool|exec",
    re.IGNORECASE,
)
KNOWN = {
    "core.fsmonitor", "core.sshcommand", "core.pager", "core.editor", "core.askpass", "core.gitproxy", "core.hookspath",
    "core.alternaterefscommand", "credential.helper", "diff.external", "gpg.program", "sequence.editor",
    "uploadpack.packobjectshook", "interactive.difffilter", "filter.evil.clean", "filter.evil.smudge",
    "filter.evil.process", "diff.evil.textconv", "diff.evil.command", "merge.evil.driver", "alias.evil", "pager.evil",
}  # fmt: skip
NAMES = {"alias": ["rev-parse", "check-attr", "check-ignore", "cat-file", "hash-object", "config"],
         "pager": ["rev-parse", "check-attr", "check-ignore", "cat-file", "hash-object", "config"]}  # fmt: skip


@cache
def program_keys():
    """Every configuration key that can name a program, with a name in place of each placeholder."""
    listing = subprocess.run(["git", "help", "--config"], capture_output=True, check=True, text=True).stdout
    listed = [line for line in listing.split("\n") if re.fullmatch(r"[\w.<>*-]+", line) and EXECUTABLE.search(line)]
    listed += ["filter.<driver>.clean", "filter.<driver>.smudge", "filter.<driver>.process", "diff.<driver>.textconv"]
    listed += ["diff.<driver>.command", "merge.<driver>.driver", "diff.external", "alias.*", "pager.<cmd>"]
    named = sorted({re.sub(r"<\w+>|\*", "evil", line) for line in listed})
    return [key for key in named if takes_text(key)]


def takes_text(key):
    """Whether git accepts a path for the key: one that must be a number or a keyword names no program."""
    for words in (["rev-parse", "--git-dir"], ["status"], ["log", "-1"]):
        command = ["git", "-c", "core.fsmonitor=/bin/true", "-c", f"{key}=/bin/true", *words]
        completed = subprocess.run(command, capture_output=True, check=False, cwd=Path(__file__).parent.parent)
        if b"bad " in completed.stderr:
            return False
    return True


@pytest.fixture
def trace(tmp_path):
    return tmp_path / "trace"


@pytest.fixture
def script(tmp_path, trace):
    """A program that writes to the trace file."""
    path = tmp_path / "evil.sh"
    path.write_text(f'#!/bin/sh\necho "$0 $@" >> {trace}\ncat\n')
    path.chmod(0o755)
    return path


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    root = make_ready(tmp_path / "project")
    (root / "a").write_text("a\n")
    for words in (["init", "-q"], ["add", "a"], ["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "s"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    return root


def make_hostile(root, script):
    """Set every key at once, attributes that use the drivers, and hooks."""
    sections = [(key.rpartition(".")[0], key.rpartition(".")[2]) for key in program_keys()]
    sections += [(name, command) for name, commands in NAMES.items() for command in commands]
    text = ""
    for section, key in sections:
        name, _, below = section.partition(".")
        text += f'[{name} "{below}"]\n' if below else f"[{name}]\n"
        text += f"\t{key} = {'!' * (name == 'alias')}{script}\n"
    with (root / ".git/config").open("a") as config:
        config.write(
            text + '[user]\n\tname = Ann\n[extensions]\n\tpartialClone = origin\n[remote "origin"]\n\turl = x@y:z\n'
        )
    (root / ".gitattributes").write_text("* filter=evil diff=evil merge=evil\n")
    (root / "git").write_text(script.read_text())
    (root / "git").chmod(0o755)
    for hook in ("post-index-change", "reference-transaction", "post-checkout", "fsmonitor-watchman", "pre-auto-gc"):
        (root / ".git/hooks" / hook).write_text(script.read_text())
        (root / ".git/hooks" / hook).chmod(0o755)


def test_every_configuration_key_that_names_a_program_is_covered():
    assert {key.lower() for key in program_keys()} >= KNOWN


def test_a_plain_git_status_does_start_the_planted_program(root, script, trace):
    make_hostile(root, script)
    subprocess.run(["git", "status"], cwd=root, capture_output=True, check=False)

    assert trace.exists()


@pytest.mark.parametrize(
    ("words", "path"),
    [
        *((words, "{root}") for words in ("doctor", "freeze now", "plan list", "status", "init --yes")),
        *(("status", path) for path in (None, "", ".", ":", "{root}/../project:/nowhere", "./bin::.")),
    ],
)
def test_no_command_starts_a_program_that_the_repository_names(root, script, trace, words, path):
    make_hostile(root, script)
    search = os.environ["PATH"] if path is None else path.format(root=root) + os.pathsep + os.environ["PATH"]
    completed = subprocess.run(
        [sys.executable, "-m", "kaiza", *words.split()], cwd=root, capture_output=True, check=False,
        env={**os.environ, "PATH": search, "GIT_DIR": str(root / ".git"), "GIT_EXTERNAL_DIFF": str(script)},
    )  # fmt: skip

    assert completed.returncode in {0, 1}, completed.stderr
    assert not trace.exists()


def test_every_allowed_git_command_works_and_starts_no_planted_program(root, script, trace):
    blob = subprocess.run(["git", "rev-parse", "HEAD:a"], cwd=root, capture_output=True, check=True).stdout.strip()
    make_hostile(root, script)
    directory = str(root)
    results = [
        git.run(directory, "rev-parse", "HEAD:a"),
        git.run(directory, "cat-file", "blob", blob.decode()),
        git.run(directory, "cat-file", "--batch", stdin=blob + b"\n" + b"0" * 39 + b"1\n"),
        git.run(directory, "check-ignore", "-q", "a"),
        git.run(directory, "check-attr", "filter", "a"),
        git.run(directory, "hash-object", "--stdin", stdin=b"a\n"),
        git.run(directory, "config", "user.name"),
        git.run(directory, "hash-object", "a"),
    ]

    assert [each.returncode for each in results] == [0, 0, 0, 1, 0, 0, 0, 0]
    assert results[0].stdout.strip() == results[5].stdout.strip() == results[7].stdout.strip() == blob
    assert (results[1].stdout, results[6].stdout) == (b"a\n", b"Ann\n")
    assert b"evil" in results[4].stdout
    assert b"missing" in results[2].stdout
    assert not trace.exists()


@pytest.mark.parametrize(
    ("command", "arguments"),
    [("status", []), ("diff", []), ("commit", []), ("evil", []), ("cat-file", ["--textconv", "HEAD:a"]),
     ("cat-file", ["--filters", "HEAD:a"]), ("", []), ("-c", ["alias.x=!x", "x"])],
)  # fmt: skip
def test_any_other_git_command_is_refused(root, command, arguments):
    with pytest.raises(ValueError, match="not allowed"):
        git.run(str(root), command, *arguments)


@pytest.mark.parametrize("working_directory", ["project", "elsewhere"])
@pytest.mark.parametrize("path", ["", ".", "bin", ":", "{root}", "{root}/bin", "{link}"])
def test_a_git_inside_the_workspace_is_never_used(root, script, monkeypatch, path, working_directory):
    tmp_path = root.parent
    for directory in (root, root / "bin", tmp_path / "elsewhere" / "bin"):
        directory.mkdir(parents=True, exist_ok=True)
        shutil.copy(script, directory / "git")
    (tmp_path / "link").symlink_to(root / "bin")
    monkeypatch.chdir(tmp_path / working_directory)
    monkeypatch.setenv("PATH", path.format(root=root, link=tmp_path / "link"))

    assert git.run(str(root), "rev-parse", "HEAD") is None
    assert git.run(os.path.relpath(root), "rev-parse", "HEAD") is None
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize("name", ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"])
def test_git_variables_of_another_repository_are_not_inherited(root, monkeypatch, tmp_path, name):
    expected = git.run(str(root), "rev-parse", "--absolute-git-dir", "HEAD:a").stdout
    monkeypatch.setenv(name, str(tmp_path / "nowhere"))

    assert git.run(str(root), "rev-parse", "--absolute-git-dir", "HEAD:a").stdout == expected


def test_replacement_objects_are_ignored(root):
    first = git.run(str(root), "rev-parse", "HEAD:a").stdout.decode().strip()
    other = subprocess.run(
        ["git", "hash-object", "-w", "--stdin"], input=b"other\n", cwd=root, capture_output=True, check=True
    ).stdout.decode()
    subprocess.run(["git", "replace", first, other.strip()], cwd=root, check=True)

    assert git.run(str(root), "cat-file", "blob", first).stdout == b"a\n"


def test_a_git_that_does_not_finish_in_time_gives_no_result(root, monkeypatch, tmp_path):
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow/git").write_text("#!/bin/sh\nexec tail -f /dev/null\n")
    (tmp_path / "slow/git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'slow'}{os.pathsep}{os.environ['PATH']}")

    assert git.run(str(root), "rev-parse", "HEAD", seconds=0.1) is None


def test_no_other_module_starts_git():
    sources = list(Path(kaiza.__file__).parent.rglob("*.py"))
    starting = [path for path in sources if re.search(r"[\[]\"git\"|which\(\"git\"", path.read_text())]

    assert len(sources) >= 200
    assert starting == [Path(git.__file__)]
