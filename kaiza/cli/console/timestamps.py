"""A point in time as people write it: `2026-11-18`, `2026-11-18T09:00`, `2h` ago; as records write it: UTC, `Z`."""

import argparse
import re
from datetime import UTC, datetime, timedelta

_AGO_PATTERN = re.compile(r"(\d{1,6})([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DATE_PATTERN = re.compile(r"\d{4}-\d\d-\d\d")


def parse_since(text: str) -> str:
    """The first moment meant; a bare date is its beginning."""
    return _format_timestamp(_parse_time(text))


def parse_until(text: str) -> str:
    """The first moment that is no longer meant; a bare date is meant to its end."""
    return _format_timestamp(_parse_time(text) + timedelta(days=1 if _DATE_PATTERN.fullmatch(text) else 0))


def _parse_time(text: str) -> datetime:
    ago = _AGO_PATTERN.fullmatch(text)
    try:
        if ago:
            return datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        told = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no time. Write 2026-11-18, 2026-11-18T09:00 (UTC), or 30m, 2h, 7d ago"
        ) from None
    return told if told.tzinfo else told.replace(tzinfo=UTC)


def _format_timestamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
