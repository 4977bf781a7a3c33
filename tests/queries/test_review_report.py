"""The report of a review, from real sessions: numbers, lines and their authors, findings in their order."""

import difflib
import json
import os
from pathlib import Path

import pytest
from agents import sha
from review_scenes import AUTH, PLAN, TOKENS, Scene, play_story
from scenes import records

from kaiza.domain.review.report import ReviewSelection
from kaiza.queries import review_report
from kaiza.store.changes.blob_store import BlobStore


@pytest.fixture
def scene(tmp_path):
    scene = Scene(tmp_path / "shop")
    try:
        yield scene
    finally:
        scene.close()


@pytest.fixture
def ready(scene):
    """A session with an approved plan and one file."""
    scene.write("src/a.py", "one\ntwo\nthree\n")
    scene.begin()
    scene.approve()
    return scene


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        scene = play_story(tmp_path_factory.mktemp("story") / "shop")
        scene.report = scene.review()
        yield scene
        scene.close()


def file_of(report, path):
    return next(file for file in report.files if file.path == path)


def authors(diff):
    """Kind, text and author of each changed line: the call's number, or what is known instead."""
    return [
        (line.kind, line.text, line.author.seq or ("outside" if line.author.is_known else "unknown"))
        for hunk in diff.hunks
        for line in hunk.lines
        if line.author is not None
    ]


def seq_of(scene, output):
    """Number of the outcome of a call."""
    return next(
        record["seq"]
        for record in records(scene.root)
        if record["request_id"] == output["request_id"] and record["kind"] == "call"
    )


def test_each_number_is_what_the_log_alone_says(story):
    log = [record for record in records(story.root) if record["session_id"] == story.session_id]
    calls = [record for record in log if record["kind"] == "call"]
    made = [change for record in calls if record["outcome"] == "ok" for change in record["changes"]]
    undos = [change for record in calls if record["tool_name"] == "undo_changes" for change in record["changes"]]
    counts = story.report.verdict.counts

    assert (counts.calls, counts.records) == (len(calls), len(log))
    assert counts.refusals == sum(record["outcome"] == "error" for record in calls)
    assert (counts.changes, counts.undos) == (len(made) - len(undos), len(undos))
    assert counts.files == len({change["path"] for change in made})
    assert counts.locks == sum(record["error_code"] == "PLAN_SCOPE_VIOLATION" for record in calls)
    assert [row.seq for row in story.report.records] == [record["seq"] for record in log]
    assert [json.loads(row.line) for row in story.report.records] == log


def test_the_limits_are_what_the_intents_of_the_log_used(story):
    changes = [change for record in records(story.root) if record["kind"] == "intent" for change in record["changes"]]
    changes = [change for change in changes if (change["lines_added"], change["lines_removed"]) != (0, 0)]
    used = {limit.name: limit.used for limit in story.report.plans[0].limits}

    assert used["lines"] == sum(change["lines_added"] + change["lines_removed"] for change in changes)
    assert used["files"] == len({change["path"] for change in changes})
    assert (used["operations"], used["refusals"]) == (len(changes), 1)


def test_the_net_lines_are_those_that_the_calls_wrote(story):
    before = {"src/auth/tokens.py": TOKENS, "docs/auth.md": AUTH, "src/auth/rotation.py": b""}
    added = removed = 0
    for path, old in before.items():
        new = (story.root / path).read_bytes()
        new = new.removesuffix(b"\n<!-- </script><script>alert(1)</script> -->\n")
        for line in difflib.ndiff(old.decode().splitlines(), new.decode().splitlines()):
            added, removed = added + line.startswith("+"), removed + line.startswith("-")

    assert (story.report.verdict.counts.lines_added, story.report.verdict.counts.lines_removed) == (added, removed)


