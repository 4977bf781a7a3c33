"""Bytes as arguments carry them: text as UTF-8, anything else as base64."""

import base64
import binascii

from kaiza.domain import errors


def decode(argument: str, text: str, encoding: str | None = None) -> bytes:
    """Give the bytes that an argument means; INVALID_INPUT_FORMAT where it means none."""
    try:
        return base64.b64decode(text, validate=True) if encoding == "base64" else text.encode()
    except (binascii.Error, UnicodeEncodeError, ValueError):
        wanted = "base64 with padding" if encoding == "base64" else "text without half characters"
        raise errors.SystemError.tool_failure(
            "INVALID_INPUT_FORMAT",
            human_message=f"{argument} is malformed. Send {wanted}.",
            cause={"faults": [{"argument": argument, "code": "INVALID_INPUT_FORMAT"}], "count": 1},
        ) from None
