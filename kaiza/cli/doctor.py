"""`kaiza doctor`: check everything a session needs, and say what to do about what is wrong.

With `--fix`, settle interrupted changes whose journals belong to a state directory that is gone.
"""

import argparse
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kaiza.cli.console import arguments, output
from kaiza.cli.console.confirm import confirm
from kaiza.cli.console.open_workspace import open_root
from kaiza.decisions import settle_change
from kaiza.domain.refusal import RefusedError
from kaiza.queries.doctor import run_checks
from kaiza.queries.doctor.check import OK, PROBLEM, UNKNOWN, WARNING, DoctorCheck
from kaiza.queries.workspaces import find_nearest, find_person_name, require_utf8
from kaiza.render.tables import GAP
from kaiza.render.terminal import escape, format_count, format_time, paint, wrap, wrap_words

_STYLES = {OK: "green", WARNING: "yellow", PROBLEM: "red", UNKNOWN: "red"}
_VERDICT_WIDTH = max(map(len, _STYLES))
_MAX_SHOWN = 100
_STATES = MappingProxyType(
    {
        "before": "as before the change",
        "after": "as after the change",
        "both": "its content is not part of the change",
        "other": "neither as before the change nor as after it",
        None: "not compared, because a file of the change is protected",
    }
)
_UNDO = "  kaiza undo --request {}"
_RESULTS = MappingProxyType(
    {
        "applied": ("Settled: the change is recorded as made. To take it back:", _UNDO),
        "not_applied": ("Settled: the change is recorded as not made.",),
        "unknown": (
            "Settled: recorded as unclear, because not all files are as before the change, and not all as after it.",
            "To restore those that are as after it:",
            _UNDO,
        ),
        "set_aside": ("Settled: the journal is set aside.",),
    }
)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    arguments.describe(
        parser,
        "Check everything a session needs, and say what to do: Python, kernel, file system, permissions, plans, the "
        "audit log and its checkpoint, unfinished changes, client configuration, what the clients say about it "
        "(`claude mcp list`), and whether the server answers a client's handshake. Changes nothing. With --fix "
        "it settles interrupted changes of a state directory that is gone instead: shows their files and asks.\n"
        "Exit status: 0 ok or only warnings, 1 a problem, 3 something could not be determined; with --fix: 0 all "
        "settled, 1 not settled, 3 no terminal to ask at.",
        "kaiza doctor\nkaiza doctor ~/project --json\nkaiza doctor --fix",
        run=_run_doctor,
    )
    parser.add_argument(
        "directory",
        metavar="DIR",
        nargs="?",
        help="the workspace (default: this directory or the nearest one above it that is a workspace)",
    )
    parser.add_argument(
        "--fix", action="store_true", help="settle interrupted changes of a state directory that is gone"
    )
    arguments.add_operator(parser)
    arguments.add_json(parser)


def _run_doctor(args: argparse.Namespace) -> int:
    root = Path(args.directory or find_nearest(".") or ".").resolve()
    if not root.is_dir():
        raise RefusedError(f"There is no directory {escape(args.directory)}. Name an existing one.")
    require_utf8(str(root))
    if args.fix:
        return _fix_journals(root, args)
    checks = list(run_checks(root, output.Progress))
    verdicts = {check.verdict for check in checks}
    worst = next((verdict for verdict in (PROBLEM, UNKNOWN, WARNING) if verdict in verdicts), OK)
    if args.json:
        output.print_json({"workspace": str(root), "verdict": worst, "checks": [check.as_json() for check in checks]})
    else:
        output.print_lines(_format_lines(root, checks))
    return {PROBLEM: output.FAILURE, UNKNOWN: output.UNDETERMINED}.get(worst, output.SUCCESS)


def _format_lines(root: Path, checks: list[DoctorCheck]) -> Iterator[str]:
    width = output.terminal_width()
    yield from wrap([escape(str(root))], width)
    room = max(len(check.name) for check in checks)
    indent = " " * (_VERDICT_WIDTH + room + 2 * len(GAP))
    for check in checks:
        verdict = paint(check.verdict.ljust(_VERDICT_WIDTH), _STYLES[check.verdict], colour=output.has_colour())
        first, *rest = _wrap_message(check.message, indent, width)
        yield f"{verdict}{GAP}{check.name.ljust(room)}{GAP}{first}"
        yield from rest
        if check.todo:
            first, *rest = _wrap_message(check.todo, indent, width)
            yield from (indent + first, *rest)


def _wrap_message(text: str, indent: str, width: int | None) -> Iterator[str]:
    """A message in the last column; its later lines are indented to it."""
    first, *rest = wrap_words(indent + text, width, indent)
    yield from (first[len(indent) :], *rest)


def _fix_journals(root: Path, args: argparse.Namespace) -> int:
    """Ask about each journal, and settle its change; the exit status."""
    name, settled, left = find_person_name(args.name), list[Mapping[str, Any]](), list[str]()
    with open_root(str(root)) as workspace:
        with output.Progress("verifying") as progress:
            proposals = settle_change.propose(workspace, progress)
        for proposal in proposals:
            change = proposal.change
            if not change.is_in_use and not confirm("\n".join(_fact_lines(proposal, name)), "Set this journal aside?"):
                raise RefusedError(f"Cancelled. {proposal.path} was left as it is.")
            try:
                report = settle_change.decide(workspace, proposal, name).report
            except RefusedError as refusal:
                left.append(change.journal.name)
                output.print_error(refusal.message)
                continue
            settled.append(report)
            if not args.json:
                output.print_sentences(line.format(change.journal.name) for line in _RESULTS[report["result"]])
    if args.json:
        output.print_json({"settled": settled, "left": left})
    elif not settled and not left:
        output.print_sentences(["Nothing to settle: no journal of another state directory."])
    return output.FAILURE if left else output.SUCCESS


def _fact_lines(proposal: settle_change.Proposal, name: str) -> Iterator[str]:
    change, intent = proposal.change, proposal.change.intent
    written = datetime.fromtimestamp(change.journal.written_at, UTC)
    yield proposal.path
    yield f"Journal of another state directory: {escape(change.journal.state_id)}"
    yield f"Last written: {written:%Y-%m-%d %H:%M} UTC"
    if intent is None:
        yield "The audit log does not announce its change, so its files are not known."
    else:
        tool = escape(intent.tool_name or "undo")
        ended = "begun and not finished" if change.is_open else "its outcome is recorded"
        files = format_count(len(intent.changes), "file")
        yield f"{tool}, {format_time(intent.timestamp or 'at an unknown time')}, {ended}, {files}:"
        for each, state in list(zip_longest(intent.changes, change.states))[:_MAX_SHOWN]:
            source = f"{escape(each['source'])} to " if each["source"] else ""
            yield f"  {escape(each['operation'])} {source}{escape(each['path'])}: {_STATES[state]}"
        if len(intent.changes) > _MAX_SHOWN:
            more = len(intent.changes) - _MAX_SHOWN
            yield f"  … and {more:,} more; `kaiza audit show {intent.seq}` lists them"
    yield ""
    yield "If that state directory still exists, begin a session there instead."
    yield "A server on another computer that uses these files cannot be seen from here."
    yield "Make sure that there is none."
    yield f"{escape(name)} sets the journal aside. Nothing is done on its word."
    yield "Temporary files of the change are removed, their content kept in .kaiza/objects."
