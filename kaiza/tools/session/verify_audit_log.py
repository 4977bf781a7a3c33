"""Tool `verify_audit_log`: verify the hash chain of the whole audit log."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.tools.view import Answer, AuditView

NAME = "verify_audit_log"


@dataclass(frozen=True, slots=True)
class Request:
    """A request without arguments."""


def parse(_arguments: Mapping[str, Any], _root: str | None) -> Request:
    """Return the request; the tool has no arguments of its own."""
    return Request()


def run(_request: Request, view: AuditView) -> Answer:
    """Verify every record and return the verdict."""
    verdict = view.log.verify(view.report_progress)
    return Answer({**verdict, "summary": f"The log is {verdict['verdict']}: {verdict['records']} records."})
