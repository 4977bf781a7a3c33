import os
import threading

from hypothesis import given
from hypothesis import strategies as st

from kaiza.server.stdio.framing import LineReader


def through_a_pipe(pieces, longest):
    outgoing, incoming = os.pipe()

    def write():
        for piece in pieces:
            os.write(incoming, piece)
        os.close(incoming)

    writer = threading.Thread(target=write)
    writer.start()
    lines = list(LineReader(outgoing, longest))
    writer.join()
    os.close(outgoing)
    return lines


def expected(data, longest):
    *whole, rest = data.split(b"\n")
    lines = [*whole, rest] if rest else whole
    return [line if len(line) <= longest else None for line in lines]


@given(st.lists(st.binary(max_size=20).map(lambda piece: piece.replace(b"x", b"\n")), max_size=8), st.integers(0, 12))
def test_lines_come_out_whole_however_they_came_in_and_long_ones_are_told_of_once(pieces, longest):
    assert through_a_pipe(pieces, longest) == expected(b"".join(pieces), longest)


def test_a_line_far_beyond_the_bound_is_told_of_once():
    pieces = [b"a\n", *[b"y" * 60_000] * 40, b"\nb\n"]

    assert through_a_pipe(pieces, 100_000) == [b"a", None, b"b"]
