"""TreeWalk: order, ignore rules compared with git, links, resumption, and descriptors."""

import os
import random
import shutil
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kaiza.domain.paths.rel_path import ROOT
from kaiza.store.files import tree_walk
from kaiza.store.files.confined_root import ConfinedRoot

LONG = int(os.environ.get("KAIZA_LONG", "0"))
NAMES = ["a", "b", "ab", "a.c", "b.c", ".h", "a b", "build", "x.py", "k[1]", "é", "A"]
PIECES = [
    *("a", "b", "ab", "*", "*.c", "?", "**", "a*", "[ab]", "[!a]", "build", ".h", "*b", "a\\ b", "k\\[1\\]", "**b"),
    *("a**", "[a-b]*", "x.py", "{a,b}", "[[:alpha:]]", "[]a]", "[a-", "\\", "[!", "[^a]?", "[b-a]", "***", "[\\a-b]"),
    *("[[:x:]]", "[a\\]]", "[-a]", "[a-]", "\\*", "[[:digit:]a]*", "[a-c-e]", "é", "??", "\\a", "a//", "", " a", "#a"),
]


@pytest.fixture(params=["openat2", "walk"])
def workspace(tmp_path, request):
    root = tmp_path / "project"
    root.mkdir()
    with ConfinedRoot(str(root), resolver=request.param) as opened:
        yield opened


def write(workspace, path, content=""):
    target = os.path.join(workspace.root, path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "w") as file:
        file.write(content)


def never_over():
    return False


def walked_paths(workspace, start=ROOT, *, include_ignored=False, since="", over=never_over):
    with tree_walk.TreeWalk(workspace, start, include_ignored=include_ignored, over=over, since=since) as walk:
        return [found.path for found in walk]


def random_pattern(rng):
    text = "/".join(rng.choice(PIECES) for _ in range(rng.choice([1, 1, 1, 2, 2, 3])))
    for chance, edit in (
        (0.2, lambda text: "/" + text),
        (0.25, lambda text: text + "/"),
        (0.3, lambda text: "!" + text),
        (0.05, lambda text: text + "  "),
        (0.03, lambda text: "#" + text),
        (0.03, lambda text: text + "\r"),
    ):
        if rng.random() < chance:
            text = edit(text)
    return text


def grow(root, rng, depth=0):
    for name in rng.sample(NAMES, rng.randint(1, 5)):
        path = os.path.join(root, name)
        if depth < 3 and rng.random() < 0.45:
            os.mkdir(path)
            grow(path, rng, depth + 1)
        elif rng.random() < 0.05:
            os.symlink("a", path)
        else:
            with open(path, "w"):
                pass
        if depth and rng.random() < 0.1:
            write_ignore_file(root, rng)


def write_ignore_file(directory, rng, name=".gitignore"):
    with open(os.path.join(directory, name), "w") as file:
        file.write("\n".join(random_pattern(rng) for _ in range(rng.randint(1, 4))) + rng.choice(["", "\n"]))


def listed_by_git(root):
    git = ["git", "-C", root, "-c", "core.excludesFile=/dev/null", "ls-files", "-o", "-c", "-z", "--exclude-standard"]
    out = subprocess.run(git, capture_output=True, check=True).stdout
    return sorted(os.fsdecode(name) for name in out.split(b"\0") if name)


def paths_of_kaiza_and_git(root, seed):
    rng = random.Random(seed)
    shutil.rmtree(root, ignore_errors=True)
    os.mkdir(root)
    grow(root, rng)
    subprocess.run(["git", "init", "-q", root], check=True)
    write_ignore_file(root, rng)
    if rng.random() < 0.3:
        write_ignore_file(os.path.join(root, ".git", "info"), rng, "exclude")
    with (
        ConfinedRoot(root) as workspace,
        tree_walk.TreeWalk(workspace, ROOT, include_ignored=False, over=never_over) as walk,
    ):
        ours = [found.path for found in walk if found.type != "directory"]
    return ours, listed_by_git(root)


@pytest.mark.parametrize("seed", range(60))
def test_the_walk_ignores_what_git_ignores(tmp_path, seed):
    ours, theirs = paths_of_kaiza_and_git(str(tmp_path / "tree"), seed)

    assert ours == theirs


