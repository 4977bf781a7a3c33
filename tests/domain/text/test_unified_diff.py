import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaiza.domain import patch
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.text import line_diff, unified_diff
from kaiza.domain.text.unified_diff import FileVersion

ROUNDS = 3000 if os.environ.get("KAIZA_LONG") else 150
F, G = RelPath(("d", "f")), RelPath(("d", "g"))
contents = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"\n", b"\r\n", b"\0\xff\r\n", b"-- x\n"]), max_size=30)
files = st.builds(lambda lines, rest: b"".join(lines) + rest, contents, st.sampled_from([b"", b"", b"a", b"\xe9"]))


def diff(before, after, **more):
    return unified_diff.compare(FileVersion(F, before), FileVersion(F, after), **more)


def parse_and_apply(made, before):
    (file,) = files = patch.parse(made.data)
    patch.check_with_unidiff(made.data, files)
    assert (file.lines_added, file.lines_removed) == (made.lines_added, made.lines_removed)
    return file, patch.apply_file_patch(file, before)


def test_a_diff_is_in_the_format_of_git():
    made = diff(b"1\n2\n3\n4\n5\n6\n7\n8\n", b"1\n2\n3\n4\nfive\n6\n7\n8")

    assert made.text == (
        "diff --git a/d/f b/d/f\n--- a/d/f\n+++ b/d/f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n-8\n+8\n"
        "\\ No newline at end of file\n"
    )
    assert (made.lines_added, made.lines_removed, made.truncated) == (2, 2, False)


def test_distant_changes_are_in_separate_hunks():
    before = b"".join(b"%d\n" % number for number in range(20))

    assert diff(before, before.replace(b"\n3\n", b"\nx\n").replace(b"\n11\n", b"\ny\n")).data.count(b"\n@@ ") == 2
    assert diff(before, before.replace(b"\n3\n", b"\nx\n").replace(b"\n10\n", b"\ny\n")).data.count(b"\n@@ ") == 1


def test_equal_versions_give_an_empty_diff():
    assert diff(b"a", b"a").data == b""


@pytest.mark.parametrize(
    ("old", "new", "header"),
    [
        (
            FileVersion(F, None),
            FileVersion(F, b"a\n"),
            b"new file mode 100644\n--- /dev/null\n+++ b/d/f\n@@ -0,0 +1 @@\n+a\n",
        ),
        (FileVersion(F, None), FileVersion(F, b"", 0o755), b"new file mode 100755\n"),
        (
            FileVersion(F, b"a\n", 0o755),
            FileVersion(F, None),
            b"deleted file mode 100755\n--- a/d/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n",
        ),
        (FileVersion(F, b"a"), FileVersion(F, b"a", 0o755), b"old mode 100644\nnew mode 100755\n"),
        (FileVersion(F, b"a"), FileVersion(G, b"a"), b"rename from d/f\nrename to d/g\n"),
    ],
)
def test_the_header_says_whether_a_file_is_created_deleted_renamed_or_changes_mode(old, new, header):
    made = unified_diff.compare(old, new)

    assert made.data.partition(b"\n")[2] == header
    assert parse_and_apply(made, old.content)[1] == new.content


@given(files, files)
@settings(max_examples=300)
def test_the_patch_parser_accepts_and_applies_every_diff(before, after):
    if before != after:
        assert parse_and_apply(diff(before, after), before)[1] == after


@given(st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=20))
def test_any_file_name_survives_diff_and_parse(name):
    path = RelPath(("x" + name, "b " + name))
    made = unified_diff.compare(FileVersion(path, b"a\n"), FileVersion(path / "c", b"b\n"))

    file, _ = parse_and_apply(made, b"a\n")
    assert (file.source, file.path) == (path, path / "c")


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("git"), reason="git is compared with")
def test_git_applies_every_diff_and_none_is_longer_than_gits(tmp_path):
    rng = random.Random("diffs")
    file = tmp_path / "d" / "f"
    file.parent.mkdir()
    for _ in range(ROUNDS):
        before, after = (
            b"".join(rng.choice([b"a\n", b"b\n", b"c\n", b"d\r\n", b"\n"]) for _ in range(rng.randrange(1, 40)))
            for _ in range(2)
        )
        if before == after:
            continue
        file.write_bytes(before)
        made = diff(before, after)
        subprocess.run(["git", "apply", "--whitespace=nowarn"], cwd=tmp_path, input=made.data, check=True)

        assert file.read_bytes() == after
        assert made.lines_added + made.lines_removed <= minimal_line_count(tmp_path, before, after)


def minimal_line_count(place: Path, before: bytes, after: bytes) -> int:
    (place / "before").write_bytes(before)
    (place / "after").write_bytes(after)
    command = ["git", "diff", "--no-index", "--numstat", "--text", "--minimal", "before", "after"]
    added, removed, _ = subprocess.run(command, cwd=place, capture_output=True, check=False).stdout.split(b"\t")
    return int(added) + int(removed)


def test_a_large_diff_is_truncated_at_a_line_with_full_counts():
    made = diff(b"", b"word\n" * 50_000, max_bytes=1000)

    assert made.truncated
    assert 990 < len(made.data) <= 1000
    assert made.data.endswith(b"\n+word\n")
    assert made.lines_added == 50_000


def test_the_work_of_a_diff_is_bounded():
    rng = random.Random("work")
    shuffled = [b"%d\n" % number for number in range(20_000)]
    other = shuffled.copy()
    rng.shuffle(other)
    search = line_diff._MyersSearch(shuffled, other)
    spans = list(search.run())
    unchanged = 20_000 - sum(span.old_end - span.old_start for span in spans)

    assert search._remaining_work > -line_diff.MAX_WORK
    assert unchanged > 100


def test_unique_lines_match_beyond_the_work_bound():
    old = [b"%d\n" % number for number in range(8000)]
    new = [line if at % 3 else b"x" + line for at, line in enumerate(old)]
    spans = line_diff.diff_lines(old, new)

    assert sum(span.new_end - span.new_start for span in spans) == len(range(0, 8000, 3))


def test_bytes_that_are_not_utf8_are_escaped_in_the_text():
    assert "+\\xff\0\n" in diff(b"a\n", b"\xff\0\n").text
