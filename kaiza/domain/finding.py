"""Finding of a check: position, rule, message and fix. Lines and columns count from 0."""

from collections.abc import Iterable
from typing import NamedTuple

ERROR = "error"
WARNING = "warning"


class Finding(NamedTuple):
    """One finding. An error makes the text invalid; a warning is shown to the person who approves."""

    line: int
    column: int
    severity: str
    rule: str
    message: str
    fix: str

    def as_json(self) -> dict[str, object]:
        """JSON form for tool outputs and `--json`."""
        return {
            "severity": self.severity,
            "rule": self.rule,
            "line": self.line,
            "column": self.column,
            "message": self.message,
            "fix": self.fix,
        }


def has_error(findings: Iterable[Finding]) -> bool:
    """Whether any finding is an error."""
    return any(finding.severity == ERROR for finding in findings)
