"""The table of commands; a command's module is imported only when it is asked for."""

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import MappingProxyType

COMMANDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "init": ("kaiza.cli.init", "make a workspace ready, and put Kaiza into a client"),
        "demo": ("kaiza.cli.demo", "play a whole governed session in a scratch workspace"),
        "doctor": ("kaiza.cli.doctor", "check everything a session will need"),
        "serve": ("kaiza.cli.serve", "serve a workspace to an MCP client over standard input and output"),
        "plan": ("kaiza.cli.plan", "what agents may change: write, check, approve and take back plans"),
        "audit": ("kaiza.cli.audit", "verify, read and keep the record"),
        "session": ("kaiza.cli.session", "what agents did, session by session"),
        "undo": ("kaiza.cli.undo", "put back what a session, a call or a plan changed"),
        "freeze": ("kaiza.cli.freeze", "stop every change at once"),
        "thaw": ("kaiza.cli.thaw", "lift a freeze"),
        "status": ("kaiza.cli.status", "how the workspace stands, on one screen"),
        "errors": ("kaiza.cli.errors", "every error code and what it means"),
        "tools": ("kaiza.cli.tools", "every tool that an agent can be offered"),
        "caps": ("kaiza.cli.caps", "every limit on time and size"),
        "schema": ("kaiza.cli.schema", "check and fingerprint the tools' schemas"),
    }
)


def main(argv: Sequence[str]) -> int:
    """Do what the words say; the exit status."""
    if sys.platform == "win32":
        sys.stderr.write("Kaiza does not run on Windows. Run it under Linux, for example in WSL.\n")
        return 3
    if argv and argv[0] in COMMANDS:
        module, _ = COMMANDS[argv[0]]
        if argv[0] == "serve":
            return int(import_module(module).run(argv[1:]))
        return int(import_module("kaiza.cli.guard").run(argv[0], module, argv[1:]))
    return int(import_module("kaiza.cli.overview").run(argv))
