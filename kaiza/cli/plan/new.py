"""`kaiza plan new`: write a commented draft, which allows nothing until it is filled in and approved."""

import argparse
import json

from kaiza.cli.console import arguments, output
from kaiza.cli.console.open_workspace import open_workspace, parse_plan_id
from kaiza.clock import current_timestamp
from kaiza.domain import errors
from kaiza.domain.plans import parser
from kaiza.queries.workspaces import find_person_name

_TEMPLATE = """\
---
kaiza_plan: 1
plan_id: {plan_id}
title: {title}
status: DRAFT                  # a person approves: kaiza plan approve {plan_id}
author: {author}
created: "{created}"
approved_by: null              # set by the approval
approved_at: null
# expires: "2030-01-31T18:00:00Z"   # after this the plan allows nothing
scope:                         # only what is named here is allowed; * stays in a directory, ** does not
  modify: []                   # files that may change: ["src/auth/*.py", "docs/auth.md"]
  create: []                   # files that may be created: ["tests/auth/test_*.py"]
  delete: []                   # files that may be deleted
  move: []                     # [{{from: "src/old/*.py", to: "src/new/*.py"}}]
  deny: []                     # never, whatever else matches: ["src/auth/keys/**"]
  unlock: []                   # files that configure agents or editors, one by one: [".github/workflows/test.yml"]
limits: {{files: 10, lines: 500, operations: 50, refusals: 8}}   # for all sessions together
# phases:                      # in order; each narrows the scope, and a change names its phase
#   - {{phase_id: PHASE_1, objective: Write it, scope: {{modify: ["src/auth/*.py"]}}}}
#   - {{phase_id: PHASE_2, objective: Test it, scope: {{create: ["tests/auth/*.py"]}}, verify: [["pytest", "-q"]]}}
policy: {{secrets: refuse}}      # also: stubs: refuse, rust: refuse
---
# Why

# What

# How to check
"""


def add(commands: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("new", help="write a commented draft to fill in")
    arguments.describe(
        parser,
        "Write plans/ID.md, a commented draft that allows nothing yet. An existing file is never replaced.\n"
        "Exit status: 0 written, 1 the plan exists already.",
        "kaiza plan new PLAN-0007-rotate-tokens",
        run=_run_new,
    )
    parser.add_argument("plan_id", metavar="ID", type=parse_plan_id, help="the id of the new plan")
    parser.add_argument("--title", default="What this plan is for", help="what the plan is for, in one line")
    arguments.add_operator(parser)
    arguments.add_workspace(parser)
    arguments.add_json(parser)


def _run_new(args: argparse.Namespace) -> int:
    texts = {"title": args.title, "author": find_person_name(args.name)}
    # JSON strings are YAML strings too, so that no title or name can break out of its field.
    quoted = {name: json.dumps(text, ensure_ascii=False) for name, text in texts.items()}
    created = current_timestamp()[:-5] + "Z"
    content = _TEMPLATE.format(plan_id=args.plan_id, created=created, **quoted).encode("utf-8", "replace")
    parsed = parser.parse(content, args.plan_id)
    if parsed.plan is None:
        message = (
            f"The title or the name cannot be written into a plan: {parsed.findings[0].message}. Use plainer text."
        )
        raise output.CommandError(message, output.FAILURE)
    with open_workspace(args) as workspace:
        try:
            path = workspace.plans.create(args.plan_id, content)
        except errors.SystemError as error:
            status = output.FAILURE if error.error_code == "FILE_ALREADY_EXISTS" else output.UNDETERMINED
            raise output.CommandError(error.human_message, status) from error
    if args.json:
        output.print_json({"plan_id": args.plan_id, "path": str(path), "plan_hash": parsed.plan_hash})
    else:
        output.print_lines([str(path)])
        next_commands = (f"  kaiza plan {verb} {args.plan_id}" for verb in ("lint", "approve"))
        output.print_error("\n".join(["Fill it in, then check and approve it:", *next_commands]))
    return output.SUCCESS
