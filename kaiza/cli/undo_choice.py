"""Which recorded changes a person means: those of a session, of single calls, or under a plan."""

import argparse
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kaiza.cli import log, plan_id, say
from kaiza.domain.way_back import happened, standing_changes
from kaiza.store.ground import Ground

Record = Mapping[str, Any]


def add(parser: argparse.ArgumentParser) -> None:
    """One of three ways to say it."""
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--session", metavar="ID", help="everything this session changed; its first characters will do")
    which.add_argument("--request", metavar="ID", nargs="+", help="what these calls changed, undos too")
    which.add_argument("--plan", metavar="ID", type=plan_id.read, help="everything that was changed under this plan")


def chosen(args: argparse.Namespace, ground: Ground) -> list[Record]:
    """The records of the changes that are meant and still stand, in order."""
    made = list(_made(ground.root))
    if args.request is not None:
        return _of_calls(set(args.request), made)
    if args.session is not None:
        session_id = _session(args.session, ground.root)
        return _standing(made, lambda one: one["session_id"] == session_id)
    return _standing(made, lambda one: one["plan_id"] == args.plan)


def _made(root: str) -> Iterator[Record]:
    """Every record that tells of changes that happened."""
    return filter(happened, log.forward(root))


def _of_calls(wanted: set[str], made: list[Record]) -> list[Record]:
    found = [one for one in made if one["request_id"] in wanted]
    missing = wanted - {one["request_id"] for one in found}
    if missing:
        raise say.Stop(f"No recorded change is named {', '.join(sorted(missing))}. See kaiza audit show.", say.NO)
    return found


def _standing(made: list[Record], meant: Callable[[Record], bool]) -> list[Record]:
    """Those that are meant, less undos and what was undone by anybody."""
    return [one for one in standing_changes(made) if meant(one)]


def _session(begins: str, root: str) -> str:
    found = {one["session_id"] for one in log.forward(root) if (one.get("session_id") or "").startswith(begins)}
    if len(found) != 1:
        what = "Several sessions begin" if found else "No session begins"
        raise say.Stop(f"{what} with {begins!r}. `kaiza session list` shows them all.", say.NO)
    return str(found.pop())
