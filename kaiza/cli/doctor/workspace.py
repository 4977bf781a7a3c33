"""What `kaiza doctor` asks of the workspace: settings, plans, the record, its anchor, changes that were left open."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from kaiza.cli.console import audit_reader, output
from kaiza.cli.doctor.check import DoctorCheck, ok, problem, unknown, warning
from kaiza.domain import errors
from kaiza.domain.audit.projection import AuditState
from kaiza.domain.audit.record import FIELDS, Verdict
from kaiza.domain.audit.record_folding import apply_record
from kaiza.domain.finding import has_error
from kaiza.render import log_verdict
from kaiza.store import git
from kaiza.store import workspace as ground
from kaiza.store.audit.damage_mark import DamageMark, is_damage
from kaiza.store.audit.verification import verify
from kaiza.store.config import roots
from kaiza.store.disk import state_dir
from kaiza.store.documents.plan_files import PlanFiles
from kaiza.store.files.confined_root import ConfinedRoot

_ALL_FIELDS = frozenset(FIELDS)
_EARLIEST_YEAR = 2024
_CLOCK_TOLERANCE = timedelta(minutes=1)


def check_initialized(root: Path) -> Iterator[DoctorCheck]:
    """Whether `kaiza init` has been here."""
    if roots.is_initialized(str(root)):
        yield ok("workspace", "plans/ and audit/ are there")
    else:
        yield problem("workspace", "plans/ or audit/ is missing", "Run kaiza init there.")


def check_settings(root: Path) -> Iterator[DoctorCheck]:
    """Whether kaiza.toml is understood."""
    try:
        with ConfinedRoot(str(root)) as workspace:
            ground.read_settings(workspace)
    except errors.SystemError as error:
        yield problem("settings", error.human_message, "kaiza serve does not start until it is mended.")
    else:
        yield ok("settings", "kaiza.toml is sound" if (root / "kaiza.toml").exists() else "no kaiza.toml: the defaults")


def check_git(root: Path) -> Iterator[DoctorCheck]:
    """Whether the record is kept out of git, which would rewrite it."""
    told = git.run(str(root), "check-ignore", "-q", "audit/audit-log.jsonl")
    if told is None:
        return
    if told.returncode == 1:
        todo = "Run kaiza init, which writes audit/.gitignore; then git rm --cached audit/audit-log.jsonl if it is in."
        yield warning("git", "git does not ignore the record, and switching branches would rewrite it", todo)
    elif told.returncode == 0:
        yield ok("git", "git leaves the record alone")


def check_plans(root: Path) -> Iterator[DoctorCheck]:
    """How many there are, and which count for nothing."""
    with ConfinedRoot(str(root)) as workspace:
        read = [(one.plan_id, one.parsed) for one in PlanFiles(workspace).read_all()]
    faulty = [plan_id for plan_id, reading in read if has_error(reading.findings)]
    states = Counter(reading.plan.status.lower() for _, reading in read if reading.plan)
    told = ", ".join(f"{count} {status}" for status, count in sorted(states.items())) or "none yet"
    if faulty:
        named = ", ".join(faulty[:5]) + (" …" if len(faulty) > 5 else "")  # noqa: PLR2004  enough to begin with
        yield warning(
            "plans", f"faulty, and so without effect: {named}", f"kaiza plan lint {faulty[0]} says what to mend."
        )
    else:
        yield ok("plans", told)


def check_journals(root: Path) -> Iterator[DoctorCheck]:
    """What was found among the journals of changes and is none of ours; nothing is said where there is none."""
    place = root / ".kaiza/set-aside"
    if place.is_symlink() or not place.is_dir():
        return
    count = len(list(place.iterdir()))
    if count:
        yield warning(
            "journals",
            f"{count} set aside under .kaiza/set-aside, which Kaiza did not write here",
            "Look at them and at where they may have come from, then delete them. Nothing in them was carried out.",
        )


def check_log(root: Path) -> Iterator[DoctorCheck]:
    """The verdict on the record, whether anything anchors it, and what was left open."""
    place = state_dir.path_of(str(root))
    try:
        with output.Progress("verifying") as progress:
            found = verify.compute_verdict(str(root), place, progress)
    except errors.SystemError as error:
        yield unknown("record", error.human_message, "Put that right, then run kaiza doctor again.")
        return
    yield from _check_verdict(found, DamageMark(place).read())
    if not is_damage(found.verdict):
        yield _check_checkpoint(found)
        yield _check_open_changes(root)
        yield _check_clock(root)


def _check_verdict(found: Verdict, held: Verdict | None) -> Iterator[DoctorCheck]:
    message, *rest = log_verdict.describe(ground.verdict_output(found))
    if is_damage(found.verdict):
        yield problem("record", message, rest[-1])
    elif held is not None:
        yield problem(
            "record", f"it was found {held.verdict} before, and changes are refused", "Run kaiza audit verify."
        )
    elif found.verdict == "torn_tail":
        yield warning("record", message, rest[0])
    else:
        yield ok("record", message)


def _check_checkpoint(found: Verdict) -> DoctorCheck:
    if found.anchored:
        return ok("anchor", "its head is also kept outside the workspace")
    if not found.records:
        return ok("anchor", "there is nothing to anchor yet")
    todo = "The next recorded change makes one; until then nothing shows whether the end was cut off."
    return warning("anchor", "no head is kept outside the workspace", todo)


def _check_open_changes(root: Path) -> DoctorCheck:
    facts = AuditState()
    with output.Progress("reading") as progress:
        for one in audit_reader.read_forward(str(root)):
            if one.keys() >= _ALL_FIELDS:
                apply_record(facts, one)
            progress(one["seq"], 0)
    count = len(facts.intents)
    if not count:
        return ok("open-changes", "no change was left open")
    todo = "The next begin_session of a client says what became of them; or they are being made right now."
    return warning("open-changes", f"{count} begun and not finished", todo)


def _check_clock(root: Path) -> DoctorCheck:
    now = datetime.now(UTC)
    last = audit_reader.last_record(str(root))
    if now.year < _EARLIEST_YEAR:
        return problem("clock", f"it says {now:%Y-%m-%d}", "Set the clock: plans expire by it, and records carry it.")
    try:
        newest = datetime.fromisoformat(last["timestamp"]) if last else now
    except (ValueError, TypeError):
        return unknown("clock", "the last record has no time that could be read", "Look at it: kaiza audit show.")
    if newest > now + _CLOCK_TOLERANCE:
        return warning("clock", f"the last record is from later: {last['timestamp']}", "Set the clock.")  # type: ignore[index]
    return ok("clock", f"{now:%Y-%m-%d %H:%M} UTC")
