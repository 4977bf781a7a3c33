"""Refuses requests by their headers, which are read before the body, and calls if too many are in flight."""

import re
from collections.abc import Callable, Collection
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException

from kaiza.domain.call import Principal
from kaiza.server.call_queue import find_lane
from kaiza.server.call_runner import ServedCall
from kaiza.wire import framing

Authenticate = Callable[[str], Principal | None]

LOCAL_NAMES: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
MAX_BODY: Final = framing.MAX_LINE
"""Longest body in bytes: as long as the longest line on stdio."""

MAX_READ: Final = 4 * MAX_BODY
"""Bytes that are read of a longer body, to find the id under which it is refused."""

MAX_CALLS: Final = 64
"""Calls of one lane in flight, running or waiting. Further ones are refused."""

MAX_CALLS_OF_TOKEN: Final = 48
"""Calls of one lane in flight of one token, so that it leaves room for others."""

MIN_CALLS_OF_TOKEN: Final = 4
"""Calls of one lane that a token may have in flight however many others have."""

MAX_CALL_BYTES: Final = 32 << 20
"""Size of the requests of one token's calls in flight; the last of them may go beyond it."""

RETRY_SECONDS: Final = 1

_HOST: Final = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?", re.ASCII)
_BEARER: Final = re.compile(r"bearer +([!-~]+)", re.ASCII | re.IGNORECASE)


class Admission(NamedTuple):
    """Who may send requests: names of this server, origins of pages, and the principals of tokens."""

    hosts: Collection[str] = LOCAL_NAMES
    """Names without port, in lower case."""
    origins: Collection[str] = ()
    """Origins, in lower case, besides those of `hosts`."""
    authenticate: Authenticate | None = None
    """Finds the principal of a token. None: no token is required."""

    def check_source(self, headers: Headers) -> None:
        """Refuse a request to a name that is not this server's, or from a page of an origin that is not allowed."""
        hosts = headers.getlist("host")
        # A page that makes its own name resolve to this address (DNS rebinding) still sends that name.
        if len(hosts) != 1 or parse_host(hosts[0]) not in self.hosts:
            raise HTTPException(
                421,
                "This server does not answer to that host name. Start it with --allow-host NAME to allow it.",
            )
        origins = headers.getlist("origin")
        origin = origins[0].lower() if origins else ""
        scheme, separator, host = origin.partition("://")
        is_own = separator and scheme in ("http", "https") and parse_host(host) in self.hosts
        # Only browsers send it, and once.
        if len(origins) > 1 or (origins and not is_own and origin not in self.origins):
            raise HTTPException(
                403, "Pages of that origin may not use this server. Start it with --allow-origin ORIGIN to allow them."
            )

    def find_principal(self, headers: Headers) -> Principal | None:
        """Principal of the request's token; None if no token is required."""
        if self.authenticate is None:
            return None
        values = headers.getlist("authorization")
        bearer = _BEARER.fullmatch(values[0]) if len(values) == 1 else None
        principal = self.authenticate(bearer[1]) if bearer else None
        if principal is None:
            # Without `resource_metadata`, which would make clients look for an OAuth server.
            raise HTTPException(
                401,
                "Send a valid token in one Authorization: Bearer header. A person makes one with kaiza token new.",
                {"WWW-Authenticate": "Bearer"},
            )
        return principal


def check_content(headers: Headers) -> None:
    """Refuse a body that is declared as anything but plain JSON, or as longer than MAX_READ.

    One that is not sent before it is asked for is refused if it is longer than MAX_BODY.
    """
    types = headers.getlist("content-type")
    if len(types) != 1 or types[0].partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "Send the request as Content-Type: application/json.")
    # A proxy or firewall in front of this server may decode such a body, and so judge another one.
    if any(coding.lower() != "identity" for coding in headers.getlist("content-encoding")):
        raise HTTPException(415, "Send the body as it is, without Content-Encoding.")
    # The parser of the connection has checked that it is a number of at most 20 digits.
    if int(headers.get("content-length", "0")) > (MAX_BODY if is_held_back(headers) else MAX_READ):
        raise too_large()


def is_held_back(headers: Headers) -> bool:
    """Whether the client sends no body before it is asked to."""
    return headers.get("expect", "").lower() == "100-continue"


def too_large() -> HTTPException:
    """The refusal of a body that is too long."""
    return HTTPException(413, f"Send at most {MAX_BODY} bytes in one request.")


def busy(reason: str) -> HTTPException:
    """The refusal of a request for which there is no room now."""
    return HTTPException(503, f"{reason} Send this one again later.", {"Retry-After": str(RETRY_SECONDS)})


def require_room(in_flight: Collection[ServedCall], tool_name: str, principal: Principal | None) -> None:
    """Refuse a call if there are too many calls in flight of its lane, or of its principal."""
    lane = find_lane(tool_name)
    principals = [call.principal for call in in_flight if call.lane is lane]
    own_count = principals.count(principal)
    has_room = len(principals) < MAX_CALLS and (principal is None or own_count < MAX_CALLS_OF_TOKEN)
    is_small = sum(call.size for call in in_flight if call.principal == principal) < MAX_CALL_BYTES
    if not is_small or not (has_room or (principal is not None and own_count < MIN_CALLS_OF_TOKEN)):
        raise busy("Too many calls are in flight.")


def parse_host(value: str) -> str | None:
    """Name in a Host header or after `://`, in lower case and without port; None if it is malformed."""
    parsed = _HOST.fullmatch(value.lower())
    return parsed and parsed[1]


def parse_origin(value: str) -> str | None:
    """An origin in the form in which browsers send it; None if it is malformed."""
    parts = urlsplit(value)
    has_more = parts.path or parts.query or parts.fragment or not parts.scheme
    return None if has_more or parse_host(parts.netloc) is None else value.lower()
