"""Calls and files that are meant to keep a change without Kaiza out of the review."""

import pytest
from review_scenes import Scene

from kaiza.cli import dispatch


@pytest.fixture
def scene(tmp_path):
    scene = Scene(tmp_path / "shop")
    scene.write("src/kept.py", "old\n")
    try:
        yield scene
    finally:
        scene.close()


def outside(report):
    return report.ungoverned.manifest, report.ungoverned.count


@pytest.mark.parametrize("ends", [["refused"], ["ended", "refused"]], ids=["instead of the end", "after the end"])
def test_a_refused_end_of_the_session_hides_nothing(scene, ends):
    scene.begin()
    scene.write("src/kept.py", "new\n")
    for each in ends:
        more = {"reason": "unknown argument"} if each == "refused" else {}
        assert (scene.call("end_session", **more).envelope is not None) == (each == "refused")

    assert outside(scene.review()) == ("whole", 1)


def test_a_session_that_was_ended_twice_keeps_the_report_of_its_end(scene):
    scene.begin()
    scene.write("src/kept.py", "new\n")
    scene.call("end_session")
    scene.call("end_session")

    assert outside(scene.review()) == ("whole", 1)


def test_sessions_beyond_those_that_are_compared_make_the_review_partial(scene, monkeypatch):
    from kaiza.queries import review_ungoverned

    monkeypatch.setattr(review_ungoverned, "_MAX_SESSIONS", 2)
    for _ in range(3):
        scene.begin()
        scene.call("end_session")

    assert outside(scene.review("time", since="2000-01-01T00:00:00.000Z")) == ("partial", 0)
    assert outside(scene.review()) == ("whole", 0)


def test_what_may_not_be_read_any_more_is_in_no_form_of_the_review(scene, monkeypatch, capfdbinary):
    scene.begin()
    scene.approve()
    scene.overwrite("src/kept.py", "first-private\n")
    scene.write("src/kept.py", "second-private\n")
    scene.overwrite("src/kept.py", "third-private\n")
    scene.call("end_session")
    scene.close()
    (scene.root / "kaiza.toml").write_text('deny_read = ["src/kept.py"]\n')
    monkeypatch.chdir(scene.root)
    for words in (["diff"], ["review", "--json"], ["review", "--markdown"], ["review", "--sarif"], ["review"]):
        dispatch.main(words)
    shown = capfdbinary.readouterr().out + next((scene.root / ".kaiza/reviews").iterdir()).read_bytes()

    assert b"src/kept.py" in shown
    assert b"-private" not in shown