@pytest.mark.long
def test_the_walk_ignores_what_git_ignores_in_thousands_of_trees(tmp_path):
    for seed in range(1000, 1000 + (2000 if LONG else 40)):
        ours, theirs = paths_of_kaiza_and_git(str(tmp_path / "tree"), seed)

        assert ours == theirs, seed


def test_paths_are_sorted_each_directory_before_its_entries(workspace):
    for path in ("a/x", "a.txt", "a-b", "a/b/c", "a0", "b"):
        write(workspace, path)

    assert walked_paths(workspace) == ["a", "a-b", "a.txt", "a/b", "a/b/c", "a/x", "a0", "b"]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10_000), data=st.data())
def test_a_walk_can_start_at_any_path(tmp_path, seed, data):
    root = str(tmp_path / "tree")
    shutil.rmtree(root, ignore_errors=True)
    os.mkdir(root)
    grow(root, random.Random(seed))
    with ConfinedRoot(root) as workspace:
        whole = walked_paths(workspace, include_ignored=True)
        since = data.draw(st.one_of(st.sampled_from(whole), st.text(st.sampled_from("ab./ \U0001f600"))))

        assert whole == sorted(whole)
        assert walked_paths(workspace, include_ignored=True, since=since) == [path for path in whole if path >= since]


def test_git_and_kaiza_are_never_walked_at_any_depth(workspace):
    for path in (".git/config", ".kaiza/journal", "sub/.git/config", "sub/a", ".github/x"):
        write(workspace, path)

    assert walked_paths(workspace, include_ignored=True) == [".github", ".github/x", "sub", "sub/a"]


def test_an_ignore_file_that_is_a_link_is_not_read(workspace):
    write(workspace, "rules", "a\n")
    write(workspace, "a")
    os.symlink("rules", os.path.join(workspace.root, ".gitignore"))

    assert "a" in walked_paths(workspace)


@pytest.mark.usefixtures("alarm")
def test_patterns_made_for_exponential_matching_end(workspace):
    write(workspace, ".gitignore", "*a" * 60 + "*b\n" + "**/" * 40 + "x\n" + "[a" * 500 + "\n")
    write(workspace, "a" * 200)

    assert "a" * 200 in walked_paths(workspace)


def test_only_regular_files_are_opened_and_none_blocks(workspace):
    write(workspace, "a", "text")
    os.mkfifo(os.path.join(workspace.root, "pipe"))
    os.symlink("a", os.path.join(workspace.root, "z"))
    contents = {}
    with tree_walk.TreeWalk(workspace, ROOT, include_ignored=True, over=never_over) as walk:
        for found in walk:
            content = found.open()
            contents[found.path] = content and content.read(99)
            if content:
                content.close()

    assert contents == {"a": b"text", "pipe": None, "z": None}


@pytest.mark.parametrize("target", ["../elsewhere", ".kaiza"])
def test_nothing_is_read_through_a_directory_that_was_swapped_for_a_link(workspace, target):
    write(workspace, "a/1", "inside")
    write(workspace, "a/b/2", "inside")
    write(workspace, "a/c", "inside")
    write(workspace, f"{target}/c", "outside")
    read = {}
    with tree_walk.TreeWalk(workspace, ROOT, include_ignored=True, over=never_over) as walk:
        for found in walk:
            if found.path == "a/b/2":
                os.rename(os.path.join(workspace.root, "a"), os.path.join(workspace.root, "moved"))
                os.symlink(target, os.path.join(workspace.root, "a"))
            content = found.open() if found.type == "file" else None
            if content:
                read[found.path] = content.read(99)
                content.close()

    assert b"outside" not in read.values()
    assert read["a/1"] == b"inside"


def test_a_deep_tree_needs_few_descriptors(workspace):
    depth = 300
    fd = os.open(workspace.root, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=fd)
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)
    before = len(os.listdir("/proc/self/fd"))
    with tree_walk.TreeWalk(workspace, ROOT, include_ignored=True, over=never_over) as walk:
        peak = max(len(os.listdir("/proc/self/fd")) for _ in walk)

    assert walk.visited_count == depth
    assert peak - before < 5
    assert len(os.listdir("/proc/self/fd")) == before
