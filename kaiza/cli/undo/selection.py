"""Which recorded changes a person means: those of a session, of single calls, or under a plan."""

import argparse
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kaiza.cli.console import arguments, audit_reader, output
from kaiza.domain.audit.inverse_changes import effective_changes, took_effect
from kaiza.store.workspace import Workspace

Record = Mapping[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One of three ways to say it."""
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--session", metavar="ID", help="everything this session changed; its first characters will do")
    which.add_argument("--request", metavar="ID", nargs="+", help="what these calls changed, undos too")
    which.add_argument(
        "--plan", metavar="ID", type=arguments.parse_id, help="everything that was changed under this plan"
    )


def select_records(args: argparse.Namespace, ground: Workspace) -> list[Record]:
    """The records of the changes that are meant and still stand, in order."""
    made = list(_change_records(ground.root))
    if args.request is not None:
        return _records_of_calls(set(args.request), made)
    if args.session is not None:
        session_id = _resolve_session(args.session, ground.root)
        return _effective_records(made, lambda one: one["session_id"] == session_id)
    return _effective_records(made, lambda one: one["plan_id"] == args.plan)


def _change_records(root: str) -> Iterator[Record]:
    """Every record that tells of changes that happened."""
    return filter(took_effect, audit_reader.read_forward(root))


def _records_of_calls(wanted: set[str], made: list[Record]) -> list[Record]:
    found = [one for one in made if one["request_id"] in wanted]
    missing = wanted - {one["request_id"] for one in found}
    if missing:
        raise output.CommandError(
            f"No recorded change is named {', '.join(sorted(missing))}. See kaiza audit show.", output.FAILURE
        )
    return found


def _effective_records(made: list[Record], meant: Callable[[Record], bool]) -> list[Record]:
    """Those that are meant, less undos and what was undone by anybody."""
    return [one for one in effective_changes(made) if meant(one)]


def _resolve_session(begins: str, root: str) -> str:
    found = {
        one["session_id"] for one in audit_reader.read_forward(root) if (one.get("session_id") or "").startswith(begins)
    }
    if len(found) != 1:
        what = "Several sessions begin" if found else "No session begins"
        raise output.CommandError(f"{what} with {begins!r}. `kaiza session list` shows them all.", output.FAILURE)
    return str(found.pop())
