"""Reports made by hand, for tests of their forms: one of everything, hostile texts, and one of any size."""

import json
import re
from dataclasses import fields, is_dataclass, replace

from kaiza.domain.review.authorship import WITHOUT_KAIZA, LineAuthor
from kaiza.domain.review.diff import DiffFold, DiffHunk, DiffLine, ReviewDiff
from kaiza.domain.review.report import (
    ApprovalInterval,
    FileCall,
    FileReview,
    LimitUse,
    LinkTarget,
    LockedSpan,
    PlanCard,
    RecordRow,
    RefusalReview,
    ReportLink,
    ReviewChip,
    ReviewCommand,
    ReviewCounts,
    ReviewFinding,
    ReviewReport,
    ReviewSelection,
    ReviewSource,
    ReviewVerdict,
    SessionCard,
    Timeline,
    TimelineEvent,
    UngovernedFile,
    UngovernedReview,
)
from kaiza.domain.review.sentence import quote, say

SESSION = "a8ef264a-77a1-4b2e-9d53-6d1f0c7d2a11"


def at(second):
    return f"2026-11-19T09:{second // 60 % 60:02d}:{second % 60:02d}.250Z"


def line(kind, old, new, text, seq=None, **more):
    author = None if kind == "context" else LineAuthor(seq, f"req-{seq}") if seq else WITHOUT_KAIZA
    return DiffLine(kind, old, new, text, author, **more)


def diff_of(*texts, seq=9):
    lines = tuple(line("added", None, number, text, seq) for number, text in enumerate(texts, 1))
    return ReviewDiff((DiffHunk(0, 0, 1, len(lines), lines),), len(lines), 0)


def call(seq, diff, **more):
    values = {"tool_name": "edit_file", "operation": "modify", "source": None, "is_undo": False, "is_undone": False}
    return FileCall(seq=seq, request_id=f"req-{seq}", at=at(seq), is_selected=True, diff=diff, **{**values, **more})


def file_of(path, diff, *calls, operation="modify", state="as_left", words="as Kaiza left it", **more):
    values = {"source": None, "before_hash": "a" * 64, "now_hash": "b" * 64, "mode_before": 0o644, "mode_now": 0o644}
    return FileReview(
        path=path,
        operation=operation,
        state=state,
        state_words=words,
        diff=diff,
        calls=calls,
        lines_added=diff.lines_added or 0,
        lines_removed=diff.lines_removed or 0,
        **{**values, **more},
    )


def record(seq, group="read", tool="read_file", what="src/tokens.py", outcome="ok", **more):
    members = {"seq": seq, "timestamp": at(seq), "tool_name": tool, "outcome": outcome, **more}
    text = json.dumps(members, separators=(",", ":"), ensure_ascii=False)
    return RecordRow(seq, at(seq), "executor", "call", tool, what, outcome, group, seq % 7, text)


def _edited():
    hunk = DiffHunk(
        1,
        4,
        1,
        4,
        (
            line("context", 1, 1, '"""Session tokens."""'),
            line("removed", 2, None, "LIFETIME = 60 * 60 * 24 * 30  # seconds", 9, words=((24, 28),)),
            line("added", None, 2, "LIFETIME = 60 * 60 * 24  # seconds", 9, words=((23, 24),)),
            line("context", 3, 3, "def issue(user: str) -> bytes:"),
            line("context", 4, 4, "    return secrets.token_bytes(24)", lacks_newline=True),
        ),
    )
    return ReviewDiff((hunk,), 1, 1, unchanged_after=12)


def _outside():
    hunk = DiffHunk(
        8,
        1,
        8,
        3,
        (
            line("context", 8, 8, "The token is deleted."),
            line("added", None, 9, ""),
            line("added", None, 10, "<!-- </script><script>alert(1)</script> -->"),
        ),
        unchanged_before=7,
    )
    return ReviewDiff((hunk,), 2, 0)


def _files():
    edit = _edited()
    large = ReviewDiff(
        diff_of(*(f"row {number}" for number in range(900)), seq=11).hunks,
        900,
        0,
        fold=DiffFold("large", "900 changed lines."),
    )
    binary = ReviewDiff((), None, None, fold=DiffFold("binary", "This is a binary file; its content is not shown."))
    moved = {"operation": "move", "source": "docs/old.md"}
    return (
        file_of("src/tokens.py", edit, call(9, edit)),
        file_of(
            "docs/auth.md",
            _outside(),
            call(10, diff_of("days")),
            state="changed_since",
            words="changed since, without Kaiza",
        ),
        file_of("src/rows.txt", large, call(11, large), operation="create", before_hash=None),
        file_of("src/logo.png", binary, call(12, binary), operation="create", mode_now=0o755),
        file_of(
            "src/store.py",
            ReviewDiff(),
            call(13, diff_of("x = 1", seq=13), is_undone=True),
            call(14, diff_of("x = 2", seq=14), is_undo=True, tool_name="undo_changes"),
            operation="none",
            state="put_back",
            words="put back: no change left",
        ),
        file_of("docs/new.md", ReviewDiff(), call(15, ReviewDiff(), tool_name="move_file"), **moved),
    )


def _plan():
    return PlanCard(
        plan_id="PLAN-0007-rotate-tokens",
        title="Rotate session tokens every day",
        approver="Ada Byron",
        how="edited",
        approved_at=None,
        interval=ApprovalInterval(5, at(5), 8, at(8)),
        sealed_seq=8,
        plan_hash="b94c15b456e78f0a2a39fa4be920d412511dafac6644d5368d86ee70c216ccdc",
        scope={"May modify": ("src/*.py", "docs/auth.md"), "Never": ("src/keys/**",)},
        limits=(LimitUse("files", "Files", 6, 8), LimitUse("lines", "Lines", 116, 120)),
    )


