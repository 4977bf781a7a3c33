"""HTTP options of `kaiza serve`. `serve_http` applies them; it is not imported on stdio."""

import argparse

MAX_PORT = 65_535
_NEED_HTTP = ("allow_host", "allow_origin", "no_auth", "tls_cert", "tls_key", "behind_tls_proxy")


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--http",
        metavar="HOST:PORT",
        type=_parse_address,
        help="serve HTTP at this address instead of standard input and output; port 0 picks a free one",
    )
    parser.add_argument(
        "--allow-host",
        metavar="NAME",
        action="append",
        default=[],
        help="another host name under which clients reach the server; may be given several times",
    )
    parser.add_argument(
        "--allow-origin",
        metavar="ORIGIN",
        action="append",
        default=[],
        help="let web pages of this origin, such as https://example.org, use the server; may be given several times",
    )
    parser.add_argument("--no-auth", action="store_true", help="require no token; only on a loopback address")
    parser.add_argument("--tls-cert", metavar="FILE", help="certificate chain, PEM")
    parser.add_argument("--tls-key", metavar="FILE", help="private key of the certificate, PEM, not encrypted")
    parser.add_argument(
        "--behind-tls-proxy",
        action="store_true",
        help="allow addresses other than loopback without a certificate, because a proxy speaks TLS",
    )


def require_consistency(parser: argparse.ArgumentParser, parsed: argparse.Namespace) -> None:
    """End with a usage error if an option lacks another one that it needs."""
    named = [f"--{name.replace('_', '-')}" for name in _NEED_HTTP if getattr(parsed, name)]
    if parsed.http is None and named:
        parser.error(f"{named[0]} needs --http HOST:PORT")
    if (parsed.tls_cert is None) != (parsed.tls_key is None):
        parser.error("--tls-cert and --tls-key need each other")


def _parse_address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    digits = port.isascii() and port.isdecimal() and len(port) <= len(str(MAX_PORT))
    if not host.strip("[]") or not digits or int(port) > MAX_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not an address. Write HOST:PORT, such as 127.0.0.1:8765")
    return host.removeprefix("[").removesuffix("]"), int(port)
