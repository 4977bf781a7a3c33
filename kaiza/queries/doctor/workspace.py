"""Checks of the workspace: settings, git, plans, journals, the audit log and its checkpoint, unfinished changes."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from kaiza.clock import current_timestamp
from kaiza.domain import errors
from kaiza.domain.audit.projection import AuditState
from kaiza.domain.audit.record import Verdict, is_complete
from kaiza.domain.audit.record_folding import apply_record
from kaiza.domain.caps import Caps
from kaiza.domain.paths.protected_names import LOG_PATH
from kaiza.domain.plans.plan import INVALID
from kaiza.queries.doctor.check import RETRY, DoctorCheck, Watch, ok, problem, unknown, warning
from kaiza.queries.plan_review import count_standings, describe_unlisted, list_plans
from kaiza.queries.trust_summary import describe_trust, list_problems, summarize_trust
from kaiza.render import log_verdict
from kaiza.render.settings import render_setting
from kaiza.render.terminal import escape, format_count
from kaiza.store import git, human_decisions
from kaiza.store.audit.damage_mark import DamageMark, is_damage
from kaiza.store.audit.reader import read_records
from kaiza.store.audit.verification import verify
from kaiza.store.audit.verification.verify import NO_RECORDS, verdict_output
from kaiza.store.changes.journal import JournalStore
from kaiza.store.config import roots
from kaiza.store.config.settings_layers import DEFAULT
from kaiza.store.disk import state_dir
from kaiza.store.disk.kaiza_dir import KaizaDir
from kaiza.store.disk.state_key import StateKey
from kaiza.store.documents.nested_workspaces import find_workspaces
from kaiza.store.files.confined_root import ConfinedRoot
from kaiza.store.trust.adopted_settings import read_layers
from kaiza.store.trust.binding import Standing, read_binding
from kaiza.store.workspace import Workspace

_EARLIEST_YEAR = 2024
_CLOCK_TOLERANCE = timedelta(minutes=1)
_MAX_NAMED = 5


def check_initialized(root: Path) -> Iterator[DoctorCheck]:
    """Check that `kaiza init` has set up the workspace."""
    if roots.is_initialized(str(root)):
        yield ok("workspace", "plans/ and audit/ exist")
    else:
        yield problem("workspace", "plans/ or audit/ is missing", "Run `kaiza init` there.")


def check_binding(root: Path) -> Iterator[DoctorCheck]:
    """Check that the workspace belongs to this machine."""
    standing = read_binding(str(root), state_dir.path_of(str(root))).standing
    if standing is Standing.FOREIGN:
        message = "this workspace came from elsewhere, so changes are refused"
        yield warning("binding", message, "Look at what came with it: `kaiza adopt --show`. Then `kaiza adopt`.")
    else:
        new = "nothing is recorded yet; the first call binds the workspace to this machine"
        yield ok("binding", new if standing is Standing.NEW else "this workspace belongs to this machine")


def check_settings(root: Path) -> Iterator[DoctorCheck]:
    """Check that the settings are valid; a warning names those of kaiza.toml that are not adopted."""
    try:
        with ConfinedRoot(str(root)) as files:
            layers = read_layers(str(root), files.fd, read_binding(str(root), state_dir.path_of(str(root))))
    except errors.SystemError as error:
        yield problem("settings", error.human_message, "`kaiza serve` does not start until this is corrected.")
        return
    changed = [
        render_setting(setting.key, setting.value, setting.places)
        for setting in layers.list_in_force()
        if setting.places != [DEFAULT]
    ]
    yield ok("settings", "; ".join(changed) or "the defaults apply")
    loosening = layers.list_loosening()
    if loosening:
        keys = ", ".join(setting.key for setting in loosening)
        yield warning("settings", f"kaiza.toml loosens what is not adopted: {keys}", "Run `kaiza adopt` to adopt it.")


def check_git(root: Path) -> Iterator[DoctorCheck]:
    """Check that git ignores the log: a checkout would replace it with an older one."""
    result = git.run(str(root), "check-ignore", "-q", LOG_PATH)
    if result is None:
        return
    if result.returncode == 1:
        todo = f"Run `kaiza init`, which writes audit/.gitignore. If the log is tracked: `git rm --cached {LOG_PATH}`"
        yield warning("git", "git does not ignore the audit log, and switching branches would rewrite it", todo)
    elif result.returncode == 0:
        yield ok("git", "git ignores the audit log")


def check_plans(root: Path) -> Iterator[DoctorCheck]:
    """Say how many plans count, and why; a warning names those with errors."""
    workspace = Workspace(str(root), Caps())
    try:
        human_decisions.catch_up(workspace)
        listed, unlisted = list_plans(workspace), describe_unlisted(workspace)
    finally:
        workspace.close(current_timestamp())
    invalid = [plan["plan_id"] for plan in listed if plan["status"] == INVALID]
    if invalid:
        named = ", ".join(invalid[:_MAX_NAMED]) + (" …" if len(invalid) > _MAX_NAMED else "")
        why = next(plan["why_not"] for plan in listed if plan["plan_id"] == invalid[0])
        todo = f"{invalid[0]}: {why}. `kaiza plan lint {invalid[0]}` lists the errors."
        yield warning("plans", f"with errors, so they allow nothing: {named}", todo)
    else:
        yield ok("plans", "; ".join(filter(None, (count_standings(listed), unlisted))))


def check_trust(root: Path) -> Iterator[DoctorCheck]:
    """Name what approves plans besides a person at the terminal; a warning if something of it does not count now."""
    summary = summarize_trust(str(root))
    problems = list_problems(summary)
    if problems:
        yield warning("trust", f"does not count now: {escape(problems[0])}", "`kaiza trust` shows what is trusted.")
    else:
        yield ok("trust", describe_trust(summary))


def check_nested(root: Path, watch: Watch) -> Iterator[DoctorCheck]:
    """A warning that names the workspaces below this one."""
    with ConfinedRoot(str(root)) as files, watch("looking for workspaces") as progress:
        found, is_whole = find_workspaces(files, progress)
    named = ", ".join(escape(str(directory)) for directory in found[:_MAX_NAMED])
    if found:
        message = f"below this one: {named}" + (" …" if len(found) > _MAX_NAMED else "")
        todo = "Their plans, log and settings do not count here. Delete those that you did not make."
        yield warning("nested", message, todo)
    elif is_whole:
        yield ok("nested", "no workspace below this one")
    else:
        yield unknown("nested", "there are too many files to look for workspaces below this one", RETRY)


def check_journals(root: Path) -> Iterator[DoctorCheck]:
    """Warnings about journals of other state directories, and about those set aside; no result if there are none."""
    yield from _check_foreign_journals(root)
    directory = root / ".kaiza/set-aside"
    if directory.is_symlink() or not directory.is_dir():
        return
    count = len(list(directory.iterdir()))
    if count:
        yield warning(
            "journals",
            f"{count} set aside under .kaiza/set-aside: journals not written by Kaiza here, or files that checks made",
            "Read them and find out where they came from, then delete them. Nothing in them was executed.",
        )


def _check_foreign_journals(root: Path) -> Iterator[DoctorCheck]:
    state = state_dir.path_of(str(root))
    if read_binding(str(root), state).standing is not Standing.BOUND:
        return
    with ConfinedRoot(str(root)) as files, closing(KaizaDir(files.fd)) as kaiza_dir:
        found = JournalStore(kaiza_dir, StateKey(state)).list_foreign()
    if found:
        oldest = datetime.fromtimestamp(min(journal.written_at for journal in found), UTC)
        named = ", ".join(journal.name for journal in found[:_MAX_NAMED]) + (" …" if len(found) > _MAX_NAMED else "")
        interrupted = format_count(len(found), "change")
        yield warning(
            "foreign-journals",
            f"{interrupted} of another state directory, the oldest of {oldest:%Y-%m-%d %H:%M} UTC: {named}",
            "In progress there, or interrupted: its next session recovers them. If it is gone: `kaiza doctor --fix`.",
        )


def check_log(root: Path, watch: Watch) -> Iterator[DoctorCheck]:
    """Verify the whole log; if it is sound, check its checkpoint, unfinished changes and the clock."""
    state = state_dir.path_of(str(root))
    if read_binding(str(root), state).is_new:
        # What the state directory knows is about an earlier workspace at this path.
        yield ok("record", log_verdict.describe(verdict_output(NO_RECORDS))[0])
        return
    try:
        with watch("verifying") as progress:
            verdict = verify.compute_verdict(str(root), state, progress)
    except errors.SystemError as error:
        yield unknown("record", error.human_message, RETRY)
        return
    yield from _check_verdict(verdict, DamageMark(state).read())
    if not is_damage(verdict.verdict):
        yield _check_checkpoint(verdict)
        yield from _check_projection(root, watch)
        yield _check_clock(root)


def _check_verdict(verdict: Verdict, marked: Verdict | None) -> Iterator[DoctorCheck]:
    message, *rest = log_verdict.describe(verdict_output(verdict))
    if is_damage(verdict.verdict):
        yield problem("record", message, rest[-1])
    elif marked is not None:
        message = f"the log was {marked.verdict} when last verified, and changes are refused"
        yield problem("record", message, "Run `kaiza audit verify`.")
    elif verdict.verdict == "torn_tail":
        yield warning("record", message, rest[0])
    else:
        yield ok("record", message)


def _check_checkpoint(verdict: Verdict) -> DoctorCheck:
    if verdict.anchored:
        return ok("anchor", "a checkpoint of the log is kept outside the workspace")
    if not verdict.records:
        return ok("anchor", "the log is empty, so there is no checkpoint yet")
    todo = "The next recorded change writes one; until then a log cut off at the end is not detected."
    return warning("anchor", "no checkpoint of the log is kept outside the workspace", todo)


def _check_projection(root: Path, watch: Watch) -> Iterator[DoctorCheck]:
    state = AuditState()
    with watch("reading") as progress:
        for record in read_records(str(root)):
            if is_complete(record):
                apply_record(state, record)
            progress(record.seq, 0)
    if len(state.states) > 1:
        todo = "Use one XDG_STATE_HOME for all: no state directory has the checkpoints of the others."
        yield warning("states", log_verdict.describe_states(len(state.states)), todo)
    count = len(state.intents)
    if not count:
        yield ok("open-changes", "no unfinished change")
        return
    todo = "They are in progress now, or the next call of a client recovers them."
    yield warning("open-changes", f"{format_count(count, 'change')} begun and not finished", todo)


def _check_clock(root: Path) -> DoctorCheck:
    now = datetime.now(UTC)
    last = next(read_records(str(root), reverse=True), None)
    if now.year < _EARLIEST_YEAR:
        return problem("clock", f"it says {now:%Y-%m-%d}", "Set the clock: plans expire by it, and records carry it.")
    try:
        newest = datetime.fromisoformat(last.timestamp) if last else now
        is_ahead = newest > now + _CLOCK_TOLERANCE
    except (ValueError, TypeError):
        todo = "Look at it with `kaiza audit tail -n 1`."
        return unknown("clock", "the timestamp of the last record is not valid", todo)
    if is_ahead:
        return warning(
            "clock", f"the last record is later: {newest.astimezone(UTC):%Y-%m-%d %H:%M} UTC", "Set the clock."
        )
    return ok("clock", f"{now:%Y-%m-%d %H:%M} UTC")
