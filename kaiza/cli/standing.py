"""The workspace as a person decides about it: its files, and every fact that the record has by now."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from kaiza.cli import place, say
from kaiza.domain.caps import Caps
from kaiza.store import persons_word
from kaiza.store.ground import Ground
from kaiza.store.settings import Settings


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


def insist_on_a_sound_record(found: Ground) -> None:
    """Nothing is loosened while the record is damaged: nobody could tell what was loosened."""
    verdict = found.damage()
    if verdict is not None:
        raise say.Stop(f"The record is damaged ({verdict}). Run kaiza audit verify first; nothing has changed.", say.NO)
