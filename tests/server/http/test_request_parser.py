"""Bodies in tiny pieces: how many are read."""

import h11
import pytest

from kaiza.server.http.connection import FREE_PIECES, RequestParser

HEAD = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"


def receive(parser, count):
    """Parse a request with a body of so many single bytes, and answer it."""
    parser.receive_data(HEAD + b"1\r\nx\r\n" * count + b"0\r\n\r\n")
    while not isinstance(parser.next_event(), h11.EndOfMessage):
        pass
    parser.send(h11.Response(status_code=202, headers=[("Content-Length", "0")]))
    parser.send(h11.EndOfMessage())
    parser.start_next_cycle()


def test_each_request_of_a_connection_may_have_as_many_pieces_as_the_first():
    parser = RequestParser()
    for _ in range(3):
        receive(parser, FREE_PIECES)

    assert parser.their_state is h11.IDLE


def test_a_body_of_more_single_bytes_is_refused():
    with pytest.raises(h11.RemoteProtocolError):
        receive(RequestParser(), FREE_PIECES + 100)
