"""The address of a server, checked before a token is sent to it. Opens no connection."""

import ipaddress
import os
import re
from typing import NamedTuple
from urllib.parse import urlsplit

from kaiza.cli.console.output import USAGE_ERROR, CommandError
from kaiza.render.terminal import escape
from kaiza.store.clients.registry import TOKEN_VARIABLE

_DEFAULT_PATH = "/mcp"
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")
_PATH = re.compile(r"[A-Za-z0-9/._~-]*")
_TOKEN = re.compile(r"[!-~]+")
_EXAMPLE = "Write it as the server printed it, such as http://127.0.0.1:8765"


class ServerUrl(NamedTuple):
    """An address without credentials, rebuilt from its checked parts."""

    url: str
    is_loopback: bool
    is_encrypted: bool


def parse_url(text: str) -> ServerUrl:
    """Parse the address; without a path it gets /mcp. A CommandError if it is anything else."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise _invalid(text) from None
    # Only these characters: what is checked here and what the HTTP library connects to must be the same host.
    if parts.scheme not in ("http", "https") or "@" in parts.netloc or not _is_host(host):
        raise _invalid(text)
    if not _PATH.fullmatch(parts.path) or parts.query or parts.fragment:
        raise _invalid(text)
    authority = (f"[{host}]" if ":" in host else host) + ("" if port is None else f":{port}")
    path = parts.path if parts.path.strip("/") else _DEFAULT_PATH
    return ServerUrl(f"{parts.scheme}://{authority}{path}", _is_loopback(host), parts.scheme == "https")


def read_token(server: ServerUrl) -> str | None:
    """The token for this server from the environment; a CommandError if it would be sent unencrypted."""
    token = os.environ.get(TOKEN_VARIABLE, "")
    if not token:
        return None
    if not _TOKEN.fullmatch(token):
        raise CommandError(
            f"{TOKEN_VARIABLE} does not hold a token. Set it to what `kaiza token new` printed.", USAGE_ERROR
        )
    if not server.is_loopback and not server.is_encrypted:
        message = f"The token would be sent unencrypted. Use https://, or unset {TOKEN_VARIABLE}."
        raise CommandError(message, USAGE_ERROR)
    return token


def _is_host(host: str) -> bool:
    return bool(_NAME.fullmatch(host)) or _address(host) is not None


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return host == "localhost" if address is None else address.is_loopback


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return None if "%" in host else ipaddress.ip_address(host)
    except ValueError:
        return None


def _invalid(text: str) -> CommandError:
    return CommandError(f"{escape(text)} is not the address of a server. {_EXAMPLE}.", USAGE_ERROR)
