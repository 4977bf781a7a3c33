"""New plan: a commented draft, which allows nothing until it is filled in and approved."""

import json
from dataclasses import dataclass

from kaiza.clock import current_timestamp
from kaiza.domain import errors
from kaiza.domain.plans import parser
from kaiza.domain.refusal import RefusedError, UndeterminedError
from kaiza.store.workspace import Workspace

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


@dataclass(frozen=True, slots=True)
class Proposal:
    """The file of a new plan."""

    plan_id: str
    content: bytes
    plan_hash: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The draft is written."""

    path: str


def propose(_workspace: Workspace, plan_id: str, title: str, author: str) -> Proposal:
    """A draft with this title. Refused if the title or the name cannot be written into a plan."""
    # JSON strings are YAML strings too, so that no title or name can break out of its field.
    quoted = {name: json.dumps(text, ensure_ascii=False) for name, text in (("title", title), ("author", author))}
    created = current_timestamp()[:-5] + "Z"
    content = _TEMPLATE.format(plan_id=plan_id, created=created, **quoted).encode("utf-8", "replace")
    parsed = parser.parse(content, plan_id)
    if parsed.plan is None:
        raise RefusedError(
            f"The title or the name cannot be written into a plan: {parsed.findings[0].message}. Use plainer text."
        )
    return Proposal(plan_id, content, parsed.plan_hash)


def decide(workspace: Workspace, proposal: Proposal) -> Decision:
    """Write the file; nothing is recorded, because a draft allows nothing. Refused if there is a file of this name."""
    try:
        return Decision(str(workspace.plans.create(proposal.plan_id, proposal.content)))
    except errors.SystemError as error:
        refused = RefusedError if error.error_code == "FILE_ALREADY_EXISTS" else UndeterminedError
        raise refused(error.human_message) from error
