import os
import threading

from hypothesis import given
from hypothesis import strategies as st

from kaiza.server.stdio.framing import LineReader


def read_lines(pieces, max_bytes):
    outgoing, incoming = os.pipe()

    def write():
        for piece in pieces:
            os.write(incoming, piece)
        os.close(incoming)

    writer = threading.Thread(target=write)
    writer.start()
    lines = [line if isinstance(line, bytes) else len(line) for line in LineReader(outgoing, max_bytes)]
    writer.join()
    os.close(outgoing)
    return lines


def expected(data, max_bytes):
    *ended, rest = data.split(b"\n")
    lines = [*ended, rest] if rest else ended
    return [line if len(line) <= max_bytes else len(line) for line in lines]


@given(st.lists(st.binary(max_size=20).map(lambda piece: piece.replace(b"x", b"\n")), max_size=8), st.integers(0, 12))
def test_lines_are_independent_of_chunks_and_overlong_ones_are_reported_once(pieces, max_bytes):
    assert read_lines(pieces, max_bytes) == expected(b"".join(pieces), max_bytes)
