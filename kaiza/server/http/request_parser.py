"""HTTP/1.1 parser that refuses requests whose end is ambiguous, and bodies in tiny pieces."""

from typing import Any, Final

import h11

MIN_PIECE_BYTES: Final = 64
"""Average size of a body's pieces, after the first FREE_PIECES."""

FREE_PIECES: Final = 1024


class RequestParser(h11.Connection):
    """Server side of one connection."""

    def __init__(self, max_incomplete_event_size: int) -> None:
        super().__init__(h11.SERVER, max_incomplete_event_size)
        self._piece_count = 0
        self._body_bytes = 0

    def next_event(self) -> Any:
        """The next part of a request. RemoteProtocolError if the request is refused."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            _check_framing(event)
            self._piece_count = self._body_bytes = 0
        elif isinstance(event, h11.Data):
            self._count_piece(len(event.data))
        return event

    def _count_piece(self, size: int) -> None:
        # All received chunks are parsed at once: if each had one byte, this would block the server for seconds.
        self._piece_count += 1
        self._body_bytes += size
        if self._piece_count > FREE_PIECES + self._body_bytes // MIN_PIECE_BYTES:
            raise h11.RemoteProtocolError("the body comes in tiny pieces")


def _check_framing(request: h11.Request) -> None:
    """Refuse a body whose end a proxy in front of this server may see elsewhere (request smuggling)."""
    names = {name for name, _ in request.headers}
    if b"transfer-encoding" in names and (b"content-length" in names or request.http_version < b"1.1"):
        raise h11.RemoteProtocolError("the end of the body is ambiguous")
