"""Options that choose what is reviewed: a session, a plan, a call, the last session with changes, or a span of time."""

import argparse

from kaiza.cli.console.id_prefix import resolve_id
from kaiza.cli.console.open_workspace import PLAN_SUFFIX
from kaiza.cli.console.record_filter import parse_since, parse_until
from kaiza.domain.refusal import RefusedError
from kaiza.domain.review.report import ReviewSelection
from kaiza.queries.review_records import MAX_SELECTED, find_ids, find_last_session
from kaiza.render.terminal import escape

_ADVICE = {
    "session": "`kaiza session list` lists the sessions.",
    "plan": "`kaiza plan list` lists the plans.",
    "request": "`kaiza audit show` lists the records.",
}
_NOUNS = {"session": "session", "plan": "plan with records", "request": "call"}
_WHOLE_ID = 36
"""Characters of the id of a session or a call."""
TOO_MANY = (
    f"There are more than {MAX_SELECTED:,} records in that selection. Choose a part of it with --since and --until."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options, of which at most one may be given."""
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--session", metavar="ID", help="this session; the first characters of the id are enough")
    chosen.add_argument("--plan", metavar="ID", help="everything done under this plan; likewise")
    chosen.add_argument("--request", metavar="ID", help="this call; likewise")
    chosen.add_argument("--last", action="store_true", help="the last session that changed something (the default)")


def add_span(parser: argparse.ArgumentParser) -> None:
    """Add `--since` and `--until`."""
    parser.add_argument(
        "--since",
        metavar="TIME",
        type=parse_since,
        help="since this time: 2026-11-18, 2026-11-18T09:00 (UTC), 2h (ago)",
    )
    parser.add_argument(
        "--until", metavar="TIME", type=parse_until, help="until this time (a date alone includes that whole day)"
    )


def resolve_selection(args: argparse.Namespace, root: str) -> ReviewSelection:
    """What is chosen, with its whole id; refused if there is no such thing."""
    since, until = getattr(args, "since", None), getattr(args, "until", None)
    for kind in ("session", "plan", "request"):
        prefix = getattr(args, kind)
        if prefix is not None:
            if since or until:
                args.parser.error(f"--since and --until cannot be combined with --{kind}")
            return ReviewSelection(kind, _resolve(root, kind, prefix))
    if since or until:
        return ReviewSelection("time", None, since, until)
    session_id = find_last_session(root)
    if session_id is None:
        raise RefusedError("No session has changed anything here yet. `kaiza session list` lists the sessions.")
    return ReviewSelection("session", session_id)


def require_records(chosen: ReviewSelection, count: int) -> None:
    """Refused if nothing was selected."""
    if count == 0:
        noun = _NOUNS.get(chosen.kind)
        what = f"No {noun} has the id {escape(chosen.id or '')}." if noun else "No records are in that time."
        raise RefusedError(f"{what} {_ADVICE.get(chosen.kind, _ADVICE['request'])}")


def _resolve(root: str, kind: str, prefix: str) -> str:
    if kind != "plan" and len(prefix) == _WHOLE_ID:  # the log need not be searched for what begins so
        return prefix
    plain = prefix.removeprefix("plans/").removesuffix(PLAN_SUFFIX) if kind == "plan" else prefix
    return resolve_id(find_ids(root, kind, plain) if plain else (), plain, _NOUNS[kind], _ADVICE[kind])
