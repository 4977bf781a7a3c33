"""The author of each line, found by walking a file's versions."""

import difflib
import subprocess

from hypothesis import given
from hypothesis import strategies as st

from kaiza.domain.review.authorship import UNKNOWN_AUTHOR, WITHOUT_KAIZA, AuthoredVersion, LineAuthor, compare_versions
from kaiza.domain.review.diff import build_diff, split_content

ONE, TWO, THREE = LineAuthor(1, "r1"), LineAuthor(2, "r2"), LineAuthor(3, "r3")
CONTENTS = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"d\n", b"e"]), max_size=12).map(b"".join)


def compare(first, *versions):
    versions = [AuthoredVersion(None if text is None else split_content(text), author) for text, author in versions]
    return compare_versions(split_content(first), versions)


def changed_lines(authored):
    """Pairs of line and author: what was removed, what was added."""
    removed = [(authored.old[number], author) for number, author in authored.removed_by.items()]
    return removed, [(authored.new[number], author) for number, author in authored.added_by.items()]


def test_each_line_names_the_change_that_wrote_or_removed_it():
    authored = compare(b"a\nb\nc\n", (b"a\nx\nc\n", ONE), (b"a\nx\nc\ny\n", TWO), (b"x\nc\ny\n", WITHOUT_KAIZA))
    removed, added = changed_lines(authored)

    assert removed == [(b"a\n", WITHOUT_KAIZA), (b"b\n", ONE)]
    assert added == [(b"x\n", ONE), (b"y\n", TWO)]


def test_a_line_that_was_only_put_back_is_no_change():
    authored = compare(b"a\nb\n", (b"a\n", ONE), (b"a\nb\n", TWO))

    assert authored.spans == ()


def test_a_line_that_one_call_wrote_and_another_changed_belongs_to_the_later_call():
    _, added = changed_lines(compare(b"", (b"a\nb\n", ONE), (b"a\nB\n", TWO)))

    assert added == [(b"a\n", ONE), (b"B\n", TWO)]


def test_lines_of_changes_whose_contents_were_not_kept_are_attributed_to_none_of_them():
    _, added = changed_lines(compare(b"a\n", (None, ONE), (b"a\nb\n", TWO), (b"a\nb\nc\n", THREE)))

    assert added == [(b"b\n", UNKNOWN_AUTHOR), (b"c\n", THREE)]


def test_lines_of_several_changes_by_one_author_need_no_contents_in_between():
    _, added = changed_lines(compare(b"a\n", (None, ONE), (b"a\nb\n", ONE)))

    assert added == [(b"b\n", ONE)]


@given(CONTENTS, st.lists(CONTENTS, min_size=1, max_size=5))
def test_the_diff_turns_the_first_content_into_the_last_and_names_an_author_for_each_line(first, contents):
    authors = [LineAuthor(number, f"r{number}") for number in range(len(contents))]
    authored = compare(first, *zip(contents, authors, strict=True))
    rebuilt, at = [], 0
    for span in authored.spans:
        rebuilt += authored.old[at : span.old_start] + authored.new[span.new_start : span.new_end]
        at = span.old_end
    rebuilt += authored.old[at:]

    assert rebuilt == authored.new == split_content(contents[-1])
    assert {*authored.removed_by.values(), *authored.added_by.values()} <= {*authors}


@given(CONTENTS, CONTENTS)
def test_one_change_is_the_usual_diff(first, last):
    authored = compare(first, (last, ONE))
    matcher = difflib.SequenceMatcher(None, authored.old, authored.new, autojunk=False)
    longest = sum(block.size for block in matcher.get_matching_blocks())

    assert len(authored.old) - len(authored.removed_by) >= longest


def test_hunks_have_three_lines_of_context_and_count_what_lies_between():
    first = b"".join(b"%d\n" % number for number in range(40))
    diff = build_diff(compare(first, (first.replace(b"10\n", b"ten\n").replace(b"30\n", b"thirty\n"), ONE)))

    assert [(hunk.old_start, hunk.old_count, hunk.new_start, hunk.new_count) for hunk in diff.hunks] == [
        (8, 7, 8, 7),
        (28, 7, 28, 7),
    ]
    assert [hunk.unchanged_before for hunk in diff.hunks] == [7, 13]
    assert diff.unchanged_after == 6
    assert [(line.kind, line.old_number, line.new_number) for line in diff.hunks[0].lines][2:6] == [
        ("context", 10, 10),
        ("removed", 11, None),
        ("added", None, 11),
        ("context", 12, 12),
    ]


def test_the_words_that_differ_are_marked():
    diff = build_diff(compare(b"LIFETIME = 60 * 24 * 30\n", (b"LIFETIME = 60 * 24\n", ONE)))
    removed, added = diff.hunks[0].lines

    assert [removed.text[start:end] for start, end in removed.words] == [" * 30"]
    assert added.words == ()


def test_lines_that_share_little_have_no_marks():
    diff = build_diff(compare(b"return True\n", (b"raise ValueError(message)\n", ONE)))

    assert [line.words for line in diff.hunks[0].lines] == [(), ()]


def test_a_diff_of_too_many_lines_is_folded_and_says_how_many():
    diff = build_diff(compare(b"", (b"x\n" * 801, ONE)))

    assert (diff.hunks, diff.lines_added) == ((), 801)
    assert diff.fold.reason == "large"
    assert build_diff(compare(b"", (b"x\n" * 800, ONE))).fold is None


def test_a_long_line_is_cut_and_says_by_how_much():
    (line,) = build_diff(compare(b"", (b"x" * 100_000, ONE))).hunks[0].lines

    assert (len(line.text), line.omitted, line.lacks_newline) == (2_000, 98_000, True)


def test_bytes_that_are_not_utf8_are_written_as_numbers():
    (line,) = build_diff(compare(b"", (b"caf\xe9\n", ONE))).hunks[0].lines

    assert line.text == "caf\\xe9"


def test_a_hunk_is_what_git_makes_of_the_same_contents(tmp_path):
    old, new = b"a\nb\nc\nd\ne\nf\ng\nh\n", b"a\nB\nc\nd\ne\nf\ng\nh\ni"
    (tmp_path / "old").write_bytes(old)
    (tmp_path / "new").write_bytes(new)
    git = subprocess.run(["git", "diff", "--no-index", "old", "new"], cwd=tmp_path, capture_output=True, check=False)
    heads = [line.split("@@")[1].strip() for line in git.stdout.decode().splitlines() if line.startswith("@@")]
    (hunk,) = build_diff(compare(old, (new, ONE))).hunks

    assert heads == [f"-{hunk.old_start},{hunk.old_count} +{hunk.new_start},{hunk.new_count}"]
    assert hunk.lines[-1].lacks_newline
