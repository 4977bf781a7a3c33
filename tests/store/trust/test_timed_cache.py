"""Answers kept for a few seconds."""

import itertools

import pytest

from kaiza.store.trust import timed_cache
from kaiza.store.trust.timed_cache import TimedCache


def test_an_old_answer_is_asked_for_again(monkeypatch):
    monkeypatch.setattr(timed_cache, "SECONDS", 0)
    cache, count = TimedCache(), itertools.count()

    assert [cache.get("a", lambda: next(count)) for _ in range(3)] == [0, 1, 2]


def test_a_question_that_fails_is_not_answered_from_the_cache():
    cache = TimedCache()

    with pytest.raises(ZeroDivisionError):
        cache.get("a", lambda: 1 // 0)
    assert cache.get("a", lambda: 1) == 1
