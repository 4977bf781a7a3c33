"""Which records a person wants to see; pure once its options are read."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kaiza.cli import moment
from kaiza.domain.glob_parser import GlobError
from kaiza.domain.globs import Glob
from kaiza.render.timeline import paths

_FIELDS = {
    "tool": "tool_name",
    "role": "role",
    "outcome": "outcome",
    "code": "error_code",
    "kind": "kind",
    "plan": "plan_id",
}
_KINDS = ("call", "intent", "plan", "session", "recovery", "person")
_GLOB_SIGNS = "*?["


@dataclass(frozen=True, slots=True)
class Selection:
    """What must be true of a record; nothing asked for takes every record."""

    wanted: Mapping[str, frozenset[str]]
    session: str | None = None
    path: Callable[[str], bool] | None = None
    since: str | None = None
    until: str | None = None

    def takes(self, record: Mapping[str, Any]) -> bool:
        """Whether the record is one of those."""
        return (
            all(record.get(name) in values for name, values in self.wanted.items())
            and self._of_session(record.get("session_id"))
            and self._in_time(str(record.get("timestamp")))
            and (self.path is None or any(map(self.path, paths(record))))
        )

    def _of_session(self, session_id: object) -> bool:
        return self.session is None or (isinstance(session_id, str) and session_id.startswith(self.session))

    def _in_time(self, timestamp: str) -> bool:
        return (self.since is None or timestamp >= self.since) and (self.until is None or timestamp < self.until)


EVERYTHING = Selection({})


def add(parser: argparse.ArgumentParser) -> None:
    """The options that select records."""
    chosen = parser.add_argument_group("which records (an option given several times takes any of them)")
    chosen.add_argument("--session", metavar="ID", help="of this session; the first characters are enough")
    chosen.add_argument("--tool", metavar="NAME", action="append", help="of this tool")
    chosen.add_argument("--role", choices=("ANTIGRAVITY", "WINDSURF"), action="append", help="of this role")
    chosen.add_argument("--kind", choices=_KINDS, action="append", help="of this kind")
    chosen.add_argument("--plan", metavar="ID", action="append", help="under this plan")
    chosen.add_argument(
        "--path", metavar="PATH", type=_path, help="naming this path, one below it, or one this glob matches"
    )
    chosen.add_argument("--outcome", choices=("ok", "error"), action="append", help="that came to this")
    chosen.add_argument("--code", metavar="CODE", action="append", help="with this error code")
    chosen.add_argument(
        "--since", metavar="TIME", type=moment.since, help="from 2026-11-18, 2026-11-18T09:00 (UTC) or 2h ago on"
    )
    chosen.add_argument(
        "--until", metavar="TIME", type=moment.until, help="up to then; a bare date is meant to its end"
    )


def of(args: argparse.Namespace) -> Selection:
    """The selection that the options describe."""
    given = {name: getattr(args, option) for option, name in _FIELDS.items()}
    wanted = {name: frozenset(values) for name, values in given.items() if values}
    return Selection(wanted, args.session, args.path, args.since, args.until)


def _path(text: str) -> Callable[[str], bool]:
    if any(sign in text for sign in _GLOB_SIGNS):
        try:
            return _matching(Glob.parse(text))
        except GlobError as error:
            raise argparse.ArgumentTypeError(f"{error.message}. {error.fix}") from None
    wanted = _parts(text)
    return lambda path: _parts(path)[: len(wanted)] == wanted


def _matching(glob: Glob) -> Callable[[str], bool]:
    return lambda path: glob.matches(_parts(path))


def _parts(path: str) -> Sequence[str]:
    return [part for part in path.split("/") if part not in {"", "."}]
