"""A glob as an argument: held against paths below a directory, most of which a look at their ends rules out."""

import re
from dataclasses import dataclass

from kaiza.domain import errors
from kaiza.domain.glob_parser import GlobError
from kaiza.domain.globs import Glob

_PLAIN_END = re.compile(r"[^*?\[\]/]*\Z")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A glob that was understood."""

    glob: Glob
    ending: str
    only_ending: bool
    """Whether the ending is all that counts: `**/*.py`."""

    def fits(self, path: str) -> bool:
        """Whether a path is covered."""
        return path.endswith(self.ending) and (self.only_ending or self.glob.matches_text(path))

    def is_past(self, path: str) -> bool:
        """Whether neither this path nor any after it can be covered."""
        return path > self.glob.prefix and not path.startswith(self.glob.prefix)


def parse(text: str, argument: str) -> Pattern:
    """Read a glob; INVALID_INPUT_VALUE with what to write instead."""
    try:
        glob = Glob.parse(text)
    except GlobError as error:
        raise errors.SystemError.tool_failure(
            "INVALID_INPUT_VALUE",
            human_message=f"{error.message}. {error.fix}.",
            cause={"argument": argument, "offset": error.offset},
        ) from None
    found = _PLAIN_END.search(text)
    ending = found[0] if found else ""
    return Pattern(glob, ending, text == f"**/*{ending}")
