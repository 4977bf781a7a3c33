"""Table of commands. A command's module is imported when it is run, so that `kaiza serve` starts fast."""

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import MappingProxyType

COMMANDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "init": ("kaiza.cli.setup.init", "set up a workspace and configure a client"),
        "adopt": ("kaiza.cli.setup.adopt", "let changes happen in a workspace that came from elsewhere"),
        "demo": ("kaiza.cli.demo.command", "play a whole session in a scratch workspace"),
        "doctor": ("kaiza.cli.doctor", "check everything a session needs"),
        "serve": ("kaiza.cli.serve", "serve workspaces to MCP clients over stdio or HTTP"),
        "call": ("kaiza.cli.call", "call one tool, as a client does"),
        "plan": ("kaiza.cli.plan", "write, review, approve and revoke plans"),
        "trust": ("kaiza.cli.trust", "show and decide what else approves plans: merges, signatures"),
        "token": ("kaiza.cli.token", "make, list and revoke tokens for HTTP"),
        "audit": ("kaiza.cli.audit", "verify, read and export the audit log"),
        "attest": ("kaiza.cli.attest", "state what was changed, for others to verify"),
        "session": ("kaiza.cli.session.command", "list sessions and what they did; unlock a role"),
        "diff": ("kaiza.cli.review.diff", "show what an agent changed, as git shows a diff"),
        "review": ("kaiza.cli.review.command", "show what happened, what changed and what to look at"),
        "undo": ("kaiza.cli.undo.command", "restore files that agents changed"),
        "gc": ("kaiza.cli.gc", "clear earlier contents of files that are no longer needed"),
        "context": ("kaiza.cli.context", "pack documents into caches that agents search"),
        "freeze": ("kaiza.cli.session.freeze", "stop all changes at once"),
        "thaw": ("kaiza.cli.session.thaw", "lift a freeze"),
        "status": ("kaiza.cli.status", "show the state of the workspace"),
        "errors": ("kaiza.cli.reference.errors", "list error codes and what they mean"),
        "tools": ("kaiza.cli.reference.tools", "list the tools offered to agents"),
        "caps": ("kaiza.cli.reference.caps", "list limits on time and size"),
        "envelope": ("kaiza.cli.reference.envelope", "check a JSON-RPC request"),
        "schema": ("kaiza.cli.reference.schema", "check and fingerprint the tools' schemas"),
    }
)


def main(argv: Sequence[str]) -> int:
    """Run a command; the exit status."""
    if sys.platform == "win32":
        sys.stderr.write("Kaiza does not run on Windows. Run it under Linux, for example in WSL.\n")
        return 3
    if argv and argv[0] in COMMANDS:
        module, _ = COMMANDS[argv[0]]
        if argv[0] == "serve":
            return int(import_module(module).run(argv[1:]))
        return int(import_module("kaiza.cli.console.run_command").run(argv[0], module, argv[1:]))
    return int(import_module("kaiza.cli.overview").run(argv))