def test_lines_that_something_else_wrote_are_marked_in_the_same_diff(story):
    file, seq = file_of(story.report, "docs/auth.md"), seq_of(story, story.outcomes.docs)

    assert (file.state, file.operation, file.lines_added, file.lines_removed) == ("changed_since", "modify", 1, 1)
    assert authors(file.diff) == [
        ("removed", "A session token lives for 30 days.", seq),
        ("added", "A session token lives for a day.", seq),
        ("added", "", "outside"),
        ("added", "<!-- </script><script>alert(1)</script> -->", "outside"),
    ]
    assert authors(file.calls[0].diff) == [
        ("removed", "A session token lives for 30 days.", seq),
        ("added", "A session token lives for a day.", seq),
    ]


def test_a_file_that_was_put_back_says_so(story):
    file = file_of(story.report, "src/auth/store.py")

    assert (file.state, file.operation, file.diff.hunks) == ("put_back", "none", ())
    assert [(call.tool_name, call.is_undone, call.is_undo) for call in file.calls] == [
        ("write_file", True, False),
        ("undo_changes", False, True),
    ]


def test_findings_come_worst_first_and_in_the_order_of_their_kinds(story):
    assert [finding.kind for finding in story.report.findings] == [
        "ungoverned_governed",
        "locking_refusal",
        "edited_approval",
    ]
    assert story.report.findings[1].link.seq == next(
        record["seq"] for record in records(story.root) if record["error_code"] == "PLAN_SCOPE_VIOLATION"
    )
    assert story.report.verdict.sentence == "Look at two things before you accept this, and at a note."


def test_refusals_come_gravest_first_in_words_with_the_report_that_followed(story):
    rows = story.report.refusals
    report = next(record for record in records(story.root) if record["tool_name"] == "write_report")

    assert [row.error_code for row in rows] == [
        "PLAN_SCOPE_VIOLATION",
        "PATH_TRAVERSAL_BLOCKED",
        "INVALID_INPUT_VALUE",
        "HASH_MISMATCH",
    ]
    assert [row.is_ordinary for row in rows] == [False, False, True, True]
    assert (rows[0].is_locking, rows[0].report.seq) == (True, report["seq"])
    assert (story.root / rows[0].report.path).is_file()
    assert [row.report for row in rows[1:]] == [None] * 3


def test_the_lock_lasts_from_the_refusal_to_the_report(story):
    (lock,) = story.report.timeline.locks

    assert (lock.actor, lock.release) == ("executor", "report")
    assert lock.locked_by == story.report.refusals[0].seq
    assert lock.released_by == story.report.refusals[0].report.seq


def test_a_sessions_page_says_which_session_locked_its_role_and_that_of_another_role_does_not(scene):
    first = scene.begin()
    scene.approve()
    planner = scene.begin("ANTIGRAVITY")
    earlier = scene.begin()
    other = scene.begin()
    scene.session_id = first
    scene.call("write_file", path="elsewhere", content="x")
    scene.session_id = other
    refused = scene.call("write_file", path="src/a.py", content="x")
    locked = scene.review(chosen=other)
    scene.change("write_report", title="Wrong path", content="It was mine to see.")
    released = scene.review(chosen=other)
    later = scene.begin()
    scene.overwrite("src/a.py", "x")

    assert refused.envelope["error_code"] == "SESSION_LOCKED"
    assert [chip.text for chip in locked.verdict.chips if chip.subject == "locks"] == [
        f"Locked once, by session {first[:8]}, still locked"
    ]
    assert (released.timeline.locks[0].other_session, released.timeline.locks[0].release) == (first, "report")
    assert [span.other_session for span in scene.review(chosen=first).timeline.locks] == [None]
    assert [scene.review(chosen=one).timeline.locks for one in (planner, earlier, later)] == [()] * 3


