"""`kaiza plan new`: a draft that explains itself; it allows nothing until a person fills it in and approves it."""

import argparse
import json

from kaiza.cli.console import arguments, open_workspace, output
from kaiza.domain import errors
from kaiza.domain.plans import parser
from kaiza.store import human_decisions

_TEMPLATE = """\
---
kaiza_plan: 1
plan_id: {plan_id}
title: {title}
status: DRAFT                  # a person approves: kaiza plan approve {plan_id}
author: {author}
created: "{created}"
approved_by: null              # filled in when a person approves
approved_at: null
# expires: "2030-01-31T18:00:00Z"   # a plan past it allows nothing
scope:                         # what is not named here cannot be done; * stays in a directory, ** does not
  modify: []                   # files that may change: ["src/auth/*.py", "docs/auth.md"]
  create: []                   # files that may appear: ["tests/auth/test_*.py"]
  delete: []                   # files that may go
  move: []                     # [{{from: "src/old/*.py", to: "src/new/*.py"}}]
  deny: []                     # always wins: ["src/auth/keys/**"]
  unlock: []                   # what steers agents and editors, named one by one: [".github/workflows/test.yml"]
limits: {{files: 10, lines: 500, operations: 50, refusals: 8}}   # over all sessions together
# phases:                      # in order; a phase only narrows, and each change names its own
#   - {{phase_id: PHASE_1, objective: Write it, scope: {{modify: ["src/auth/*.py"]}}}}
#   - {{phase_id: PHASE_2, objective: Test it, scope: {{create: ["tests/auth/*.py"]}}, verify: [["pytest", "-q"]]}}
policy: {{secrets: refuse}}      # also: stubs: refuse, rust: refuse
---
# Why

# What

# How to check
"""


def add(commands: arguments.Subparsers) -> None:
    """The command."""
    parser = commands.add_parser("new", help="a draft that explains itself, to fill in", allow_abbrev=False)
    arguments.describe(
        parser,
        "Write plans/ID.md, a draft that explains itself and allows nothing yet. Never in place of another.\n"
        "Exit status: 0 written, 1 there is one of that name.",
        'kaiza plan new PLAN-0007-rotate-tokens --title "Rotate session tokens"',
        run=_run_new,
    )
    arguments.add_argument(parser)
    parser.add_argument("--title", default="What this plan is for", help="what the plan is for, in one line")
    arguments.add_operator(parser)
    arguments.add_workspace(parser)
    arguments.add_json(parser)


def _run_new(args: argparse.Namespace) -> int:
    told = {"title": args.title, "author": arguments.resolve_name(args.name)}
    quoted = {name: json.dumps(text, ensure_ascii=False) for name, text in told.items()}
    created = human_decisions.current_timestamp()[:-5] + "Z"
    content = _TEMPLATE.format(plan_id=args.plan_id, created=created, **quoted).encode("utf-8", "replace")
    reading = parser.parse(content, args.plan_id)
    if reading.plan is None:
        raise output.CommandError(
            f"These words cannot stand in a plan: {reading.findings[0].message}. Use plainer ones.", output.FAILURE
        )
    with open_workspace.open_workspace(args) as ground:
        try:
            path = ground.plans.create(args.plan_id, content)
        except errors.SystemError as error:
            status = output.FAILURE if error.error_code == "FILE_ALREADY_EXISTS" else output.UNDETERMINED
            raise output.CommandError(error.human_message, status) from error
    if args.json:
        output.print_json({"plan_id": args.plan_id, "path": str(path), "plan_hash": reading.plan_hash})
    else:
        output.print_lines([str(path)])
        output.print_error(f"Fill it in, then: kaiza plan lint {args.plan_id}, kaiza plan approve {args.plan_id}")
    return output.SUCCESS
