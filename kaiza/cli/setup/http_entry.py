"""`kaiza init --http`: the entry with which a client uses a server that runs already."""

import argparse

from kaiza.cli.call.server_url import parse_url
from kaiza.cli.console import output
from kaiza.render.terminal import escape
from kaiza.store.clients import CLIENTS
from kaiza.store.clients.client import HttpServer


def make_http_server(args: argparse.Namespace) -> HttpServer | None:
    """The entry for `--http`; None without it."""
    if args.http is None:
        return None
    if args.client is None or args.remove:
        args.parser.error("--http needs --client, and is not for --remove")
    url, client = parse_url(args.http), CLIENTS[args.client]
    if not url.is_loopback and not url.is_encrypted:
        raise output.CommandError(
            "The token would be sent unencrypted. Nothing was written. Use https://, or run the client where the "
            "server has a loopback address.",
            output.USAGE_ERROR,
        )
    if client.http_members is None:
        raise output.CommandError(
            f"{client.title}'s configuration file cannot take the token from an environment variable, and a token does "
            f"not belong in a file. Nothing was written. Add the server by hand, with {escape(url.url)} and the "
            "header Authorization: Bearer TOKEN.",
            output.FAILURE,
        )
    return HttpServer(client.http_members(url.url))
