"""`kaiza serve --http`: bind the address, load the certificate, and decide who may connect."""

import ipaddress
import socket
import ssl
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from kaiza.domain import errors
from kaiza.server.dialects import load_dialects
from kaiza.server.http.admission import LOCAL_NAMES, Admission, Authenticate, parse_host, parse_origin
from kaiza.server.http.application import Pipelines
from kaiza.server.http.serve import Listener, serve_http
from kaiza.server.pipeline import Pipeline
from kaiza.server.run_logger import RunLogger
from kaiza.store.trust.http_tokens import TokenAuthenticator
from kaiza.wire.dialect import ServerDescription

if TYPE_CHECKING:
    from kaiza.app import App
    from kaiza.cli.serve import ServeOptions


def run(
    options: "ServeOptions", roots: Sequence[str], make_app: "Callable[[], App]", opening: ServerDescription
) -> int:
    """Serve until SIGTERM or SIGINT; the exit status."""
    admission = _make_admission(options, None if options.no_auth else TokenAuthenticator(roots).authenticate)
    with _bind(*(options.http or ("", 0))) as bound:
        address = bound.getsockname()
        _require_protection(options, address[0])
        host = f"[{address[0]}]" if bound.family == socket.AF_INET6 else address[0]
        if not ipaddress.ip_address(address[0]).is_unspecified:
            admission = admission._replace(hosts={*admission.hosts, host})
        tls = _load_certificate(options)
        url = f"{'http' if tls is None else 'https'}://{host}:{address[1]}"
        dialects = load_dialects(opening, summary=options.content == "summary", is_http=True)
        pipelines = Pipelines(partial(Pipeline, dialects, mcp_only=True), partial(Pipeline, dialects))
        listener = Listener(bound, tls, partial(_announce, url, no_auth=options.no_auth))
        run_logger = None if options.no_runs else RunLogger(roots, is_deterministic=options.deterministic)
        return serve_http(make_app, pipelines, admission, listener, run_logger)


def _make_admission(options: "ServeOptions", authenticate: Authenticate | None) -> Admission:
    hosts = {parse_host(name) for name in options.allow_host}
    origins = {parse_origin(origin) for origin in options.allow_origin}
    if None in hosts:
        raise _cannot_start("A name of --allow-host is not valid. Write a host name or address, without http://.")
    if None in origins:
        raise _cannot_start("An origin of --allow-origin is not valid. Write it like https://example.org.")
    return Admission(LOCAL_NAMES | set(filter(None, hosts)), set(filter(None, origins)), authenticate)


def _bind(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(address, family=family)
    except OSError as error:
        raise _cannot_start("The address of --http cannot be used. Choose another one.", cause=error) from error


def _require_protection(options: "ServeOptions", address: str) -> None:
    """Require tokens and TLS where other machines can connect."""
    if ipaddress.ip_address(address).is_loopback:
        return
    if options.no_auth:
        raise _cannot_start("--no-auth is allowed only on a loopback address, such as 127.0.0.1. Leave it out.")
    if options.deterministic:
        raise _cannot_start("--deterministic is allowed only on a loopback address, such as 127.0.0.1. Leave it out.")
    if not options.tls_cert and not options.behind_tls_proxy:
        raise _cannot_start(
            "Tokens may not cross a network in clear text. Pass --tls-cert and --tls-key, or --behind-tls-proxy."
        )


def _load_certificate(options: "ServeOptions") -> ssl.SSLContext | None:
    if options.tls_cert is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        # An empty password, or OpenSSL would ask for one on the terminal.
        context.load_cert_chain(options.tls_cert, options.tls_key, password="")
    except OSError as error:
        raise _cannot_start(
            "The certificate or its key cannot be read. Check the files of --tls-cert and --tls-key.", cause=error
        ) from error
    return context


def _cannot_start(sentence: str, cause: OSError | None = None) -> errors.SystemError:
    reason = None if cause is None else {"message": cause.strerror or type(cause).__name__, "code": cause.errno}
    return errors.SystemError.startup_failure("BOOTSTRAP_FAILURE", human_message=sentence, cause=reason)


def _announce(url: str, *, no_auth: bool) -> None:
    print(f"listening on {url}", file=sys.stderr, flush=True)
    if no_auth:
        print("No token is required: every process on this machine can use the server.", file=sys.stderr, flush=True)
