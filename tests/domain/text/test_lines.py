import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaiza.domain.paging.response_size import AnswerBudget
from kaiza.domain.text import lines

FILES = st.text(st.sampled_from("ab\n\né\r")).map(str.encode) | st.binary(max_size=40)


def chunked(data, size):
    return [data[at : at + size] for at in range(0, len(data), size)]


def split(data):
    parts = [part + b"\n" for part in data.split(b"\n")]
    parts[-1] = parts[-1][:-1]
    return [part for part in parts if part]


@given(data=FILES, size=st.integers(1, 9))
def test_a_file_summary_does_not_depend_on_the_chunks(data, size):
    whole = lines.FileSummary()
    for chunk in chunked(data, size):
        whole.feed(chunk)
    crlf_count = data.count(b"\r\n")
    ending = "none" if b"\n" not in data else {0: "lf", data.count(b"\n"): "crlf"}.get(crlf_count, "mixed")

    assert whole.size == len(data)
    assert whole.hex_digest == hashlib.sha256(data).hexdigest()
    assert whole.total_lines == len(split(data))
    assert whole.line_ending == ending


@given(
    data=FILES,
    size=st.integers(1, 9),
    start=st.integers(0, 6),
    offset=st.integers(0, 12),
    most_lines=st.integers(1, 4),
    most_bytes=st.integers(1, 20),
)
def test_a_window_does_not_depend_on_the_chunks(data, size, start, offset, most_lines, most_bytes):
    window = lines.LineWindow(start, offset, most_lines=most_lines, most_bytes=most_bytes)
    for chunk in chunked(data, size):
        window.feed(chunk)
    skipped = len(b"".join(split(data)[:start])) + offset
    expected = b"".join(split(data[skipped:])[:most_lines])[:most_bytes]

    assert bytes(window.data) == (expected if start < len(split(data)) else b"")
    if window.data:
        assert window.offset == skipped
        assert window.start_line == data[:skipped].count(b"\n")


@given(data=FILES, count=st.integers(1, 50), repeated=st.integers(1, 400))
def test_skip_lines_finds_the_offset_after_so_many_lines(data, count, repeated):
    data *= repeated
    end, there = lines.skip_lines(data, count)

    assert there == min(count, data.count(b"\n"))
    assert end == (len(b"".join(split(data)[:count])) if there == count else len(data))


@given(data=FILES, size=st.integers(1, 9), context=st.integers(0, 3))
def test_each_line_is_searched_once_and_with_its_context(data, size, context):
    searched = []
    for chunk in lines.iter_chunks(chunked(data, size), context, 1 << 20):
        number = chunk.first_line + chunk.data.count(b"\n", 0, chunk.begin)
        at = chunk.begin
        while at < chunk.end:
            end = chunk.data.find(b"\n", at) + 1 or len(chunk.data)
            searched.append((number, split(chunk.data[:at])[-context:] if context else [], chunk.data[at:end]))
            assert split(chunk.data[end:])[:context] == split(data)[number + 1 : number + 1 + context]
            number, at = number + 1, end
    parts = split(data)

    assert searched == [(n, parts[max(0, n - context) : n] if context else [], line) for n, line in enumerate(parts)]


def test_a_line_over_the_memory_bound_raises():
    with pytest.raises(lines.LineTooLongError):
        list(lines.iter_chunks(iter([b"a\n"] + [b"x" * 100] * 5), 0, 300))


@given(
    data=FILES, space=st.integers(16, 60), budget=st.sampled_from([AnswerBudget(0), AnswerBudget(0, is_doubled=True)])
)
def test_a_piece_is_a_prefix_that_fits_and_is_not_empty(data, space, budget):
    piece = lines.fit_content(data, space, budget, final=True)

    assert piece.size or not data
    assert piece.line_count == len(split(data[: piece.size]))
    if piece.encoding == "utf-8":
        assert piece.content.encode() == data[: piece.size]
        assert budget.count_text_bytes(piece.content.encode()) <= space


@pytest.mark.parametrize("at", [0, 100, 499, 500, 2_000, 4_990])
@pytest.mark.parametrize("letter", ["x", "é", "\U0001f600"])
def test_an_excerpt_of_a_long_line_shows_the_text_at_the_position(letter, at):
    line = letter * at + "HERE" + letter * (5_000 - at)
    data = f"before\n{line}\nafter".encode()
    begin = 7
    end = begin + len(line.encode())

    shown = lines.excerpt(data, begin, end, begin + len((letter * at).encode()))

    assert "HERE" in shown
    assert shown.strip("…") in line
    assert len(shown.strip("…")) <= lines.MAX_EXCERPT
    assert shown.startswith("…") == (not line.startswith(shown.strip("…")))
    assert shown.endswith("…") == (not line.endswith(shown.strip("…")))


def test_a_line_of_500_characters_is_shown_whole():
    for letter in ("x", "\U0001f600"):
        data = (letter * 500).encode()
        assert lines.excerpt(data, 0, len(data), 0) == letter * 500
        longer = (letter * 501).encode()
        assert lines.excerpt(longer, 0, len(longer), 0) == letter * 500 + "…"
