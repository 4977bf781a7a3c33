"""The workspace as a person decides about it: its files, and every fact that the record has by now."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from kaiza.cli import place, say
from kaiza.domain.caps import Caps
from kaiza.store import persons_word
from kaiza.store.ground import Ground
from kaiza.store.settings import Settings

_LOOK_SECONDS = 0.1


@contextmanager
def ground(args: argparse.Namespace, told: Settings | None = None) -> Iterator[Ground]:
    """The workspace that the person means, with what every process recorded so far, under its settings or these."""
    found = Ground(place.workspace(args), Caps(), told)
    try:
        if not found.recording():
            raise say.Stop("There is no audit/ here to record in. Run kaiza init first.")
        persons_word.follow(found)
        yield found
    finally:
        found.close(persons_word.now())


def verify_whole_record(found: Ground) -> None:
    """The whole log is verified when this returns, with progress on a terminal; a Stop where it is damaged."""
    with say.Progress("verifying") as progress:
        while (come := found.unverified(_LOOK_SECONDS)) is not None:
            progress(come["bytes"], come["of"])
    insist_on_a_sound_record(found)


def insist_on_a_sound_record(found: Ground) -> None:
    """Nothing is loosened while the record is damaged: nobody could tell what was loosened."""
    verdict = found.damage()
    if verdict is not None:
        raise say.Stop(f"The record is damaged ({verdict}). Run kaiza audit verify first; nothing has changed.", say.NO)
