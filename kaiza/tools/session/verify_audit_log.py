"""Tool `verify_audit_log`: verify the hash chain of the whole audit log."""

from kaiza.tools.view import Answer, WorkspaceView


def run(_request: object, view: WorkspaceView) -> Answer:
    """Verify every record and return the verdict."""
    verdict = view.verify_log()
    return Answer({**verdict, "summary": f"The log is {verdict['verdict']}: {verdict['records']} records."})
