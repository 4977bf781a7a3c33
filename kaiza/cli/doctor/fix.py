"""`kaiza doctor --fix`: settle interrupted changes whose journals belong to a state directory that is gone."""

import argparse
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kaiza.cli.console import output
from kaiza.cli.console.confirm import confirm_by_typing
from kaiza.cli.console.open_workspace import open_root, verify_whole_log
from kaiza.clock import current_timestamp
from kaiza.queries.workspaces import find_person_name
from kaiza.render.terminal import escape, format_count, format_time
from kaiza.store.crash_recovery import ForeignChange, find_foreign_changes, settle_foreign_change
from kaiza.store.workspace import Workspace

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
_IN_USE = "{} is of a change that may be in progress: its process is alive, or of another account. End it first."
_NOT_MOVED = "{} cannot be moved to .kaiza/set-aside/. Check the permissions of .kaiza, then run this again."
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


def fix_journals(root: Path, args: argparse.Namespace) -> int:
    """Ask about each journal, and settle it; the exit status."""
    name, settled, left = find_person_name(args.name), list[Mapping[str, Any]](), list[str]()
    with open_root(str(root)) as workspace:
        verify_whole_log(workspace)
        for change in find_foreign_changes(workspace):
            report = None if change.is_in_use else _settle_change(workspace, change, name)
            if report is None or report["result"] == "left":
                left.append(change.journal.name)
                output.print_error((_IN_USE if report is None else _NOT_MOVED).format(_path_of(change)))
            else:
                settled.append(report)
                if not args.json:
                    output.print_sentences(line.format(change.journal.name) for line in _RESULTS[report["result"]])
    if args.json:
        output.print_json({"settled": settled, "left": left})
    elif not settled and not left:
        output.print_sentences(["Nothing to settle: no journal of another state directory."])
    return output.FAILURE if left else output.SUCCESS


def _settle_change(workspace: Workspace, change: ForeignChange, name: str) -> Mapping[str, Any]:
    if not confirm_by_typing("\n".join(_fact_lines(change, name)), "fix"):
        raise output.CommandError(f"Cancelled. {_path_of(change)} was left as it is.", output.FAILURE)
    return settle_foreign_change(workspace, change, current_timestamp(), name)


def _path_of(change: ForeignChange) -> str:
    return f".kaiza/journal/{change.journal.name}"


def _fact_lines(change: ForeignChange, name: str) -> Iterator[str]:
    written = datetime.fromtimestamp(change.journal.written_at, UTC)
    yield _path_of(change)
    yield f"Journal of another state directory: {escape(change.journal.state_id)}"
    yield f"Last written: {written:%Y-%m-%d %H:%M} UTC"
    if change.intent is None:
        yield "The audit log does not announce its change, so its files are not known."
    else:
        yield from _change_lines(change, change.intent)
    yield ""
    yield "If that state directory still exists, begin a session there instead."
    yield "A server on another computer that uses these files cannot be seen from here."
    yield "Make sure that there is none."
    yield f"{escape(name)} sets the journal aside. Nothing is done on its word."
    yield "Temporary files of the change are removed, their content kept in .kaiza/objects."


def _change_lines(change: ForeignChange, intent: Mapping[str, Any]) -> Iterator[str]:
    tool = escape(intent["tool_name"] or "undo")
    ended = "begun and not finished" if change.is_open else "its outcome is recorded"
    files = format_count(len(intent["changes"]), "file")
    yield f"{tool}, {format_time(intent['timestamp'] or 'at an unknown time')}, {ended}, {files}:"
    for each, state in list(zip_longest(intent["changes"], change.states))[:_MAX_SHOWN]:
        source = f"{escape(each['source'])} to " if each["source"] else ""
        yield f"  {escape(each['operation'])} {source}{escape(each['path'])}: {_STATES[state]}"
    if len(intent["changes"]) > _MAX_SHOWN:
        yield f"  … and {len(intent['changes']) - _MAX_SHOWN:,} more; `kaiza audit show {intent['seq']}` lists them"
