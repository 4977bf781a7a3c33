"""The report of a review, from real sessions: numbers, lines and their authors, findings in their order."""

from pathlib import Path

import pytest
from agents import sha
from review_scenes import PLAN, Scene, play_story
from scenes import records

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


def test_a_line_that_an_undo_restored_was_removed_by_the_later_call(ready):
    first = ready.overwrite("src/a.py", "one\nTWO\nthree\n")
    ready.change("undo_changes", request_ids=[first["request_id"]])
    ready.overwrite("src/a.py", "one\n2\nthree\n")
    (file,) = ready.review().files
    changed = [line for hunk in file.diff.hunks for line in hunk.lines if line.kind != "context"]

    assert [(line.text, line.author.seq) for line in changed] == [("two", file.calls[2].seq), ("2", file.calls[2].seq)]


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


def test_nothing_of_a_foreign_workspace_is_taken_as_what_was_there(ready, tmp_path, monkeypatch):
    ready.overwrite("src/a.py", "one\nTWO\nthree\n")
    ready.write("src/a.py", "later\n")
    ready.close()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another-machine"))
    report = ready.review()

    assert file_of(report, "src/a.py").diff.fold.reason == "not_kept"


def test_a_review_writes_nothing_into_the_workspace(story):
    before = {path: path.read_bytes() for path in sorted(Path(story.root).rglob("*")) if path.is_file()}
    story.review()

    assert {path: path.read_bytes() for path in sorted(Path(story.root).rglob("*")) if path.is_file()} == before
