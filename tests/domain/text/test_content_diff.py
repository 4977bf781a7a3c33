"""Changed spans of contents: the same as a diff of all lines, with memory only for the lines that may differ."""

import io
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaiza.domain.text import content_diff, edits, unified_diff
from kaiza.domain.text.content_diff import diff_contents
from kaiza.domain.text.edits import ReplaceText
from kaiza.domain.text.line_diff import diff_lines

contents = st.lists(st.sampled_from([b"a\n", b"b\n", b"ab\n", b"\n", b"\r\n", b"\xff\n"]), max_size=20).flatmap(
    lambda lines: st.sampled_from([b"", b"a", b"ab"]).map(lambda rest: b"".join(lines) + rest)
)


def rebuild(old, new, spans):
    """The new content from the old one and the spans."""
    pieces, at = [], 0
    for _, span in spans:
        pieces += (old[at : span.old_start], new[span.new_start : span.new_end])
        at = span.old_end
    return b"".join((*pieces, old[at:]))


def assert_consistent(old, new, spans):
    assert rebuild(old, new, spans) == new
    for lines, span in spans:
        assert lines.old_start == old.count(b"\n", 0, span.old_start)
        assert lines.new_start == new.count(b"\n", 0, span.new_start)
        assert lines.old_end - lines.old_start == len(io.BytesIO(old[span.old_start : span.old_end]).readlines())
        assert lines.new_end - lines.new_start == len(io.BytesIO(new[span.new_start : span.new_end]).readlines())
        for content, start, end in ((old, span.old_start, span.old_end), (new, span.new_start, span.new_end)):
            assert start == 0 or content[start - 1 : start] == b"\n"
            assert end in (start, len(content)) or content[end - 1 : end] == b"\n"


@given(contents, contents)
def test_the_spans_are_those_of_a_diff_of_all_lines(old, new):
    spans = list(diff_contents(old, new))

    assert [span.lines for span in spans] == diff_lines(io.BytesIO(old).readlines(), io.BytesIO(new).readlines())
    assert_consistent(old, new, spans)


@given(contents, contents, st.integers(min_value=0, max_value=8))
def test_lines_that_are_too_many_to_be_compared_count_as_replaced(old, new, most):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(content_diff, "MAX_LINES", most)
        spans = list(diff_contents(old, new))

    assert_consistent(old, new, spans)


ranges = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 6), st.sampled_from([b"", b"x", b"x\ny\n", b"\n"])))


@given(contents, ranges, st.integers(min_value=0, max_value=8))
def test_known_replacements_are_compared_one_by_one_where_all_lines_between_are_too_many(old, replacements, most):
    end, resolved = 0, []
    for start, length, text in sorted(replacements):
        if end <= start and start + length <= len(old) and old[start : start + length] != text:
            resolved.append(edits._ResolvedEdit(len(resolved), start, start + length, text))
            end = start + length + (length == 0)
    new = old
    for edit in reversed(resolved):
        new = new[: edit.start] + edit.new_text + new[edit.end :]
    if new == old:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(content_diff, "MAX_LINES", most)
        edited = edits._apply_in_order(old, resolved)
        spans = list(diff_contents(old, new, edited.replaced))

    assert edited.content == new
    assert_consistent(old, new, spans)


def test_two_edits_far_apart_in_a_file_of_many_lines_are_two_small_changes():
    middle = b"z\n" * (content_diff.MAX_LINES + 10)
    old = b"first\nkeep\n" + middle + b"keep\nlast\n"
    new, replaced = edits.apply(old, [ReplaceText(b"first\n", b"1\n2\n"), ReplaceText(b"last", b"end")])
    tracemalloc.start()
    made = unified_diff.compare(
        unified_diff.FileVersion("f", old), unified_diff.FileVersion("f", new), replaced=replaced
    )
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    count = content_diff.MAX_LINES + 10

    assert (made.lines_added, made.lines_removed, made.truncated) == (3, 2, False)
    assert made.data.count(b"\n@@ ") == 2
    assert b"@@ -%d,4 +%d,4 @@\n" % (count + 1, count + 2) in made.data
    assert peak < len(old)


def test_a_content_of_many_lines_that_is_replaced_takes_little_memory():
    old, new = b"a\n" * content_diff.MAX_LINES, b"b\n" * content_diff.MAX_LINES
    tracemalloc.start()
    made = unified_diff.compare(unified_diff.FileVersion("f", old), unified_diff.FileVersion("f", new))
    counts = unified_diff.count_changed_lines(old, new)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert counts == (made.lines_added, made.lines_removed) == (content_diff.MAX_LINES, content_diff.MAX_LINES)
    assert made.truncated
    assert peak < 6 * len(old)
