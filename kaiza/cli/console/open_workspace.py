"""The workspace as a person decides about it: its files, and every fact that the record has by now."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from kaiza.cli.console import arguments, output
from kaiza.domain.caps import Caps
from kaiza.store import human_decisions
from kaiza.store.config.settings import Settings
from kaiza.store.workspace import Workspace

_POLL_SECONDS = 0.1


@contextmanager
def open_workspace(args: argparse.Namespace, told: Settings | None = None) -> Iterator[Workspace]:
    """The workspace that the person means, with what every process recorded so far, under its settings or these."""
    found = Workspace(arguments.resolve_root(args), Caps(), told)
    try:
        if not found.is_recording():
            raise output.CommandError("There is no audit/ here to record in. Run kaiza init first.")
        human_decisions.catch_up(found)
        yield found
    finally:
        found.close(human_decisions.current_timestamp())


def verify_whole_log(found: Workspace) -> None:
    """The whole log is verified when this returns, with progress on a terminal; a Stop where it is damaged."""
    with output.Progress("verifying") as progress:
        while (come := found.verification_progress(_POLL_SECONDS)) is not None:
            progress(come["bytes"], come["of"])
    require_sound_log(found)


def require_sound_log(found: Workspace) -> None:
    """Nothing is loosened while the record is damaged: nobody could tell what was loosened."""
    verdict = found.damage()
    if verdict is not None:
        raise output.CommandError(
            f"The record is damaged ({verdict}). Run kaiza audit verify first; nothing has changed.", output.FAILURE
        )
