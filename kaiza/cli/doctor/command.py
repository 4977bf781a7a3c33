"""`kaiza doctor`: everything a session will need, looked at now, and what to do about what is not right."""

import argparse
from collections.abc import Iterator
from pathlib import Path

from kaiza.cli.console import arguments as options
from kaiza.cli.console import output as say
from kaiza.cli.doctor import clients as doctor_clients
from kaiza.cli.doctor import machine as doctor_machine
from kaiza.cli.doctor import workspace as doctor_workspace
from kaiza.cli.doctor.check import OK, PROBLEM, UNKNOWN, WARNING, DoctorCheck
from kaiza.cli.doctor.machine import errors_as_unknown
from kaiza.render.terminal import escape, paint
from kaiza.store.config import roots

_STYLES = {OK: "green", WARNING: "yellow", PROBLEM: "red", UNKNOWN: "red"}
_VERDICT_WIDTH = max(map(len, _STYLES))


def add(parser: argparse.ArgumentParser) -> None:
    """The command."""
    options.describe(
        parser,
        "Check everything a session will need, and say what to do: Python, kernel, file system, permissions, plans,\n"
        "the record and its anchor, open changes, the clients' configuration. Changes nothing.\n"
        "Exit status: 0 all ok, or only warnings; 1 a problem; 3 something could not be told.",
        "kaiza doctor\nkaiza doctor ~/project --json",
        run=_run_doctor,
    )
    parser.add_argument(
        "directory", metavar="DIR", nargs="?", help="the workspace (default: the nearest one upwards, else here)"
    )
    options.add_json(parser)


def _run_doctor(args: argparse.Namespace) -> int:
    root = Path(args.directory or roots.find_nearest(".") or ".").resolve()
    if not root.is_dir():
        raise say.CommandError(f"There is no directory {args.directory}. Name the workspace.", say.FAILURE)
    checks = list(_run_checks(root))
    if args.json:
        worst = next((one for one in (PROBLEM, UNKNOWN, WARNING) if any(c.verdict == one for c in checks)), OK)
        say.print_json({"workspace": str(root), "verdict": worst, "checks": [check.as_json() for check in checks]})
    else:
        say.print_lines(_format_lines(root, checks))
    return _exit_status(checks)


def _run_checks(root: Path) -> Iterator[DoctorCheck]:
    yield from doctor_machine.check_python()
    yield from doctor_machine.check_user()
    yield from errors_as_unknown("paths", doctor_machine.check_kernel(root))
    yield from doctor_workspace.check_initialized(root)
    if roots.is_initialized(str(root)):
        yield from _run_workspace_checks(root)
    yield from errors_as_unknown("state", doctor_machine.check_state_directory(root))
    yield from errors_as_unknown("clients", doctor_clients.check_clients(root))


def _run_workspace_checks(root: Path) -> Iterator[DoctorCheck]:
    yield from errors_as_unknown("permissions", doctor_machine.check_permissions(root))
    yield from errors_as_unknown("file-system", doctor_machine.check_file_system(root))
    yield from errors_as_unknown("settings", doctor_workspace.check_settings(root))
    yield from errors_as_unknown("git", doctor_workspace.check_git(root))
    yield from errors_as_unknown("plans", doctor_workspace.check_plans(root))
    yield from errors_as_unknown("journals", doctor_workspace.check_journals(root))
    yield from errors_as_unknown("record", doctor_workspace.check_log(root))


def _format_lines(root: Path, checks: list[DoctorCheck]) -> Iterator[str]:
    yield f"{escape(str(root))}"
    room = max(len(check.name) for check in checks)
    for check in checks:
        mark = paint(check.verdict.ljust(_VERDICT_WIDTH), _STYLES[check.verdict], colour=say.has_colour())
        yield f"{mark}  {check.name.ljust(room)}  {check.message}"
        if check.todo:
            yield f"{' ' * (_VERDICT_WIDTH + room + 4)}{check.todo}"


def _exit_status(checks: list[DoctorCheck]) -> int:
    verdicts = {check.verdict for check in checks}
    if PROBLEM in verdicts:
        return say.FAILURE
    return say.UNDETERMINED if UNKNOWN in verdicts else say.SUCCESS
