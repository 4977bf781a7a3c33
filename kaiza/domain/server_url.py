"""The address of a server, checked before a token is sent to it."""

import ipaddress
import re
from typing import NamedTuple
from urllib.parse import urlsplit

TOKEN_VARIABLE = "KAIZA_TOKEN"  # noqa: S105  the variable's name
"""The environment variable in which a client finds its token."""
_DEFAULT_PATH = "/mcp"
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")
_PATH = re.compile(r"[A-Za-z0-9/._~-]*")


class ServerUrl(NamedTuple):
    """An address without credentials, rebuilt from its checked parts."""

    url: str
    is_loopback: bool
    is_encrypted: bool


def parse_url(text: str) -> ServerUrl:
    """Parse the address; without a path it gets /mcp. ValueError if it is anything else."""
    parts = urlsplit(text)
    host, port = parts.hostname or "", parts.port
    # Only these characters: what is checked here and what the HTTP library connects to must be the same host.
    if parts.scheme not in ("http", "https") or "@" in parts.netloc or not (_NAME.fullmatch(host) or _address(host)):
        raise ValueError(text)
    if not _PATH.fullmatch(parts.path) or parts.query or parts.fragment:
        raise ValueError(text)
    authority = (f"[{host}]" if ":" in host else host) + ("" if port is None else f":{port}")
    path = parts.path if parts.path.strip("/") else _DEFAULT_PATH
    return ServerUrl(f"{parts.scheme}://{authority}{path}", _is_loopback(host), parts.scheme == "https")


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return host == "localhost" if address is None else address.is_loopback


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return None if "%" in host else ipaddress.ip_address(host)
    except ValueError:
        return None
