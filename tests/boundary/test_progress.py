"""Progress and diagnostics of a call, as the transports get them."""

import re
import time

import pytest

from kaiza.boundary.call import PROGRESS_PER_SECOND, ProgressReporter
from kaiza.domain.call import CallRequest
from kaiza.domain.caps import Caps


@pytest.fixture
def wide(workspace):
    """A workspace with a few hundred files."""
    for number in range(300):
        (workspace / f"{number:03d}.txt").write_text("hit\n")
    return workspace


def ask(app, tool, report_progress=None, **arguments):
    app.call("begin_session", {"role": "WINDSURF"})
    return app.answer(app.stamp(CallRequest(tool, arguments, report_progress=report_progress)))


def broken(_done, _total):
    raise BrokenPipeError


@pytest.mark.rows("S4-53")
@pytest.mark.parametrize(("tool", "asked"), [("find_files", {"pattern": "**/*"}), ("search_text", {"query": "none"})])
def test_a_scan_reports_how_far_it_is(make_app, wide, tool, asked):
    reports = []
    outcome = ask(make_app(wide), tool, lambda *report: reports.append(report), **asked)

    assert outcome.envelope is None
    assert reports
    assert [done for done, _ in reports] == sorted({done for done, _ in reports})
    assert 0 < reports[0][0] <= 300


def test_a_verification_of_the_log_reports_bytes_of_the_whole(make_app, workspace):
    reports = []
    ask(make_app(workspace), "verify_audit_log", lambda *report: reports.append(report))

    assert reports
    assert reports[-1][0] == reports[-1][1]


def test_a_report_that_cannot_be_sent_does_not_fail_the_call(make_app, wide):
    assert ask(make_app(wide), "find_files", broken, pattern="**/*").envelope is None


def test_reports_are_sent_a_few_times_a_second_and_never_backwards(make_app, workspace):
    reports = []
    app = make_app(workspace)
    reporter = ProgressReporter(app.stamp(CallRequest("x", {}, report_progress=lambda *one: reports.append(one))))
    started = time.monotonic()
    for done in (0, 5, 5, 3, *range(6, 1000)):
        reporter.report(done, None)

    assert reports[:3] == [(0, None), (5, None), (6, None)]
    assert len(reports) <= PROGRESS_PER_SECOND * (2 + time.monotonic() - started)


def test_nothing_is_reported_of_a_call_that_is_answered(make_app, workspace):
    reports = []
    app = make_app(workspace)
    call = app.stamp(CallRequest("x", {}, report_progress=lambda *one: reports.append(one)))
    app.expire(call)
    ProgressReporter(call).report(1, None)

    assert reports == []


@pytest.mark.rows("S4-57", "S4-58", "S4-61")
@pytest.mark.parametrize(("tool", "asked"), [("find_files", {"pattern": "**/*"}), ("search_text", {"query": "hit"})])
def test_a_scan_past_its_guard_is_a_success_with_a_diagnostic(make_app, wide, tool, asked):
    outcome = ask(make_app(wide, caps=Caps()._replace(find_guard_ms=0, search_guard_ms=0)), tool, **asked)

    assert outcome.envelope is None
    assert outcome.output["diagnostics"] == list(outcome.diagnostics)
    assert re.fullmatch(
        r"Scan stopped after \d+ms\. Processed \d+ of \d+ items\. Results may be partial\.", outcome.diagnostics[0]
    )
