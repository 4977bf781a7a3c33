"""Counts and times in words."""

import pytest

from kaiza.render import terminal


@pytest.mark.parametrize(("count", "text"), [(0, "0 files"), (1, "1 file"), (1204, "1,204 files")])
def test_a_count_agrees_with_its_noun(count, text):
    assert terminal.format_count(count, "file") == text


@pytest.mark.parametrize(
    ("timestamp", "text"),
    [
        ("2026-11-18T09:00:07.120Z", "2026-11-18 09:00:07 UTC"),
        ("2026-11-18T09:00:07Z", "2026-11-18 09:00:07 UTC"),
        ("2026-11-18T10:00:07+01:00", "2026-11-18T10:00:07+01:00"),
        ("2026\x1b[2JZ", "2026\\x1b[2J UTC"),
        ("no date", "no date"),
    ],
)
def test_a_time_in_utc_says_so(timestamp, text):
    assert terminal.format_time(timestamp) == text
