"""Changes without Kaiza in a review, from reports on sessions."""

import os
import subprocess
from dataclasses import replace

import pytest
from agents import sha
from review_scenes import Scene

from kaiza.clock import current_timestamp
from kaiza.domain.caps import Caps
from kaiza.domain.manifest.report import Coverage, EntryState, OutsideChange, OutsideReport
from kaiza.domain.review.report import ReviewSelection
from kaiza.domain.review.report_builder import build_report
from kaiza.queries.review_report import gather_evidence
from kaiza.queries.review_ungoverned import merge_reports
from kaiza.store import human_decisions
from kaiza.store.workspace import Workspace


def change(path, kind, before=None, source=None, **more):
    return OutsideChange(path, kind, source, before and EntryState("file", hash=before), **more)


def report(*changes, count=None, state="whole", uncovered=0, begun_at="2026-11-18T09:00:00.000Z"):
    count = len(changes) if count is None else count
    coverage = Coverage(state, uncovered=uncovered)
    return OutsideReport("s", begun_at, begun_at, changes, count, coverage=coverage)


@pytest.fixture
def scene(tmp_path):
    scene = Scene(tmp_path / "shop")
    scene.write("src/kept.py", "old\n")
    scene.write("config.toml", "days = 30\n")
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"}
    for words in (
        ["init", "-q"],
        ["add", "config.toml"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"],
    ):
        subprocess.run(["git", *words], cwd=scene.root, check=True, env=environment)
    scene.begin()
    scene.approve()
    scene.overwrite("src/a.py", "x\n")
    try:
        yield scene
    finally:
        scene.close()


def review(scene, *reports):
    workspace = Workspace(str(scene.root), Caps())
    try:
        human_decisions.catch_up(workspace)
        evidence, contents = gather_evidence(workspace, ReviewSelection("session", scene.session_id))
        return build_report(replace(evidence, ungoverned=merge_reports(reports)), contents)
    finally:
        workspace.close(current_timestamp())


def lines_of(file):
    return [(line.kind, line.text) for hunk in file.diff.hunks for line in hunk.lines]


def test_without_a_report_nothing_is_known():
    assert merge_reports([]) is None


def test_a_path_of_several_sessions_counts_once_and_what_is_not_listed_counts_too():
    merged = merge_reports(
        [
            report(change("a", "modified"), change("b", "created"), begun_at="2026-11-18T10:00:00.000Z"),
            report(change("a", "modified"), count=5, state="partial", uncovered=3),
        ]
    )

    assert (merged.manifest, merged.count, merged.not_covered) == ("partial", 6, 3)
    assert merged.compared_since == "2026-11-18T09:00:00.000Z"
    assert sorted(item.path for item in merged.items) == ["a", "b"]


def test_the_old_content_comes_from_git_where_its_hash_fits(scene):
    scene.write("config.toml", "days = 365\n")
    fits = review(scene, report(change("config.toml", "modified", sha(b"days = 30\n"))))
    other = review(scene, report(change("config.toml", "modified", sha(b"days = 31\n"))))

    assert lines_of(fits.ungoverned.files[0]) == [("removed", "days = 30"), ("added", "days = 365")]
    assert other.ungoverned.files[0].diff.fold.reason == "not_kept"


def test_files_in_the_plan_s_scope_are_a_finding_of_their_own_before_the_others(scene):
    scene.write("src/debug.py", "x\n")
    found = review(scene, report(change("src/debug.py", "created"), change("gone.txt", "deleted", sha(b"old"))))

    assert [(file.path, file.is_in_scope) for file in found.ungoverned.files] == [
        ("src/debug.py", True),
        ("gone.txt", False),
    ]
    assert [finding.kind for finding in found.findings][:2] == ["ungoverned_governed", "ungoverned"]
    assert lines_of(found.ungoverned.files[0]) == [("added", "x")]


def test_a_whole_comparison_without_changes_is_said(scene):
    found = review(scene, report())

    assert (found.ungoverned.manifest, found.ungoverned.count) == ("whole", 0)
    assert next(chip for chip in found.verdict.chips if chip.subject == "ungoverned").tone == "ok"
