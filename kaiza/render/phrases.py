"""Counts and times in words."""

from kaiza.render.terminal import escape

_TO_MINUTE, _TO_SECOND = 16, 19


def format_count(count: int, noun: str) -> str:
    """A number and its noun: `1 file`, `1,204 files`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def format_time(timestamp: str) -> str:
    """A timestamp of a record for people: `2026-11-18 09:00:07 UTC`; one that is not in UTC stays as it is."""
    if not timestamp.endswith("Z"):
        return escape(timestamp)
    return escape(timestamp[:_TO_SECOND].removesuffix("Z").replace("T", " ") + " UTC")


def format_minute(timestamp: str) -> str:
    """The same to the minute, without the zone: for a column whose title names it."""
    return escape(timestamp[:_TO_MINUTE].replace("T", " "))
