"""`kaiza doctor`: everything a session will need, looked at now, and what to do about what is not right."""

import argparse
from collections.abc import Iterator
from pathlib import Path

from kaiza.cli import doctor_clients, doctor_machine, doctor_workspace, options, say
from kaiza.cli.check import OK, PROBLEM, UNKNOWN, WARNING, Check
from kaiza.cli.doctor_machine import settled
from kaiza.render.terminal import escape, paint
from kaiza.store import roots

_STYLES = {OK: "green", WARNING: "yellow", PROBLEM: "red", UNKNOWN: "red"}
_ROOM = max(map(len, _STYLES))


def add(parser: argparse.ArgumentParser) -> None:
    """The command."""
    options.describe(
        parser,
        "Check everything a session will need, and say what to do: Python, kernel, file system, permissions, plans,\n"
        "the record and its anchor, open changes, the clients' configuration. Changes nothing.\n"
        "Exit status: 0 all ok, or only warnings; 1 a problem; 3 something could not be told.",
        "kaiza doctor\nkaiza doctor ~/project --json",
        run=_doctor,
    )
    parser.add_argument(
        "directory", metavar="DIR", nargs="?", help="the workspace (default: the nearest one upwards, else here)"
    )
    options.as_json(parser)


def _doctor(args: argparse.Namespace) -> int:
    root = Path(args.directory or roots.nearest(".") or ".").resolve()
    if not root.is_dir():
        raise say.Stop(f"There is no directory {args.directory}. Name the workspace.", say.NO)
    checks = list(_checks(root))
    if args.json:
        worst = next((one for one in (PROBLEM, UNKNOWN, WARNING) if any(c.verdict == one for c in checks)), OK)
        say.document({"workspace": str(root), "verdict": worst, "checks": [check.as_json() for check in checks]})
    else:
        say.lines(_lines(root, checks))
    return _status(checks)


def _checks(root: Path) -> Iterator[Check]:
    yield from doctor_machine.python()
    yield from doctor_machine.user()
    yield from settled("paths", doctor_machine.kernel(root))
    yield from doctor_workspace.ready(root)
    if roots.ready(str(root)):
        yield from _of_a_workspace(root)
    yield from settled("state", doctor_machine.state_directory(root))
    yield from settled("clients", doctor_clients.clients(root))


def _of_a_workspace(root: Path) -> Iterator[Check]:
    yield from settled("permissions", doctor_machine.permissions(root))
    yield from settled("file-system", doctor_machine.file_system(root))
    yield from settled("settings", doctor_workspace.settings(root))
    yield from settled("git", doctor_workspace.git(root))
    yield from settled("plans", doctor_workspace.plans(root))
    yield from settled("journals", doctor_workspace.journals(root))
    yield from settled("record", doctor_workspace.record(root))


def _lines(root: Path, checks: list[Check]) -> Iterator[str]:
    yield f"{escape(str(root))}"
    room = max(len(check.name) for check in checks)
    for check in checks:
        mark = paint(check.verdict.ljust(_ROOM), _STYLES[check.verdict], colour=say.colour())
        yield f"{mark}  {check.name.ljust(room)}  {check.message}"
        if check.todo:
            yield f"{' ' * (_ROOM + room + 4)}{check.todo}"


def _status(checks: list[Check]) -> int:
    verdicts = {check.verdict for check in checks}
    if PROBLEM in verdicts:
        return say.NO
    return say.UNKNOWN if UNKNOWN in verdicts else say.YES
