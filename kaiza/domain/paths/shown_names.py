r"""Names of files as JSON shows them: text, in which each byte that is not UTF-8 is written `\xNN`.

No two names are shown alike: where there is such a byte, or what looks like one, every backslash is doubled. Records
write names in the same way, see `domain/audit/recorded_names`; they double none where a name only looks so, because
they list what was escaped.
"""

import re

_BYTE = re.compile("[\udc80-\udcff]")
_BYTE_OR_LOOKALIKE = re.compile(r"[\udc80-\udcff]|\\x[89a-f][0-9a-f]")


def escape_name(name: str) -> str:
    """The name or path in a form that can be encoded, and that no other name has."""
    if _BYTE_OR_LOOKALIKE.search(name) is None:
        return name
    return _BYTE.sub(lambda byte: f"\\x{ord(byte[0]) & 0xFF:02x}", name.replace("\\", "\\\\"))
