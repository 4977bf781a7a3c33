"""`kaiza plan lint`: errors and warnings in plans, each with its position and what to write instead."""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kaiza.cli.console import arguments, output
from kaiza.cli.console.open_workspace import add_plan_id, open_workspace, require_plan
from kaiza.domain.finding import WARNING, Finding
from kaiza.domain.plans.parser import StoredPlan
from kaiza.domain.plans.plan import APPROVED, DRAFT, is_plan_id
from kaiza.queries import plan_review
from kaiza.render import plans
from kaiza.render.terminal import format_count, wrap
from kaiza.store.documents.plan_files import SUFFIX
from kaiza.store.documents.scope_preview import match_files
from kaiza.store.workspace import Workspace

_SCOPE_PATTERN = re.compile(rb"^scope:", re.MULTILINE)


def add(commands: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("lint", help="check plans for errors and warnings")
    arguments.describe(
        parser,
        "Check plans. Each finding has its position, its rule and what to write instead. A plan with an error allows "
        "no changes; warnings are for you to judge. Lines and columns count from 1, with --json from 0.\n"
        "Exit status: 0 no errors, 1 errors or no such plan.",
        "kaiza plan lint\nkaiza plan lint PLAN-0007-rotate-tokens",
        run=_run_lint,
    )
    add_plan_id(parser, nargs="*")
    arguments.add_workspace(parser)
    arguments.add_json(parser)


def _run_lint(args: argparse.Namespace) -> int:
    with open_workspace(args) as workspace:
        if args.plan_id:
            stored = {plan.plan_id: plan for plan in (require_plan(workspace, prefix) for prefix in args.plan_id)}
            linted = [_lint_plan(workspace, plan) for plan in stored.values()]
        else:
            linted = [_lint_plan(workspace, plan) for plan in workspace.plans.read_all()]
            linted += _misnamed_files(workspace)
    is_valid = all(plan["valid"] for plan in linted)
    if args.json:
        output.print_json({"valid": is_valid, "plans": linted})
    else:
        _print_findings(linted)
    return output.SUCCESS if is_valid else output.FAILURE


def _print_findings(linted: list[dict[str, Any]]) -> None:
    for plan in linted:
        for finding in plan["findings"]:
            output.print_lines(wrap([plans.format_finding(plan["path"], finding)], output.terminal_width()))
    invalid = sum(not plan["valid"] for plan in linted)
    output.print_error(f"{format_count(len(linted), 'plan')} checked, {invalid} with errors.")


def _lint_plan(workspace: Workspace, stored: StoredPlan) -> dict[str, Any]:
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
    if plan_review.is_broad(preview):
        scope = _SCOPE_PATTERN.search(stored.content)
        line = stored.content.count(b"\n", 0, scope.start()) if scope else 0
        message = plan_review.broad_scope_message(preview)
        yield Finding(line, 0, WARNING, "broad-scope", message, "Name the directories and files that are meant")


def _misnamed_files(workspace: Workspace) -> Iterator[dict[str, Any]]:
    """A warning for each Markdown file in plans/ that is not read as a plan because of its name."""
    fix = "Name it like PLAN-0007-rotate-tokens.md, after its plan_id"
    for path in sorted(Path(workspace.root, "plans").glob(f"*{SUFFIX}")):
        if not is_plan_id(path.name.removesuffix(SUFFIX)):
            finding = Finding(0, 0, WARNING, "file-name", "The file's name is not a valid plan id", fix)
            yield {"plan_id": None, "path": f"plans/{path.name}", "valid": True, "findings": [finding.as_json()]}
