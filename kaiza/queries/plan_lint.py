"""Errors and warnings in plans, each with its position and what to write instead, as `plan lint --json` prints them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kaiza.domain.finding import WARNING, Finding
from kaiza.domain.plans.parser import StoredPlan
from kaiza.domain.plans.plan import APPROVED, DRAFT, is_plan_id
from kaiza.queries import plan_review
from kaiza.store.documents.plan_files import SUFFIX
from kaiza.store.documents.scope_preview import match_files
from kaiza.store.workspace import Workspace

_SCOPE_PATTERN = re.compile(rb"^scope:", re.MULTILINE)


def lint_plan(workspace: Workspace, stored: StoredPlan) -> dict[str, Any]:
    """One plan: whether it is valid, and what was found in it."""
    findings = sorted([*stored.parsed.findings, *_broad_scope_findings(workspace, stored)])
    return {
        "plan_id": stored.plan_id,
        "path": str(plan_review.plan_path(stored.plan_id)),
        "valid": stored.parsed.plan is not None,
        "findings": [finding.as_json() for finding in findings],
    }


def _broad_scope_findings(workspace: Workspace, stored: StoredPlan) -> Iterator[Finding]:
    """A warning if a scope matches many files; only for plans that are, or may still be, approved."""
    plan = stored.parsed.plan
    if plan is None or plan.status not in (DRAFT, APPROVED):
        return
    preview = match_files(plan, workspace.files)
    message = plan_review.warn_of_broad_scope(preview)
    if message:
        scope = _SCOPE_PATTERN.search(stored.content)
        line = stored.content.count(b"\n", 0, scope.start()) if scope else 0
        yield Finding(line, 0, WARNING, "broad-scope", message, "Name the directories and files that are meant")


def list_misnamed_files(workspace: Workspace) -> Iterator[dict[str, Any]]:
    """A warning for each Markdown file in plans/ that is not read as a plan because of its name."""
    fix = "Name it like PLAN-0007-rotate-tokens.md, after its plan_id"
    for path in sorted(Path(workspace.root, "plans").glob(f"*{SUFFIX}")):
        if not is_plan_id(path.name.removesuffix(SUFFIX)):
            finding = Finding(0, 0, WARNING, "file-name", "The file's name is not a valid plan id", fix)
            yield {"plan_id": None, "path": f"plans/{path.name}", "valid": True, "findings": [finding.as_json()]}
