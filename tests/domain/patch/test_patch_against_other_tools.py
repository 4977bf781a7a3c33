import difflib
import io
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from kaiza.domain import errors, patch

ROUNDS = 5000 if os.environ.get("KAIZA_LONG") else 250
MUTATIONS = 200_000 if os.environ.get("KAIZA_LONG") else 20_000
MARKER = b"\n\\ No newline at end of file\n"
COMMON = [
    *(b"", b"}", b"    x", b"a", b"b", b"-- s", b"++ s", b"@@ -1 +1 @@", b"\\ No newline at end of file"),
    *(b"\xe9t\xe9", b"nul\0x", b"z\rz", b"f\x0cf", "\u2028".encode()),
]
PIECES = (b"", b"9", b"\0", b"\\", b'"', b"\r", b"\n", b" ", b"-", b"+", b"@@ ", b"/../", b"\xff", b"99999999999")
needs_git = pytest.mark.skipif(not shutil.which("git"), reason="git is compared with")
needs_diff = pytest.mark.skipif(not shutil.which("diff"), reason="diff is compared with")


def random_line(rng):
    kind = rng.random()
    if kind < 0.6:
        return rng.choice(COMMON)
    if kind < 0.9:
        return b"line %d" % rng.randrange(30)
    return rng.randbytes(5).replace(b"\n", b"")


def random_file(rng):
    ending = rng.choice([b"\n", b"\n", b"\r\n", None])
    count = rng.choice([0, 1, 2, 3, 5, 8, 13, 20, 40])
    lines = [random_line(rng) + (ending or rng.choice([b"\n", b"\r\n"])) for _ in range(count)]
    content = b"".join(lines)
    if rng.random() < 0.1:
        content = b"\xef\xbb\xbf" + content
    return content.removesuffix(b"\n") if rng.random() < 0.3 else content


def edit(rng, content, max_edits):
    lines = io.BytesIO(content).readlines()
    for _ in range(rng.randrange(1, max_edits + 1)):
        at = rng.randrange(len(lines) + 1)
        what = rng.choice(["insert", "delete", "replace", "move"])
        if what == "insert":
            lines[at:at] = [random_line(rng) + b"\n" for _ in range(rng.randrange(1, 4))]
        elif what == "delete":
            del lines[at : at + rng.randrange(1, 4)]
        elif what == "replace":
            lines[at : at + 1] = [random_line(rng) + b"\n"]
        elif lines:
            lines.insert(at, lines.pop(rng.randrange(len(lines))))
    after = b"".join(lines)
    return after.removesuffix(b"\n") if rng.random() < 0.1 else after


def by_git(before, after):
    write("a/f", before)
    write("b/f", after)
    return output("git", "diff", "--no-index", "--no-prefix", "--text", "a/f", "b/f")


def by_diff(before, after):
    write("a/f", before)
    write("b/f", after)
    return output("diff", "-ua", "a/f", "b/f")


def by_difflib(before, after):
    sides = [io.BytesIO(content).readlines() for content in (before, after)]
    lines = difflib.diff_bytes(difflib.unified_diff, *sides, b"a/f", b"b/f")
    return b"".join(line if line.endswith(b"\n") else line + MARKER for line in lines)


PRODUCERS = [
    pytest.param(by_git, marks=needs_git),
    pytest.param(by_diff, marks=needs_diff),
    by_difflib,
]


def write(path, content):
    Path(path).write_bytes(content)


def output(*command):
    return subprocess.run(command, capture_output=True, check=False).stdout


@pytest.fixture
def sides(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()


def changes(rng, max_edits=3):
    while True:
        before = random_file(rng)
        after = edit(rng, before, max_edits)
        if before != after:
            yield before, after


def parse_single_file(text):
    (file,) = files = patch.parse(text)
    patch.check_with_unidiff(text, files)
    return file


@pytest.mark.long
@pytest.mark.parametrize("producer", PRODUCERS)
def test_diffs_of_other_tools_apply_to_the_exact_result(sides, producer):
    rng = random.Random(producer.__name__)
    for (before, after), _ in zip(changes(rng), range(ROUNDS), strict=False):
        file = parse_single_file(producer(before, after))

        assert patch.apply_file_patch(file, before) == after


@pytest.mark.long
@needs_git
@pytest.mark.parametrize("producer", PRODUCERS)
def test_on_a_changed_file_a_patch_applies_only_to_the_result_of_a_clean_merge(sides, producer):
    rng = random.Random(f"drifted {producer.__name__}")
    applied = 0
    for (before, after), _ in zip(changes(rng), range(ROUNDS), strict=False):
        changed = edit(rng, before, 2)
        try:
            result = patch.apply_file_patch(parse_single_file(producer(before, after)), changed)
        except errors.SystemError:
            continue
        write("before", before)
        write("after", after)
        write("drifted", changed)
        merged = subprocess.run(
            ["git", "merge-file", "-p", "drifted", "before", "after"], capture_output=True, check=False
        )
        if merged.returncode == 255:
            continue
        applied += 1

        assert (merged.returncode, result) == (0, merged.stdout)
    assert applied


def mutate(rng, text):
    lines = io.BytesIO(text).readlines()
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(lines)) if lines else 0
        what = rng.randrange(6)
        if what == 0:
            lines[at : at + 1] = []
        elif what == 1:
            lines.insert(at, lines[at] if lines else b"")
        elif what == 2:
            lines.insert(at, lines.pop(rng.randrange(len(lines))) if lines else b"")
        elif lines:
            line = bytearray(lines[at])
            place = rng.randrange(len(line) + 1)
            line[place : place + rng.randrange(2)] = rng.choice(PIECES)
            lines[at] = bytes(line)
    return b"".join(lines)


VALID = (
    b"diff --git a/f b/f\nindex 1..2 100644\n--- a/f\n+++ b/f\n@@ -1,3 +1,4 @@ x\n a\n-b\n+B\n+C\n\n",
    b"diff --git a/n b/n\nnew file mode 100755\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+a" + MARKER,
    b"diff --git a/o b/o\ndeleted file mode 100644\n--- a/o\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n",
    b'diff --git "a/\\303" b/q\nrename from "\\303"\nrename to q\n--- "a/\\303"\n+++ b/q\n@@ -1 +1 @@\n-a\n+b\n',
    b'diff --git "a/\\\\" b/q\nrename from "\\\\"\nrename to q\n--- "a/\\\\"\n+++ b/q\n@@ -1 +1 @@\n-a\n+b\n',
    b"diff --git a/m b/m\nold mode 100644\nnew mode 100755\n",
)


@pytest.mark.long
def test_any_mutation_of_a_patch_is_applied_or_refused():
    rng = random.Random("mutations")
    outcomes = set()
    for _ in range(MUTATIONS):
        text = mutate(rng, b"".join(rng.sample(VALID, rng.randrange(1, len(VALID)))))
        try:
            files = patch.parse(text)
            patch.check_with_unidiff(text, files)
            for file in files:
                patch.apply_file_patch(file, None if file.operation == "create" else b"a\nb\n\n", 0o644)
            outcomes.add("applied")
        except errors.SystemError as error:
            outcomes.add(error.error_code)

    assert {"applied", "PATCH_INVALID", "PATCH_APPLY_FAILED"} <= outcomes
