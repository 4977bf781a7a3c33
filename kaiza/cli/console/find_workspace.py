"""Which workspace a person means: the one they name, else the nearest directory upwards that is one."""

import argparse
from pathlib import Path

from kaiza.cli.console.output import CommandError
from kaiza.store.config import roots


def resolve_root(args: argparse.Namespace) -> str:
    """The workspace's real path."""
    return _named_root(args.workspace) if args.workspace is not None else _nearest_root()


def _named_root(directory: str) -> str:
    root = Path(directory).resolve()
    if not root.is_dir():
        raise CommandError(f"There is no directory {directory}. Name the workspace with --workspace DIR.")
    return str(root)


def _nearest_root() -> str:
    found = roots.find_nearest(".")
    if found is None:
        raise CommandError(
            "This is no Kaiza workspace: no directory from here upwards has plans/ and audit/. "
            "Go to one, name one with --workspace DIR, or make one ready with: kaiza init"
        )
    return found
