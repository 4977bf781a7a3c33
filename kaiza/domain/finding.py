"""One thing wrong with a text: where, by which rule, and what to write instead. Lines and columns count from 0."""

from collections.abc import Iterable
from typing import NamedTuple

ERROR = "error"
WARNING = "warning"


class Finding(NamedTuple):
    """An error means that the text counts for nothing; a warning is for the person who decides."""

    line: int
    column: int
    severity: str
    rule: str
    message: str
    fix: str

    def as_json(self) -> dict[str, object]:
        """The finding as tools and `--json` tell it."""
        return {
            "severity": self.severity,
            "rule": self.rule,
            "line": self.line,
            "column": self.column,
            "message": self.message,
            "fix": self.fix,
        }


def has_error(findings: Iterable[Finding]) -> bool:
    """Whether any of them takes the text's effect away."""
    return any(finding.severity == ERROR for finding in findings)
