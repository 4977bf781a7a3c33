"""Options that select records, and the filter they make."""

import argparse
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from kaiza.cli.console import arguments
from kaiza.cli.console.id_prefix import resolve_id
from kaiza.cli.console.open_workspace import PLAN_ADVICE, PLAN_SUFFIX
from kaiza.domain.audit.record import Record
from kaiza.domain.audit.recorded_names import recorded_paths
from kaiza.domain.paths.glob import Glob
from kaiza.domain.paths.glob_parser import GlobError
from kaiza.domain.plans.plan import is_plan_id
from kaiza.domain.timestamps import format_timestamp

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
_AGO_PATTERN = re.compile(r"(\d{1,6})([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DATE_PATTERN = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """Conditions on a record; without conditions every record matches."""

    field_values: Mapping[str, frozenset[str]]
    session: str | None = None
    path: Callable[[str], bool] | None = None
    since: str | None = None
    until: str | None = None

    def matches(self, record: Record) -> bool:
        """Whether the record meets every condition."""
        # The log may come from elsewhere, so a member can be of any type.
        for name, allowed in self.field_values.items():
            value = record.members.get(name)
            if not isinstance(value, str) or value not in allowed:
                return False
        session_id, timestamp = record.session_id, record.timestamp
        if self.session is not None and not (isinstance(session_id, str) and session_id.startswith(self.session)):
            return False
        if timestamp < (self.since or "") or (self.until is not None and timestamp >= self.until):
            return False
        return self.path is None or any(map(self.path, recorded_paths(record)))


MATCH_ALL = RecordFilter({})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that select records."""
    group = parser.add_argument_group("filters (repeat an option to match any of its values)")
    group.add_argument("--session", metavar="ID", help="of this session; the first characters are enough")
    group.add_argument("--tool", metavar="NAME", action="append", help="of this tool")
    arguments.add_role(group, "of this role", action="append")
    group.add_argument(
        "--kind", metavar="KIND", choices=_KINDS, action="append", help=f"of this kind: {', '.join(_KINDS)}"
    )
    group.add_argument("--plan", metavar="ID", action="append", help="under this plan; the first characters are enough")
    group.add_argument(
        "--path", metavar="PATH", type=_parse_path, help="naming this path, a path below it, or one this glob matches"
    )
    group.add_argument("--outcome", choices=("ok", "error"), action="append", help="with this outcome")
    group.add_argument("--code", metavar="CODE", action="append", help="with this error code")
    group.add_argument(
        "--since",
        metavar="TIME",
        type=parse_since,
        help="since this time: 2026-11-18, 2026-11-18T09:00 (UTC), 2h (ago)",
    )
    group.add_argument(
        "--until", metavar="TIME", type=parse_until, help="until this time (a date alone includes that whole day)"
    )


def from_arguments(args: argparse.Namespace, root: str) -> RecordFilter:
    """The filter that the options describe."""
    values = {name: getattr(args, option) for option, name in _OPTION_FIELDS.items()}
    names = os.listdir(f"{root}/plans") if args.plan else []  # noqa: PTH208  names are enough
    plan_ids = [name.removesuffix(PLAN_SUFFIX) for name in names if name.endswith(PLAN_SUFFIX)]
    values["plan_id"] = []
    for prefix in args.plan or ():
        matching = [plan_id for plan_id in plan_ids if plan_id.startswith(prefix) and is_plan_id(plan_id)]
        # The text itself if there is none, as after its file was removed.
        values["plan_id"].append(resolve_id(matching, prefix, "plan", PLAN_ADVICE) if matching else prefix)
    field_values = {name: frozenset(allowed) for name, allowed in values.items() if allowed}
    return RecordFilter(field_values, args.session, args.path, args.since, args.until)


def _parse_path(text: str) -> Callable[[str], bool]:
    if any(sign in text for sign in _GLOB_CHARACTERS):
        try:
            glob = Glob.parse(text)
        except GlobError as error:
            raise argparse.ArgumentTypeError(f"{error.message}. {error.fix}") from None
        return lambda path: glob.matches(_path_parts(path))
    prefix = _path_parts(text)
    return lambda path: _path_parts(path)[: len(prefix)] == prefix


def _path_parts(path: str) -> Sequence[str]:
    return [part for part in path.split("/") if part not in {"", "."}]


def parse_since(text: str) -> str:
    """The time as records write it; a date is its first moment."""
    return _format_timestamp(_parse_time(text))


def parse_until(text: str) -> str:
    """The first moment after the time; after a date, the next day's."""
    return _format_timestamp(_parse_time(text) + timedelta(days=1 if _DATE_PATTERN.fullmatch(text) else 0))


def _parse_time(text: str) -> datetime:
    ago = _AGO_PATTERN.fullmatch(text)
    try:
        if ago:
            return datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        time = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a valid time. Write 2026-11-18, 2026-11-18T09:00 (UTC), or 30m, 2h, 7d (ago)"
        ) from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _format_timestamp(time: datetime) -> str:
    return format_timestamp(time.astimezone(UTC))
