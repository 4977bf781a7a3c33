"""`kaiza doctor`: check everything a session needs, and say what to do about what is wrong."""

import argparse
from collections.abc import Iterator
from pathlib import Path

from kaiza.cli.console import arguments, output
from kaiza.cli.doctor import clients, machine, sandbox_probe, trust, workspace
from kaiza.cli.doctor.check import OK, PROBLEM, UNKNOWN, WARNING, DoctorCheck
from kaiza.cli.doctor.fix import fix_journals
from kaiza.cli.doctor.handshake import check_server, probe_server
from kaiza.cli.doctor.machine import errors_as_checks
from kaiza.queries.workspaces import require_utf8
from kaiza.render.tables import GAP
from kaiza.render.terminal import escape, paint, wrap, wrap_words
from kaiza.store.clients import server_command
from kaiza.store.config import roots

_STYLES = {OK: "green", WARNING: "yellow", PROBLEM: "red", UNKNOWN: "red"}
_VERDICT_WIDTH = max(map(len, _STYLES))


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
    root = Path(args.directory or roots.find_nearest(".") or ".").resolve()
    if not root.is_dir():
        raise output.CommandError(
            f"There is no directory {escape(args.directory)}. Name an existing one.", output.FAILURE
        )
    require_utf8(str(root))
    if args.fix:
        return fix_journals(root, args)
    checks = list(_run_checks(root))
    if args.json:
        verdicts = {check.verdict for check in checks}
        worst = next((verdict for verdict in (PROBLEM, UNKNOWN, WARNING) if verdict in verdicts), OK)
        output.print_json({"workspace": str(root), "verdict": worst, "checks": [check.as_json() for check in checks]})
    else:
        output.print_lines(_format_lines(root, checks))
    return _exit_status(checks)


def _run_checks(root: Path) -> Iterator[DoctorCheck]:
    yield from machine.check_python()
    yield from machine.check_user()
    yield from errors_as_checks("paths", machine.check_kernel(root))
    yield from workspace.check_initialized(root)
    if roots.is_initialized(str(root)):
        yield from _run_workspace_checks(root)
    yield from errors_as_checks("state", machine.check_state_directory(root))
    yield from errors_as_checks("configuration", machine.check_configuration_directory(root))
    fault = probe_server(server_command.for_workspace(root))
    yield from check_server(fault)
    yield from errors_as_checks("clients", clients.check_clients(root, has_answered=fault is None))


def _run_workspace_checks(root: Path) -> Iterator[DoctorCheck]:
    yield from errors_as_checks("permissions", machine.check_permissions(root))
    yield from errors_as_checks("file-system", machine.check_file_system(root))
    yield from errors_as_checks("binding", workspace.check_binding(root))
    yield from errors_as_checks("settings", workspace.check_settings(root))
    yield from errors_as_checks("git", workspace.check_git(root))
    yield from errors_as_checks("plans", workspace.check_plans(root))
    yield from errors_as_checks("trust", trust.check_trust(root))
    yield from errors_as_checks("nested", workspace.check_nested(root))
    yield from errors_as_checks("checks", sandbox_probe.check_sandbox(root))
    yield from errors_as_checks("journals", workspace.check_journals(root))
    yield from errors_as_checks("record", workspace.check_log(root))


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


def _exit_status(checks: list[DoctorCheck]) -> int:
    verdicts = {check.verdict for check in checks}
    if PROBLEM in verdicts:
        return output.FAILURE
    return output.UNDETERMINED if UNKNOWN in verdicts else output.SUCCESS
