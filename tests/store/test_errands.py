"""Errands are done one after the other, elsewhere; what they come to is heard where they are waited for."""

import threading
import time

import pytest

from kaiza.store.errands import Errands


@pytest.fixture
def errands():
    made = Errands("errands")
    yield made
    made.close()


def test_they_are_done_elsewhere_in_order(errands):
    done = []
    sent = [
        errands.send(lambda number=number: done.append((number, threading.current_thread().name)))
        for number in range(9)
    ]
    for errand in sent:
        errand.wait()

    assert done == [(number, "errands") for number in range(9)]


def test_what_one_raised_is_raised_where_it_is_waited_for_and_the_next_is_done(errands):
    def fails():
        raise KeyError("no")

    bad, good = errands.send(fails), errands.send(lambda: None)

    with pytest.raises(KeyError, match="no"):
        bad.wait()
    good.wait()


def test_whoever_waits_waits_until_it_is_done(errands):
    begun = time.monotonic()
    errands.send(lambda: time.sleep(0.1)).wait()

    assert time.monotonic() - begun >= 0.1


def test_closing_does_what_was_sent_and_leaves_no_thread():
    errands, done = Errands("leaving"), []
    for number in range(3):
        errands.send(lambda number=number: done.append(number))
    errands.close()

    assert done == [0, 1, 2]
    assert "leaving" not in {thread.name for thread in threading.enumerate()}
    errands.close()


def test_one_that_nobody_needed_costs_no_thread():
    Errands("unused").close()

    assert "unused" not in {thread.name for thread in threading.enumerate()}
