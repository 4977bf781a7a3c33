"""The format of the log's timestamps."""

from datetime import datetime


def format_timestamp(moment: datetime) -> str:
    """A moment in UTC as records write it, with milliseconds and `Z`."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
