"""Commands at the end of a report: undo, verify, revoke. Nothing in them is cut."""

import shlex
from collections.abc import Iterator, Sequence

from kaiza.domain.review.report import PlanCard, ReviewCommand, ReviewSelection, ReviewSource

_OPTIONS = {"session": "--session", "plan": "--plan", "request": "--request"}


def list_commands(
    selection: ReviewSelection, source: ReviewSource, plans: Sequence[PlanCard], *, has_changes: bool, kept: int = 0
) -> tuple[ReviewCommand, ...]:
    """The commands to type; `kept` files changed since, so that an undo leaves them alone.

    An id that a shell or a terminal could misread is left out with its command.
    """
    return tuple(_all_commands(selection, source, plans, has_changes=has_changes, kept=kept))


def _all_commands(
    selection: ReviewSelection, source: ReviewSource, plans: Sequence[PlanCard], *, has_changes: bool, kept: int
) -> Iterator[ReviewCommand]:
    option = _OPTIONS.get(selection.kind)
    if option and selection.id and _is_typable(selection.id):
        chosen = f"{option} {shlex.quote(selection.id)}"
        yield ReviewCommand(f"kaiza diff {chosen}", "Show what the agent changed")
        if has_changes:
            yield ReviewCommand(f"kaiza undo {chosen} --dry-run", "Show what an undo would restore")
            yield ReviewCommand(f"kaiza undo {chosen}", f"Restore the files as they were before.{_describe_kept(kept)}")
    if source.head_seq:
        head = f"{source.head_seq}:{source.head_hash}"
        if _is_typable(head):
            yield ReviewCommand(f"kaiza audit verify --head {head}", "Verify the record up to this report")
    for plan in plans:
        if plan.how is not None and plan.withdrawn is None and _is_typable(plan.plan_id):
            yield ReviewCommand(f"kaiza plan revoke {shlex.quote(plan.plan_id)}", "Stop changes under the plan")


def _describe_kept(count: int) -> str:
    if not count:
        return " Reports and plans stay."
    what = "The file that" if count == 1 else f"The {count:,} files that"
    return f" {what} changed since stays as it is, with what the agent wrote in it. Reports and plans stay."


def _is_typable(text: str) -> bool:
    return text.isascii() and text.isprintable() and not text.startswith("-")