def test_an_edited_approval_has_an_interval_and_no_moment(scene):
    scene.write("src/a.py", "one\n")
    scene.begin()
    plan = scene.root / "plans/PLAN-0007-rotate-tokens.md"
    text = PLAN.format(plan_id=plan.stem, title="Rotate session tokens every day", more="")
    plan.write_text(text.replace("APPROVED", "DRAFT"))
    scene.call("write_file", path="src/a.py", content="x\n", plan_hash=sha(plan.read_bytes()))
    plan.write_text(text)
    scene.plan_hash = sha(text.encode())
    scene.overwrite("src/a.py", "two\n")
    card = scene.review().plans[0]
    refused, sealed = (
        record["seq"] for record in records(scene.root) if record["error_code"] or record["kind"] == "plan"
    )

    assert (card.how, card.approver, card.approved_at) == ("edited", "Ada Byron", None)
    assert (card.interval.after_seq, card.interval.before_seq, card.sealed_seq) == (refused, sealed, sealed)


def test_the_events_are_by_actor(story):
    events = {event.seq: event for event in story.report.timeline.events if event.kind != "approval"}
    approval = next(event for event in story.report.timeline.events if event.kind == "approval")
    outside = [event for event in story.report.timeline.events if event.actor == "outside"]

    assert (approval.actor, approval.until is not None) == ("person", True)
    assert events[seq_of(story, story.outcomes.store)].kind == "undone_change"
    assert events[seq_of(story, story.outcomes.undo)].kind == "undo"
    assert [event.label for event in outside] == ["1 file"]
    assert {event.actor for event in events.values()} == {"executor", "outside"}


def test_the_lines_of_several_calls_name_each_its_own(ready):
    first = ready.overwrite("src/a.py", "one\nTWO\nthree\n")
    second = ready.overwrite("src/a.py", "one\nTWO\nthree\nfour\n")
    file = file_of(ready.review(), "src/a.py")

    assert file.state == "as_left"
    assert authors(file.diff) == [
        ("removed", "two", seq_of(ready, first)),
        ("added", "TWO", seq_of(ready, first)),
        ("added", "four", seq_of(ready, second)),
    ]


def test_a_change_by_something_else_between_two_calls_is_marked(ready):
    first = ready.overwrite("src/a.py", "one\nTWO\nthree\n")
    ready.write("src/a.py", "one\nTWO\nthree\nforeign\n")
    second = ready.overwrite("src/a.py", "ONE\nTWO\nthree\nforeign\n")
    report = ready.review()

    assert authors(file_of(report, "src/a.py").diff) == [
        ("removed", "one", seq_of(ready, second)),
        ("removed", "two", seq_of(ready, first)),
        ("added", "ONE", seq_of(ready, second)),
        ("added", "TWO", seq_of(ready, first)),
        ("added", "foreign", "outside"),
    ]
    assert [(file.path, file.is_over_governed) for file in report.ungoverned.files] == [("src/a.py", True)]
    assert authors(report.ungoverned.files[0].diff) == [("added", "foreign", "outside")]


def test_a_later_session_is_not_taken_for_something_else(ready):
    first_session = ready.session_id
    ready.overwrite("src/a.py", "one\nTWO\nthree\n")
    ready.begin()
    later = ready.overwrite("src/a.py", "one\nTWO\nthree\nfour\n")
    report = ready.review("session", first_session)
    file = file_of(report, "src/a.py")

    assert (file.state, file.lines_added) == ("changed_by_later_call", 1)
    assert authors(file.diff)[-1] == ("added", "four", seq_of(ready, later))
    assert [call.is_selected for call in file.calls] == [True, False]
    assert report.ungoverned.count == 0


def test_renames_are_followed(ready):
    first = ready.overwrite("src/a.py", "ONE\ntwo\nthree\n")
    known = first["after_hash"]
    moved = ready.change("move_file", source="src/a.py", destination="src/b.py", expected_hash=known)
    edited = ready.overwrite("src/b.py", "ONE\ntwo\n3\n")
    (file,) = ready.review().files

    assert (file.path, file.source, file.operation, file.state) == ("src/b.py", "src/a.py", "move", "as_left")
    assert [call.seq for call in file.calls] == [seq_of(ready, output) for output in (first, moved, edited)]
    assert authors(file.diff) == [
        ("removed", "one", seq_of(ready, first)),
        ("added", "ONE", seq_of(ready, first)),
        ("removed", "three", seq_of(ready, edited)),
        ("added", "3", seq_of(ready, edited)),
    ]


