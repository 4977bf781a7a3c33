"""The workspace as a person decides about it: its files, and every fact that the record has by now."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from kaiza.cli.console import find_workspace as place
from kaiza.cli.console import output as say
from kaiza.domain.caps import Caps
from kaiza.store import human_decisions as persons_word
from kaiza.store.config.settings import Settings
from kaiza.store.ground import Workspace

_POLL_SECONDS = 0.1


@contextmanager
def open_workspace(args: argparse.Namespace, told: Settings | None = None) -> Iterator[Workspace]:
    """The workspace that the person means, with what every process recorded so far, under its settings or these."""
    found = Workspace(place.resolve_root(args), Caps(), told)
    try:
        if not found.is_recording():
            raise say.CommandError("There is no audit/ here to record in. Run kaiza init first.")
        persons_word.catch_up(found)
        yield found
    finally:
        found.close(persons_word.current_timestamp())


def verify_whole_log(found: Workspace) -> None:
    """The whole log is verified when this returns, with progress on a terminal; a Stop where it is damaged."""
    with say.Progress("verifying") as progress:
        while (come := found.verification_progress(_POLL_SECONDS)) is not None:
            progress(come["bytes"], come["of"])
    require_sound_log(found)


def require_sound_log(found: Workspace) -> None:
    """Nothing is loosened while the record is damaged: nobody could tell what was loosened."""
    verdict = found.damage()
    if verdict is not None:
        raise say.CommandError(
            f"The record is damaged ({verdict}). Run kaiza audit verify first; nothing has changed.", say.FAILURE
        )
