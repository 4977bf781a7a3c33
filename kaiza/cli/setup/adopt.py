"""`kaiza adopt`: let changes happen in a workspace from elsewhere, once a person has seen what came with it."""

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from kaiza.cli.console import arguments, output
from kaiza.cli.console.confirm import confirm
from kaiza.cli.console.open_workspace import open_workspace
from kaiza.decisions import adopt
from kaiza.domain.refusal import RefusedError
from kaiza.queries.audit_log import is_damage
from kaiza.queries.workspace_status import describe_arrival, list_unadopted
from kaiza.queries.workspaces import Workspace, find_person_name
from kaiza.render import log_verdict
from kaiza.render.settings import render_value
from kaiza.render.terminal import escape, format_count

_MAX_NAMED = 10


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    arguments.describe(
        parser,
        "Let changes happen in a workspace that came from elsewhere: a clone with a log, an unpacked backup, "
        "a directory that was moved. Adopts what its kaiza.toml loosens, too, there or in your own workspace. Shows "
        "what it would adopt and asks you to confirm at the terminal. Approves no plan: of the records so far only "
        "what forbids counts, such as a freeze.\n"
        "Exit status: 0 adopted or nothing to adopt, 1 not adopted, 3 no terminal to ask at.",
        "kaiza adopt --show\nkaiza adopt --as Ann",
        run=_run_adopt,
    )
    parser.add_argument("--show", action="store_true", help="only show; exit status 1 if there is something to adopt")
    arguments.add_operator(parser)
    arguments.add_workspace(parser)
    arguments.add_json(parser)


def _run_adopt(args: argparse.Namespace) -> int:
    with open_workspace(args) as workspace:
        is_foreign = workspace.binding.is_foreign
        if not is_foreign and not list_unadopted(workspace):
            return _print_arrival(args, workspace, "Nothing to adopt: this workspace belongs to this machine.")
        if args.show:
            return _print_arrival(args, workspace, "Adopt it with: kaiza adopt")
        adopted = confirm_adoption(workspace, find_person_name(args.name))
        if args.json:
            output.print_json({"adopted": True, "records": adopted.adopted_seq})
        elif is_foreign:
            state = workspace.audit_state
            restrictions = {"frozen": state.frozen, "locked": sorted(state.locks), "withdrawn": state.withdrawn}
            advice = "Plans need your approval before they allow changes: `kaiza plan list` shows them."
            output.print_sentences([f"Adopted. {advice}", *_restriction_lines(restrictions)])
        else:
            output.print_sentences(["Adopted. A running server applies settings when it is started again."])
    return output.SUCCESS


def confirm_adoption(workspace: Workspace, name: str) -> adopt.Decision:
    """Show what came, ask, and adopt."""
    what = "this workspace" if workspace.binding.is_foreign else "these settings"
    proposal = adopt.propose(workspace)
    facts = "\n".join([*_arrival_lines(proposal.arrival), "", f"{escape(name)} adopts {what} on this machine."])
    if not confirm(facts, f"Adopt {what}?", word="adopt" if workspace.settings.confirm_by_word else None):
        raise RefusedError("Cancelled. Nothing was adopted.")
    return adopt.decide(workspace, proposal, name)


def _print_arrival(args: argparse.Namespace, workspace: Workspace, last: str) -> int:
    """Print what an adoption would cover; the exit status of `--show`."""
    arrival = describe_arrival(workspace)
    has_news = workspace.binding.is_foreign or bool(arrival["settings"])
    if args.json:
        output.print_json(arrival)
    else:
        output.print_sentences([*(_arrival_lines(arrival) if has_news else ()), last])
    return output.FAILURE if has_news else output.SUCCESS


def _arrival_lines(arrival: Mapping[str, Any]) -> Iterator[str]:
    if arrival["standing"] == "foreign":
        yield from _foreign_lines(arrival)
    if arrival["settings"]:
        yield "Settings in kaiza.toml that loosen what is in force:"
        for setting in arrival["settings"]:
            value, now = (render_value(setting[name]) for name in ("value", "in_force"))
            yield f"  {setting['key']} = {value}, in force: {now}"


def _foreign_lines(arrival: Mapping[str, Any]) -> Iterator[str]:
    yield f"This workspace came from elsewhere: {escape(arrival['workspace'])}"
    verdict = log_verdict.describe(arrival["log"])
    yield from verdict if is_damage(arrival["log"]["verdict"]) else verdict[:1]
    for root in arrival["roots"]:
        yield f"Its records were written in: {escape(root)}"
    plans = ", ".join(f"{count} {escape(status)}" for status, count in arrival["plans"].items())
    yield f"Plans: {plans or 'none'}. None is approved by adopting."
    named = arrival["approved"][:_MAX_NAMED]
    if named:
        more = len(arrival["approved"]) - len(named)
        yield f"Say APPROVED: {', '.join(map(escape, named))}" + (f" and {more} more" if more else "")
    if arrival["journals"]:
        yield f"{format_count(arrival['journals'], 'journal')} of unfinished changes. Only those of this machine count."
    yield from _restriction_lines(arrival)


def _restriction_lines(arrival: Mapping[str, Any]) -> Iterator[str]:
    if arrival["frozen"]:
        yield "It stays frozen until `kaiza thaw`."
    if arrival["locked"]:
        yield f"Locked until `kaiza session unlock`: {', '.join(map(escape, arrival['locked']))}"
    if arrival["withdrawn"]:
        yield f"{format_count(len(arrival['withdrawn']), 'plan')} withdrawn until `kaiza plan approve`."