def test_a_deleted_file_shows_what_was_in_it(ready):
    deleted = ready.change("delete_file", path="src/a.py", expected_hash=sha(b"one\ntwo\nthree\n"))
    (file,) = ready.review().files

    assert (file.operation, file.now_hash, file.lines_removed) == ("delete", None, 3)
    assert {author for _, _, author in authors(file.diff)} == {seq_of(ready, deleted)}


def test_a_binary_file_is_not_shown_and_says_so(ready):
    ready.overwrite("src/a.py", "a\0b\n")
    (file,) = ready.review().files

    assert (file.diff.hunks, file.diff.fold.reason) == ((), "binary")


def test_a_change_of_more_than_800_lines_is_folded_with_its_counts(ready):
    ready.overwrite("src/big.py", "x = 1\n" * 900)
    (file,) = ready.review().files

    assert (file.diff.fold.reason, file.diff.lines_added, file.lines_added) == ("large", 900, 900)


def test_content_that_was_not_kept_is_said_to_be_missing(ready):
    ready.overwrite("src/a.py", "one\nTWO\nthree\n")
    for blob in (ready.root / ".kaiza/objects").iterdir():
        blob.unlink()
    (file,) = ready.review().files

    assert (file.diff.hunks, file.diff.fold.reason) == ((), "not_kept")


def test_what_kaiza_wrote_is_kept_for_the_review(ready, monkeypatch):
    written = ready.overwrite("src/a.py", "one\nTWO\nthree\n")
    ready.write("src/a.py", "all is different\n")
    kept = file_of(ready.review(), "src/a.py")
    (ready.root / ".kaiza/objects" / f"{written['after_hash']}.z").unlink()
    lost = file_of(ready.review(), "src/a.py")

    assert ("removed", "two", seq_of(ready, written)) in authors(kept.diff)
    assert authors(kept.calls[0].diff) == [
        ("removed", "two", seq_of(ready, written)),
        ("added", "TWO", seq_of(ready, written)),
    ]
    assert {author for _, _, author in authors(lost.diff)} == {"unknown"}
    assert lost.calls[0].diff.fold.reason == "not_kept"


