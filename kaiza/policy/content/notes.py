"""TODO and FIXME: notes that something is unfinished."""

import re

from kaiza.policy.content.lines import compile_patterns

NOTE_MARK = re.compile(r"\b(TODO|FIXME)\b")
NOTE_SEARCH = compile_patterns(rb"TODO|FIXME")
"""Finds at least every line with a mark."""


def find_note(line: str, opener: re.Pattern[str]) -> int | None:
    """Where a comment begins that holds a mark: the line's first, since all that follows counts as comment."""
    comment = opener.search(line)
    return comment.start() if comment and NOTE_MARK.search(line, comment.end()) else None
