"""A glob as an argument: held against paths below a directory, most of which a look at their ends rules out."""

import re
from dataclasses import dataclass

from kaiza.domain import errors
from kaiza.domain.globs import Glob, GlobError

_PLAIN_END = re.compile(r"[^*?\[\]/]*\Z")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A glob that was understood."""

    glob: Glob
    ending: str

    def fits(self, path: str) -> bool:
        """Whether a path is covered."""
        return path.endswith(self.ending) and self.glob.matches_text(path)

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
    ending = _PLAIN_END.search(text)
    return Pattern(glob, ending[0] if ending else "")