def test_a_change_whose_content_cannot_be_kept_is_made_nevertheless(ready, monkeypatch):
    def fail(*_arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(BlobStore, "store_copy", fail)
    ready.overwrite("src/a.py", "one\nTWO\nthree\n")
    intact = file_of(ready.review(), "src/a.py")
    ready.write("src/a.py", "all is different\n")
    lost = file_of(ready.review(), "src/a.py")

    assert (intact.state, intact.lines_added) == ("as_left", 1)
    assert lost.calls[0].diff.fold.reason == "not_kept"


def test_an_undo_by_a_person_is_on_the_page(ready, monkeypatch):
    from kaiza.cli import dispatch

    ready.overwrite("src/a.py", "one\nTWO\nthree\n")
    ready.close()
    monkeypatch.chdir(ready.root)
    assert dispatch.main(["undo", "--session", ready.session_id, "--yes", "--as", "Ada"]) == 0
    report = ready.review()
    (file,) = report.files

    assert (file.state, [call.is_undone for call in file.calls]) == ("put_back", [True, False])
    assert [event.kind for event in report.timeline.events if event.actor == "person"] == ["approval", "undo"]
    assert not any("kaiza undo" in command.command for command in report.commands)


def test_a_plan_a_call_and_a_span_of_time_can_be_reviewed(ready):
    first = ready.overwrite("src/a.py", "one\nTWO\nthree\n")
    ready.begin()
    ready.overwrite("src/b.py", "new\n")
    of_plan = ready.review("plan", "PLAN-0007-rotate-tokens")
    of_call = ready.review("request", first["request_id"])
    of_time = ready.review("time", since="2000-01-01T00:00:00.000Z")
    of_no_time = ready.review("time", until="2000-01-01T00:00:00.000Z")

    assert [file.path for file in of_plan.files] == ["src/a.py", "src/b.py"]
    assert (len(of_plan.sessions), of_plan.verdict.counts.calls) == (2, 2)
    assert ([file.path for file in of_call.files], of_call.verdict.counts.records) == (["src/a.py"], 3)
    assert of_time.verdict.counts.records == len(records(ready.root))
    assert of_no_time.records == ()


def test_a_damaged_log_is_said_first_and_reviewed_nevertheless(ready):
    ready.overwrite("src/a.py", "one\nTWO\nthree\n")
    ready.close()
    log = ready.root / "audit/audit-log.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"client":null', b'"client":"me"', 1))
    report = ready.review()

    assert report.findings[0].kind == "record_not_intact"
    assert (report.verdict.tone, report.verdict.chips[0].tone) == ("bad", "bad")
    assert [file.path for file in report.files] == ["src/a.py"]


def test_a_line_that_an_undo_restored_was_removed_by_the_later_call(ready):
    first = ready.overwrite("src/a.py", "one\nTWO\nthree\n")
    ready.change("undo_changes", request_ids=[first["request_id"]])
    ready.overwrite("src/a.py", "one\n2\nthree\n")
    (file,) = ready.review().files
    changed = [line for hunk in file.diff.hunks for line in hunk.lines if line.kind != "context"]

    assert [(line.text, line.author.seq) for line in changed] == [
        ("two", file.calls[2].seq),
        ("2", file.calls[2].seq),
    ]


def test_a_refusal_shows_the_text_of_the_report_that_followed_unless_its_file_changed_since(ready):
    ready.call("write_file", path="pyproject.toml", content="x")
    written = ready.change("write_report", title="Outside", content="I wanted a new version.")
    before = ready.review().refusals[0].report
    (ready.root / written["path"]).write_text("It was not me.")
    after = ready.review().refusals[0].report

    assert "I wanted a new version." in before.text
    assert (after.seq, after.path, after.text) == (before.seq, written["path"], None)


def test_the_command_to_undo_counts_the_files_that_it_leaves_alone(ready):
    ready.overwrite("src/a.py", "one\nTWO\nthree\n")
    plain = [command.purpose for command in ready.review().commands if command.command.startswith("kaiza undo")]
    ready.write("src/a.py", "something else\n")
    changed = [command.purpose for command in ready.review().commands if command.command.startswith("kaiza undo")]

    assert "stays as it is" not in plain[1]
    assert "The file that changed since stays as it is" in changed[1]


def test_open_sessions_of_a_plan_are_compared_once_and_ended_ones_by_their_saved_report(ready):
    ready.overwrite("src/a.py", "one\n")
    ready.write("src/first.txt", "1")
    ready.change("end_session")
    ready.begin()
    ready.overwrite("src/b.py", "two\n")
    ready.write("src/second.txt", "2")
    report = ready.review("plan", "PLAN-0007-rotate-tokens")

    assert report.ungoverned.manifest == "whole"
    assert report.ungoverned.compared > 5
    assert [file.path for file in report.ungoverned.files] == ["src/first.txt", "src/second.txt"]
    assert ready.review("request", report.files[0].calls[0].request_id).ungoverned.manifest is None


def test_an_attempt_on_the_record_is_a_locking_finding_and_one_to_approve_a_plan_a_control_one(ready):
    ready.call("write_file", path="audit/audit-log.jsonl", content="x")
    locked = ready.review()
    ready.begin("ANTIGRAVITY")
    text = (ready.root / "plans/PLAN-0007-rotate-tokens.md").read_text().replace("0007-rotate-tokens", "0008")
    ready.call("save_plan", plan_id="PLAN-0008", content=text)
    control = ready.review()

    assert [finding.kind for finding in locked.findings] == ["locking_refusal"]
    assert [finding.kind for finding in control.findings] == ["control_attempt"]
    assert control.refusals[0].error_code == "PLAN_ENFORCEMENT_FAILED"


def test_a_limit_that_is_nearly_used_is_a_note(scene):
    scene.begin()
    scene.approve(more="limits: {operations: 2}\n")
    scene.overwrite("src/a.py", "x\n")
    half = [finding.kind for finding in scene.review().findings]
    scene.overwrite("src/b.py", "x\n")
    full = scene.review()

    assert half == ["edited_approval"]
    assert [finding.kind for finding in full.findings] == ["edited_approval", "limit_nearly_used"]
    assert full.verdict.tone == "note"


def test_files_that_may_not_be_read_are_not_in_a_report_whatever_the_log_names(ready, monkeypatch):
    ready.overwrite("src/a.py", "one\nTWO\nthree\n")
    ready.write(".env", "TOKEN=hunter2\n")
    forged = review_report.read_selected

    def name_the_secret(root, selection):
        found = forged(root, selection)
        for record in found.selected:
            for change in record["changes"] or ():
                change["path"] = ".env"
        return found

    monkeypatch.setattr(review_report, "read_selected", name_the_secret)
    report = ready.review()

    assert file_of(report, ".env").state == "unknown"
    assert "hunter2" not in repr(report)


def test_nothing_of_a_foreign_workspace_is_taken_as_what_was_there(ready, tmp_path, monkeypatch):
    ready.overwrite("src/a.py", "one\nTWO\nthree\n")
    ready.write("src/a.py", "later\n")
    ready.close()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another-machine"))
    report = ready.review()

    assert file_of(report, "src/a.py").diff.fold.reason == "not_kept"


def test_records_of_wrong_types_are_left_out(ready):
    ready.overwrite("src/a.py", "one\nTWO\nthree\n")
    ready.close()
    log = ready.root / "audit/audit-log.jsonl"
    real = json.loads(log.read_bytes().splitlines()[-1])
    odd = [
        {**real, "changes": 5},
        {**real, "changes": [{"path": None}]},
        {**real, "detail": [1]},
        {**real, "timestamp": 7},
        {**real, "kind": ["call"]},
        {"seq": 9, "session_id": ready.session_id},
        {**real, "cause": [[]], "arguments": 3, "duration_ms": "x"},
        {**real, "request_id": None, "detail": {"modes": {"src/a.py": "x"}}},
    ]
    log.write_bytes(log.read_bytes() + b"".join(json.dumps(each).encode() + b"\n" for each in odd))
    report = ready.review()

    assert [file.path for file in report.files] == ["src/a.py"]
    assert report.findings[0].kind == "record_not_intact"


def test_a_review_writes_nothing_into_the_workspace(story):
    before = {path: path.read_bytes() for path in sorted(Path(story.root).rglob("*")) if path.is_file()}
    story.review()

    assert {path: path.read_bytes() for path in sorted(Path(story.root).rglob("*")) if path.is_file()} == before


def test_a_change_back_to_the_old_content_by_something_else_is_no_change_left(ready):
    ready.overwrite("src/a.py", "one\nTWO\nthree\n")
    ready.write("src/a.py", "one\ntwo\nthree\n")
    (file,) = ready.review().files

    assert (file.state, file.diff.hunks) == ("put_back", ())


def test_a_changed_mode_is_seen(ready):
    ready.overwrite("src/a.py", "one\nTWO\nthree\n")
    os.chmod(ready.root / "src/a.py", 0o755)
    (file,) = ready.review().files

    assert (file.state, file.mode_now) == ("changed_since", 0o755)


def test_a_report_has_only_values_that_json_has(story):
    from dataclasses import asdict

    assert json.loads(json.dumps(asdict(story.report)))["selection"]["id"] == story.session_id
    assert story.report.selection == ReviewSelection("session", story.session_id)
