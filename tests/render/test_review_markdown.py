"""Code spans and fences that no text can leave."""

import re

import pytest
from hostile_texts import TEXTS, invisible_characters
from hypothesis import given
from hypothesis import strategies as st

from kaiza.render.review_markdown import code, fence_lines

RUN = re.compile("`+")


def require_closed(span):
    """A code span ends at the first run of as many backticks as it began with (CommonMark 6.1)."""
    opening = RUN.match(span)[0]
    inner = span[len(opening) : -len(opening)]

    assert span.endswith(opening)
    assert opening not in RUN.findall(inner)
    assert not inner.startswith("`")
    assert not inner.endswith("`")
    assert invisible_characters(span) == []
    assert "\n" not in span


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_code_span_ends_where_it_should(text):
    require_closed(code(text))


@given(st.text(st.sampled_from("`` a\\|<\n"), max_size=12))
def test_no_mix_of_backticks_leaves_a_code_span(text):
    require_closed(code(text))


@given(st.lists(st.text(st.sampled_from("`~ a\n"), max_size=8), max_size=5))
def test_no_line_ends_a_fence(lines):
    first, *inner, last = fence_lines(lines)

    assert first == f"{last}text"
    assert [
        line for line in inner if re.match(r" {0,3}`{3,}", line) and len(RUN.match(line.lstrip(" "))[0]) >= len(last)
    ] == []
