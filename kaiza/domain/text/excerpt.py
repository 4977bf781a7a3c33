"""What is shown of a line: all of a short one, of a long one the part that matters."""

from kaiza.domain.text.lines import LONE_BYTE, UTF8_CONTINUATION

MAX_EXCERPT = 500
"""So many characters of a line are shown; what is left out shows as an ellipsis."""

_LEAD_CHARACTERS = 120


def count_characters(data: bytes) -> int:
    """How many code points these bytes are; a byte that is no part of one counts for itself."""
    return len(data) if data.isascii() else len(data.decode(errors="surrogateescape"))


def excerpt(data: bytes, begin: int, end: int, at: int) -> str:
    """The line from `begin` to `end` as it is shown: of a long one, what is around `at`, and ellipses."""
    if end - begin > 4 * MAX_EXCERPT or count_characters(data[begin:end]) > MAX_EXCERPT:
        first = max(begin, at - 4 * _LEAD_CHARACTERS)
        before = _decode_whole(data[first:at])[-_LEAD_CHARACTERS:]
        after = data[at : min(end, at + 4 * MAX_EXCERPT + 4)].decode(errors="surrogateescape")
        after = after[: MAX_EXCERPT - len(before)]
        size = len((before + after).encode(errors="surrogateescape"))
        from_begin = at - len(before.encode(errors="surrogateescape"))
        text = ("…" if from_begin > begin else "") + before + after + ("…" if from_begin + size < end else "")
    else:
        text = data[begin:end].decode(errors="surrogateescape")
    return LONE_BYTE.sub("\ufffd", text)


def _decode_whole(data: bytes) -> str:
    """The text, without what is left of a character that began before it."""
    begin = 0
    while begin < min(len(data), 3) and data[begin] in UTF8_CONTINUATION:
        begin += 1
    return data[begin:].decode(errors="surrogateescape")
