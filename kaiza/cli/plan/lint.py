"""`kaiza plan lint`: everything that is wrong with plans, with its place and what to write instead."""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kaiza.cli.console import arguments, open_workspace, output
from kaiza.cli.plan import review
from kaiza.domain.finding import WARNING, Finding
from kaiza.domain.plans.parser import StoredPlan
from kaiza.domain.plans.plan import APPROVED, DRAFT, is_plan_id
from kaiza.render import plans
from kaiza.store.documents.plan_files import SUFFIX
from kaiza.store.documents.scope_preview import match_files
from kaiza.store.workspace import Workspace

_SCOPE_PATTERN = re.compile(rb"^scope:", re.MULTILINE)


def add(commands: arguments.Subparsers) -> None:
    """The command."""
    parser = commands.add_parser("lint", help="everything that is wrong with plans", allow_abbrev=False)
    arguments.describe(
        parser,
        "Every finding with its place, its rule and what to write instead. A plan with an error counts for nothing;\n"
        "a warning is for you to look at. Lines and columns count from 1, with --json from 0.\n"
        "Exit status: 0 no errors, 1 errors, or there is no such plan.",
        "kaiza plan lint\nkaiza plan lint PLAN-0007-rotate-tokens",
        run=_run_lint,
    )
    arguments.add_argument(parser, nargs="*")
    arguments.add_workspace(parser)
    arguments.add_json(parser)


def _run_lint(args: argparse.Namespace) -> int:
    with open_workspace.open_workspace(args) as ground:
        if args.plan_id:
            stored = [arguments.require_plan(ground, one) for one in dict.fromkeys(args.plan_id)]
            told = [_plan_document(ground, one) for one in stored]
        else:
            told = [*(_plan_document(ground, one) for one in ground.plans.read_all()), *_misnamed_files(ground)]
    valid = all(one["valid"] for one in told)
    if args.json:
        output.print_json({"valid": valid, "plans": told})
    else:
        _print_findings(told)
    return output.SUCCESS if valid else output.FAILURE


def _print_findings(told: list[dict[str, Any]]) -> None:
    for one in told:
        output.print_lines(plans.format_finding(one["path"], finding) for finding in one["findings"])
    broken = sum(not one["valid"] for one in told)
    output.print_error(f"{len(told)} plan{'' if len(told) == 1 else 's'} read, {broken} with errors.")


def _plan_document(ground: Workspace, stored: StoredPlan) -> dict[str, Any]:
    findings = sorted([*stored.parsed.findings, *_broad_scope_findings(ground, stored)])
    return {
        "plan_id": stored.plan_id,
        "path": str(review.plan_path(stored.plan_id)),
        "valid": stored.parsed.plan is not None,
        "findings": [finding.as_json() for finding in findings],
    }


def _broad_scope_findings(ground: Workspace, stored: StoredPlan) -> Iterator[Finding]:
    """How many files a scope touches, where they are many; of plans that may still come to something."""
    plan = stored.parsed.plan
    if plan is None or plan.status not in (DRAFT, APPROVED):
        return
    reached = match_files(plan, ground.files)
    if review.is_broad(reached):
        place = _SCOPE_PATTERN.search(stored.content)
        line = stored.content.count(b"\n", 0, place.start()) if place else 0
        message = review.broad_scope_message(reached)
        yield Finding(line, 0, WARNING, "broad-scope", message, "Name the directories and files that are meant")


def _misnamed_files(ground: Workspace) -> Iterator[dict[str, Any]]:
    """Files that a person may take for plans, and Kaiza does not."""
    fix = "Name it like PLAN-0007-rotate-tokens.md, as its plan_id"
    for path in sorted(Path(ground.root, "plans").glob(f"*{SUFFIX}")):
        if not is_plan_id(path.name.removesuffix(SUFFIX)):
            finding = Finding(0, 0, WARNING, "file-name", "The file's name is not one that plans have", fix)
            yield {"plan_id": None, "path": f"plans/{path.name}", "valid": True, "findings": [finding.as_json()]}
