"""A glob as an argument: held against paths below a directory, most of which a look at their ends rules out."""

import re
from dataclasses import dataclass

from kaiza.domain import errors
from kaiza.domain.paths.glob import Glob
from kaiza.domain.paths.glob_parser import GlobError

_LITERAL_SUFFIX = re.compile(r"[^*?\[\]/]*\Z")


@dataclass(frozen=True, slots=True)
class GlobFilter:
    """A glob that was understood."""

    glob: Glob
    suffix: str
    is_suffix_only: bool
    """Whether the ending is all that counts: `**/*.py`."""

    def matches(self, path: str) -> bool:
        """Whether a path is covered."""
        return path.endswith(self.suffix) and (self.is_suffix_only or self.glob.matches_text(path))

    def is_past(self, path: str) -> bool:
        """Whether neither this path nor any after it can be covered."""
        return path > self.glob.prefix and not path.startswith(self.glob.prefix)


def parse(text: str, argument: str) -> GlobFilter:
    """Read a glob; INVALID_INPUT_VALUE with what to write instead."""
    try:
        glob = Glob.parse(text)
    except GlobError as error:
        raise errors.SystemError.tool_failure(
            "INVALID_INPUT_VALUE",
            human_message=f"{error.message}. {error.fix}.",
            cause={"argument": argument, "offset": error.offset},
        ) from None
    found = _LITERAL_SUFFIX.search(text)
    ending = found[0] if found else ""
    return GlobFilter(glob, ending, text == f"**/*{ending}")