def _events():
    yield from (TimelineEvent("read", "planner", at(second), "read_file", second) for second in (2, 3, 4))
    yield TimelineEvent("approval", "person", at(5), "approved by an edited word", None, at(8))
    for second in range(9, 16):
        yield TimelineEvent("change", "executor", at(second), "edit_file", second, path="src/tokens.py")
    yield TimelineEvent("undone_change", "executor", at(13), "edit_file", 13)
    yield TimelineEvent("locking_refusal", "executor", at(17), "write_file", 17, error_code="PLAN_SCOPE_VIOLATION")
    yield TimelineEvent("refusal", "executor", at(18), "edit_file", 18, error_code="HASH_MISMATCH")
    yield TimelineEvent("outside", "outside", at(8), "3 files", None, at(20))


def _refusal(seq, tone, words, code, **more):
    values = {"is_ordinary": tone == "note", "is_locking": False, "paths": ("pyproject.toml",)}
    return RefusalReview(
        seq=seq,
        request_id=f"req-{seq}",
        at=at(seq),
        actor="executor",
        tone=tone,
        words=words,
        tool_name="write_file",
        rule="The plan does not name this file.",
        error_code=code,
        **{**values, **more},
    )


def sample_report(**changes):
    """A session with each kind of thing in it; `changes` replace members of the report."""
    findings = (
        ReviewFinding(
            "ungoverned_governed",
            "bad",
            "1 file changed without Kaiza after Kaiza wrote it",
            say(quote("docs/auth.md"), ", 2 lines."),
            LinkTarget("files", "Show the file", path="docs/auth.md"),
        ),
        ReviewFinding(
            "locking_refusal",
            "bad",
            "One attempt outside the plan",
            say("It tried to change ", quote("pyproject.toml"), "."),
            LinkTarget("records", "Record #17", seq=17),
        ),
        ReviewFinding(
            "edited_approval", "note", "The approval is an edited word", say("No command."), LinkTarget("plan", "Plan")
        ),
    )
    chips = (
        ReviewChip("record", "ok", "Log intact, anchored"),
        ReviewChip("plan", "ok", "All 7 changes within the plan"),
        ReviewChip("ungoverned", "warn", "2 files changed without Kaiza"),
        ReviewChip("locks", "bad", "Locked once"),
    )
    counts = ReviewCounts(
        calls=20, changes=7, refusals=2, lines_added=903, lines_removed=1, files=6, locks=1, ungoverned=2, records=20
    )
    report = {
        "selection": ReviewSelection("session", SESSION),
        "source": ReviewSource("/home/ann/shop", "shop", "0.2.0", at(30), 20, "f" * 64, "intact", is_anchored=True),
        "sessions": (SessionCard(SESSION, "WINDSURF", "executor", "claude-code 2.4.1", None, at(1), at(20)),),
        "verdict": ReviewVerdict(
            "warn", "Look at three things before you accept this.", say("Two files changed."), chips, counts
        ),
        "findings": findings,
        "plans": (_plan(),),
        "timeline": Timeline(
            tuple(_events()),
            (LockedSpan("executor", "WINDSURF", at(17), 17, at(19), 19, "report"),),
            at(1),
            at(20),
        ),
        "files": _files(),
        "ungoverned": UngovernedReview(
            "whole",
            0,
            at(1),
            2,
            (
                UngovernedFile(
                    "docs/auth.md", "modified", None, True, True, "After #10, on top of what Kaiza wrote.", _outside()
                ),
                UngovernedFile(
                    "config/limits.toml",
                    "renamed",
                    "config/old.toml",
                    False,
                    False,
                    "No call touched it.",
                    ReviewDiff(),
                ),
            ),
        ),
        "refusals": (
            _refusal(
                17,
                "bad",
                "Outside the plan",
                "PLAN_SCOPE_VIOLATION",
                is_locking=True,
                report=ReportLink(19, "docs/reports/a.md", at(19)),
            ),
            _refusal(18, "note", "Stale hash: an ordinary mistake", "HASH_MISMATCH"),
        ),
        "records": tuple(
            record(seq, *(("refusal", "write_file", "pyproject.toml", "PLAN_SCOPE_VIOLATION") if seq == 17 else ()))
            for seq in range(1, 21)
        ),
        "commands": (
            ReviewCommand("kaiza undo --session a8ef264a --dry-run", "Show what an undo would restore."),
            ReviewCommand("kaiza audit verify --head 20:ffffffff", "Verify the log against this review."),
        ),
    }
    return ReviewReport(**{**report, **changes})


LONG = "packages-server-src-handlers/" + "x" * 271
_FIXED = re.compile(r"\d{4}-\d\d-\d\dT|[0-9a-f]{64}$")


def stretched(value):
    """The report with 300 characters at the end of each text in it that an agent, a person or a file can choose."""
    if isinstance(value, tuple):
        return tuple(map(stretched, value))
    if isinstance(value, dict):
        return {name: stretched(item) for name, item in value.items()}
    if not is_dataclass(value):
        return value
    texts = [field.name for field in fields(value) if field.type in {"str", "str | None", str, str | None}]
    long = {name: f"{getattr(value, name)}{LONG}" for name in texts if _is_free(getattr(value, name))}
    others = {field.name: stretched(getattr(value, field.name)) for field in fields(value) if field.name not in long}
    return replace(value, **others, **long)


def _is_free(text):
    return isinstance(text, str) and _FIXED.match(text) is None
