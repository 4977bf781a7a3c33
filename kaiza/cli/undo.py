"""`kaiza undo`: put back what a session, a call or a plan changed; shown first, and nothing that would be lost."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kaiza.boundary import put_back
from kaiza.cli import options, person, say, standing, undo_choice
from kaiza.cli.word import ask_whether
from kaiza.domain import diff, errors
from kaiza.domain.caps import Caps
from kaiza.domain.change import Change
from kaiza.policy.readable import refuse_read
from kaiza.render import plans
from kaiza.render.terminal import escape
from kaiza.store import persons_word
from kaiza.store.crash_recovery import recover
from kaiza.store.ground import Ground
from kaiza.store.seen import Seen
from kaiza.tools.leading_back import worked_out

LARGEST_SHOWN = 1 << 20
"""A file above this is told by its size."""
MOST_LINES = 2000
"""So many lines of diffs are shown in all."""
_NOBODY = "There is no terminal to ask at. Say --yes to go on without asking, or --dry-run to look only."
_REASONS = {
    "changed_since": "it was changed since, by somebody else",
    "not_kept": "what was there before is not kept any more",
    "protected": "it governs the agent, or may hold secrets",
    "moved_together": "it was moved, and its other side has to stay",
}


def add(parser: argparse.ArgumentParser) -> None:
    """The command."""
    options.describe(
        parser,
        "Put back, byte for byte and mode for mode, what recorded changes replaced, newest first; only where a file\n"
        "still is what the change left, and nothing else is touched. Shows the diffs and asks. Works under a freeze\n"
        "and needs no plan. The undo is recorded, and can itself be undone with --request.\n"
        "Exit status: 0 put back, 1 something was kept as it is or nothing was wanted, 3 nobody to ask (--yes).",
        "kaiza undo --session 3f2b --dry-run\nkaiza undo --plan PLAN-0007-rotate-tokens",
        run=_undo,
    )
    undo_choice.add(parser)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--dry-run", action="store_true", help="only show what would be put back")
    how.add_argument("--yes", action="store_true", help="do not ask")
    options.name(parser)
    options.workspace(parser)
    options.as_json(parser)


@dataclass(frozen=True, slots=True)
class Way:
    """What leads back, and what stays."""

    records: Sequence[Mapping[str, Any]]
    changes: list[Change]
    kept: list[dict[str, str]]


def _undo(args: argparse.Namespace) -> int:
    name = person.name(args.name)
    with standing.ground(args) as ground:
        standing.verify_whole_record(ground)
        view = _view(ground)
        if not args.dry_run:
            recover(ground, view.now, view.request_id)
        records = undo_choice.chosen(args, ground)
        way = Way(records, *worked_out(records, view))
        diffs = list(_diffs(way.changes, ground, view))
        if not args.json:
            say.lines(_shown(way, diffs))
        made: list[str] = []
        if way.changes and not args.dry_run:
            _ask(args, way)
            made = [_part(ground, part, name) for part in put_back.parts(way.changes, records)]
    if args.json:
        say.document(_document(way, made, diffs, dry_run=args.dry_run))
    elif made:
        say.lines([f"Put back. To undo that: kaiza undo --request {' '.join(made)}"])
    return say.NO if way.kept else say.YES


def _view(ground: Ground) -> Seen:
    """The workspace as it is looked at for a person."""
    return Seen(ground, None, Caps(), {}, refuse_read, lambda: False, persons_word.now(), "kaiza undo")


def _ask(args: argparse.Namespace, way: Way) -> None:
    count = len(way.changes)
    if not args.yes and not ask_whether(f"Put back {count} file{'' if count == 1 else 's'} as shown?", _NOBODY):
        raise say.Stop("Nothing was put back, and nothing has changed.", say.NO)


def _part(ground: Ground, part: put_back.Part, name: str) -> str:
    """One part put back; the name by which that can be undone."""
    try:
        return str(put_back.carry_out(ground, part, name)["request_id"])
    except errors.SystemError as error:
        first = escape(str(part.changes[0].path))
        raise say.Stop(
            f"{error.error_code}: {error.human_message} Nothing of the part that begins with {first} was put back; "
            "what was before it is. Run kaiza undo again to see.",
            say.NO,
        ) from error


def _diffs(changes: Sequence[Change], ground: Ground, view: Seen) -> Iterator[str]:
    """One text for each change, until they are too many to read."""
    left = MOST_LINES
    for change in changes:
        if left <= 0:
            yield ""
            continue
        text = _diff(change, ground, view)
        lines = text.splitlines(keepends=True)
        cut = ["… the rest is not shown\n"] if len(lines) > left else []
        yield "".join([*lines[:left], *cut])
        left -= len(lines)


def _diff(change: Change, ground: Ground, view: Seen) -> str:
    before = _now(change, view)
    after = before if change.operation == "move" else _then(change, ground)
    mode = view.stat(change.source or change.path).mode if change.before_hash is not None else 0o644
    old = diff.File(change.source or change.path, before, mode)
    new = diff.File(change.path, after, mode if change.mode is None else change.mode)
    if (before is None) != (change.before_hash is None) or (after is None) != (change.operation == "delete"):
        return f"{change.operation} {change.path}: too large to show\n"
    made = diff.unified(old, new)
    return made.text + ("… the rest is not shown\n" if made.truncated else "")


def _now(change: Change, view: Seen) -> bytes | None:
    """What is there; None where nothing is, or too much to show."""
    if change.before_hash is None:
        return None
    with view.open_file(change.source or change.path) as file:
        return b"".join(file.chunks()) if file.size <= LARGEST_SHOWN else None


def _then(change: Change, ground: Ground) -> bytes | None:
    """What will be there; None where nothing will be, or too much to show."""
    if change.after_hash is None or change.size > LARGEST_SHOWN:
        return None
    return b"".join(ground.objects.chunks(change.after_hash))


def _shown(way: Way, diffs: Sequence[str]) -> Iterator[str]:
    width, colour = say.width(), say.colour()
    for text in filter(None, diffs):
        yield from plans.difference(text, width, colour=colour)
    told = [f"{change.operation.ljust(7)}{_where(change)}" for change in way.changes]
    yield from plans.headed("To be put back", told, width, colour=colour)
    kept = [f"{escape(one['path'])}: {_REASONS.get(one['reason'], one['reason'])}" for one in way.kept]
    yield from plans.headed("Kept as it is", kept, width, colour=colour, style="yellow")
    if not told and not kept:
        yield "Nothing to put back: everything is as it was before these changes."


def _where(change: Change) -> str:
    source = f"{escape(str(change.source))} to " if change.source else ""
    return f"{source}{escape(str(change.path))}"


def _document(way: Way, made: list[str], diffs: Sequence[str], *, dry_run: bool) -> dict[str, Any]:
    """The changes as records list them, each with its diff as far as it is shown."""
    told = [{**change.as_record(), "diff": text} for change, text in zip(way.changes, diffs, strict=True)]
    return {"changes": told, "kept": way.kept, "dry_run": dry_run, "request_ids": made}
