"""The table of commands; a command's module is imported only when it is asked for."""

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import MappingProxyType

COMMANDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "init": ("kaiza.cli.setup.init", "make a workspace ready, and put Kaiza into a client"),
        "demo": ("kaiza.cli.demo.command", "play a whole governed session in a scratch workspace"),
        "doctor": ("kaiza.cli.doctor.command", "check everything a session will need"),
        "serve": ("kaiza.cli.serve", "serve a workspace to an MCP client over standard input and output"),
        "plan": ("kaiza.cli.plan.group", "what agents may change: write, check, approve and take back plans"),
        "audit": ("kaiza.cli.audit.group", "verify, read and keep the record"),
        "session": ("kaiza.cli.session.command", "what agents did, session by session"),
        "undo": ("kaiza.cli.undo.command", "put back what a session, a call or a plan changed"),
        "freeze": ("kaiza.cli.session.freeze", "stop every change at once"),
        "thaw": ("kaiza.cli.session.thaw", "lift a freeze"),
        "status": ("kaiza.cli.status", "how the workspace stands, on one screen"),
        "errors": ("kaiza.cli.reference.errors", "every error code and what it means"),
        "tools": ("kaiza.cli.reference.tools", "every tool that an agent can be offered"),
        "caps": ("kaiza.cli.reference.caps", "every limit on time and size"),
        "schema": ("kaiza.cli.reference.schema", "check and fingerprint the tools' schemas"),
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
        return int(import_module("kaiza.cli.console.run_command").run(argv[0], module, argv[1:]))
    return int(import_module("kaiza.cli.overview").run(argv))
