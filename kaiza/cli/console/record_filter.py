"""Which records a person wants to see; pure once its options are read."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kaiza.cli.console import timestamps
from kaiza.domain.paths.glob import Glob
from kaiza.domain.paths.glob_parser import GlobError
from kaiza.render.record_timeline import recorded_paths

_OPTION_FIELDS = {
    "tool": "tool_name",
    "role": "role",
    "outcome": "outcome",
    "code": "error_code",
    "kind": "kind",
    "plan": "plan_id",
}
_KINDS = ("call", "intent", "plan", "session", "recovery", "person")
_GLOB_CHARACTERS = "*?["


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """What must be true of a record; nothing asked for takes every record."""

    field_values: Mapping[str, frozenset[str]]
    session: str | None = None
    path: Callable[[str], bool] | None = None
    since: str | None = None
    until: str | None = None

    def matches(self, record: Mapping[str, Any]) -> bool:
        """Whether the record is one of those."""
        return (
            all(record.get(name) in values for name, values in self.field_values.items())
            and self._is_in_session(record.get("session_id"))
            and self._is_in_time(str(record.get("timestamp")))
            and (self.path is None or any(map(self.path, recorded_paths(record))))
        )

    def _is_in_session(self, session_id: object) -> bool:
        return self.session is None or (isinstance(session_id, str) and session_id.startswith(self.session))

    def _is_in_time(self, timestamp: str) -> bool:
        return (self.since is None or timestamp >= self.since) and (self.until is None or timestamp < self.until)


MATCH_ALL = RecordFilter({})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that select records."""
    chosen = parser.add_argument_group("which records (an option given several times takes any of them)")
    chosen.add_argument("--session", metavar="ID", help="of this session; the first characters are enough")
    chosen.add_argument("--tool", metavar="NAME", action="append", help="of this tool")
    chosen.add_argument("--role", choices=("ANTIGRAVITY", "WINDSURF"), action="append", help="of this role")
    chosen.add_argument("--kind", choices=_KINDS, action="append", help="of this kind")
    chosen.add_argument("--plan", metavar="ID", action="append", help="under this plan")
    chosen.add_argument(
        "--path", metavar="PATH", type=_parse_path, help="naming this path, one below it, or one this glob matches"
    )
    chosen.add_argument("--outcome", choices=("ok", "error"), action="append", help="that came to this")
    chosen.add_argument("--code", metavar="CODE", action="append", help="with this error code")
    chosen.add_argument(
        "--since",
        metavar="TIME",
        type=timestamps.parse_since,
        help="from 2026-11-18, 2026-11-18T09:00 (UTC) or 2h ago on",
    )
    chosen.add_argument(
        "--until", metavar="TIME", type=timestamps.parse_until, help="up to then; a bare date is meant to its end"
    )


def from_arguments(args: argparse.Namespace) -> RecordFilter:
    """The selection that the options describe."""
    given = {name: getattr(args, option) for option, name in _OPTION_FIELDS.items()}
    wanted = {name: frozenset(values) for name, values in given.items() if values}
    return RecordFilter(wanted, args.session, args.path, args.since, args.until)


def _parse_path(text: str) -> Callable[[str], bool]:
    if any(sign in text for sign in _GLOB_CHARACTERS):
        try:
            return _glob_matcher(Glob.parse(text))
        except GlobError as error:
            raise argparse.ArgumentTypeError(f"{error.message}. {error.fix}") from None
    wanted = _path_parts(text)
    return lambda path: _path_parts(path)[: len(wanted)] == wanted


def _glob_matcher(glob: Glob) -> Callable[[str], bool]:
    return lambda path: glob.matches(_path_parts(path))


def _path_parts(path: str) -> Sequence[str]:
    return [part for part in path.split("/") if part not in {"", "."}]
