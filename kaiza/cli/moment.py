"""A point in time as people write it: `2026-11-18`, `2026-11-18T09:00`, `2h` ago; as records write it: UTC, `Z`."""

import argparse
import re
from datetime import UTC, datetime, timedelta

_AGO = re.compile(r"(\d{1,6})([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def since(text: str) -> str:
    """The first moment meant; a bare date is its beginning."""
    return _stamp(_parse(text))


def until(text: str) -> str:
    """The first moment that is no longer meant; a bare date is meant to its end."""
    return _stamp(_parse(text) + timedelta(days=1 if _DAY.fullmatch(text) else 0))


def _parse(text: str) -> datetime:
    ago = _AGO.fullmatch(text)
    try:
        if ago:
            return datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        told = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no time. Write 2026-11-18, 2026-11-18T09:00 (UTC), or 30m, 2h, 7d ago"
        ) from None
    return told if told.tzinfo else told.replace(tzinfo=UTC)


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
