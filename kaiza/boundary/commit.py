"""A change goes ahead: its intent is on disk before the first byte moves, its outcome before anybody hears of it."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

from kaiza.boundary.call import Call, House, now
from kaiza.boundary.case import as_of_now
from kaiza.boundary.outcome import as_ours, conclude, outcome_body
from kaiza.domain import errors, line_match, record, told
from kaiza.domain.call import Outcome
from kaiza.domain.change import Change, bytes_written
from kaiza.domain.finding import Finding
from kaiza.domain.lint import Reading
from kaiza.domain.paths import RelPath
from kaiza.domain.scope import MOVE, Wanted
from kaiza.domain.way_back import happened, touched
from kaiza.policy import content
from kaiza.policy.case import Case
from kaiza.policy.judge import EXEMPT, at_intent, judge, on_result
from kaiza.store import approved_bytes
from kaiza.store.ground import Ground
from kaiza.store.records import records
from kaiza.store.seen import Seen
from kaiza.tools.view import Answer


def weighed(case: Case, changes: Sequence[Change], view: Seen) -> Case:
    """The case once its result is known: the paths it really touches, its lines and bytes, what it adds."""
    paths = tuple(path for change in changes for path in (change.path, change.source) if path is not None)
    return replace(
        case,
        paths=paths,
        hidden=tuple(path for path in paths if view.unreadable(path)),
        lines=sum(change.lines_added + change.lines_removed for change in changes),
        bytes=sum(bytes_written(change.as_record()) for change in changes),
        content=tuple(_findings(case.reading, changes, view)),
    )


def _wanted(change: Change) -> Wanted:
    """What a change does to which file."""
    edited = change.operation == MOVE and (change.mode is not None or not change.keeps_content)
    return Wanted(change.operation, change.path, change.source, edited=edited)


def _findings(reading: Reading | None, changes: Sequence[Change], view: Seen) -> Sequence[tuple[RelPath, Finding]]:
    plan = reading.plan if reading else None
    if plan is None:
        return ()
    return [
        (change.path, finding)
        for change in changes
        if change.content is not None
        for finding in content.look(
            plan.policy,
            change.path.name,
            change.content,
            None if change.operation == "create" else _Added(change, view),
        )
    ]


class _Added:
    """The lines that a change adds; found out only when a rule asks, which it does where something stands out."""

    def __init__(self, change: Change, view: Seen) -> None:
        self._change = change
        self._view = view

    def __contains__(self, line: object) -> bool:
        return line in self._lines

    @cached_property
    def _lines(self) -> set[int]:
        with self._view.open_file(self._change.source or self._change.path) as file:
            before = b"".join(file.chunks())
        spans = line_match.changed(before.split(b"\n"), (self._change.content or b"").split(b"\n"))
        return {line for span in spans for line in range(span.new_start, span.new_end)}


def carried_out(call: Call, case: Case, answer: Answer, house: House, view: Seen) -> Outcome | None:
    """Make the changes a tool proposed; None where the clock took the call before its intent.

    What can be foreseen is refused before the intent: nothing is written then but the refusal's record.
    """
    ground = _ground(call)
    changes = tuple(answer.changes)
    prepared = ground.committer.prepare(call.request_id, changes, undoes=tuple(answer.detail.get("undone", ())))
    case = weighed(case, changes, view)
    if case.card.name in EXEMPT:
        case = replace(case, exempt=answer.exempt, wanted=tuple(map(_wanted, changes)))
    judge(on_result(case), case)
    call.detail.update(answer.detail, modes=prepared.modes)
    listed = [change.as_record() for change in changes]
    if len(listed) > 1 or answer.detail:
        record.seal(outcome_body(call, None, listed), 1, record.GENESIS)  # one change alone always fits into a record
    if call.arguments.get("dry_run") is True:
        return conclude(call, house, answer=answer) if call.take() else None
    if not call.take():
        return None
    try:
        _seal(call, case, ground)
        ground.log.append(lambda: _intent(call, case, ground, listed), durable=True)
        ground.committer.apply(prepared)
    except BaseException as raised:  # noqa: BLE001  the intent is on disk: whatever happens now has an outcome
        return conclude(call, house, error=as_ours(raised, "FILE_WRITE_FAILED"))
    outcome = conclude(
        call,
        house,
        answer=answer,
        changes=listed,
        take_back=lambda: [left["path"] for left in ground.committer.take_back(prepared)],
    )
    ground.committer.settle(call.request_id)
    return outcome


def _intent(call: Call, case: Case, ground: Ground, changes: Sequence[Mapping[str, Any]]) -> record.Body:
    """The intent, composed under the log's lock: all that may have changed since the rules is judged again.

    The plan too: its bytes are read again, and whether it has expired is seen from a fresh clock.
    """
    case = as_of_now(case, ground)
    judge(at_intent(case), case)
    if case.card.name in EXEMPT:
        _require_unchanged(call, ground, changes)
    session = call.session
    detail: dict[str, Any] = {"live": ground.committer.live_id}
    if "undone" in call.detail:
        detail["undone"] = call.detail["undone"]
    if case.exempt:
        detail["unlimited"] = True
    return record.compose(
        "intent",
        timestamp=now(),
        request_id=call.request_id,
        session_id=session.session_id if session else None,
        role=session.role if session else None,
        workspace_root=ground.root,
        tool_name=call.ask.tool_name,
        phase_id=told.phase_id(call.arguments),
        plan_id=case.plan_id,
        plan_hash=told.plan_hash(call.arguments),
        arguments=call.told,
        changes=list(changes),
        detail=detail,
        client=session.client if session else None,
    )


def _require_unchanged(call: Call, ground: Ground, changes: Sequence[Mapping[str, Any]]) -> None:
    """Refuse an undo where its files, or the calls it puts back, were changed or undone since it was worked out.

    A file's content does not tell: it may have been undone and made again.
    """
    named = set(call.detail.get("undone", ()))
    paths = {path for change in changes for path in (change["path"], change["source"]) if path}
    for one in records(ground.root, since_seq=call.seen_seq + 1):
        undone = (one["detail"] or {}).get("undone", ())
        if happened(one) and (not named.isdisjoint(undone) or not paths.isdisjoint(touched(one))):
            raise errors.SystemError.tool_failure(
                "HASH_MISMATCH",
                human_message="These changes were undone or changed meanwhile. Look at the files and decide anew.",
                cause={"seq": one["seq"]},
            )


def _seal(call: Call, case: Case, ground: Ground) -> None:
    """The first change under an approval records the bytes that were approved, once."""
    plan = case.reading.plan if case.reading else None
    if plan is None or case.plan_id in case.facts.seals:
        return
    session = call.session
    approved_bytes.keep(ground, plan)
    members = {
        "timestamp": now(),
        "request_id": call.request_id,
        "session_id": session.session_id if session else None,
        "role": session.role if session else None,
        "workspace_root": ground.root,
        "plan_id": plan.plan_id,
        "plan_hash": plan.plan_hash,
        "detail": {"how": "edited", "approved_by": plan.approved_by, "files": ground.files_in_scope(plan)},
    }

    def make() -> record.Body:
        if plan.plan_id in case.facts.seals:
            raise _Sealed
        return record.compose("plan", **members)

    with suppress(_Sealed):  # whether by the same bytes is judged at the intent
        ground.log.append(make, durable=False)


class _Sealed(Exception):  # noqa: N818  not a failure: another process was first
    """Another process sealed the plan meanwhile."""


def _ground(call: Call) -> Ground:
    if call.ground is None:
        raise errors.SystemError.invariant_violation("GROUND_EXPECTED")
    return call.ground
