"""Reports: allowed while the workspace is frozen or the role locked, but capped in number and size."""

import os
from datetime import datetime, timedelta

import pytest
from agents import person, plan
from scenes import records

from kaiza.clock import current_timestamp
from kaiza.domain.audit import record
from kaiza.domain.caps import Caps
from kaiza.store.audit import log as audit_log
from kaiza.store.audit.verification.accept import accept_damage

REPORTS_PER_DAY = Caps().reports
MAX_BYTES = Caps().report_bytes


def report(app, content="c", **more):
    return app.call("write_report", {"title": "t", "content": content, **more})


def reports(root):
    directory = root / "docs/reports"
    return sorted(os.listdir(directory)) if directory.exists() else []


def record_reports(root, times, role="WINDSURF"):
    """Record reports of another session at these times."""
    log = audit_log.AuditLog(os.path.realpath(root), follow=lambda _record: None)
    for number, at in enumerate(times):
        members = {"request_id": f"r{number}", "session_id": "another", "role": role, "outcome": "ok"}
        body = record.new_body("call", timestamp=at, tool_name="write_report", **members)
        log.append(lambda body=body: body, durable=False)
    log.close()


def hours_ago(hours):
    then = datetime.fromisoformat(current_timestamp()) - timedelta(hours=hours)
    return then.isoformat(timespec="milliseconds")[:-6] + "Z"


@pytest.mark.parametrize("stop", [None, "frozen", "locked"])
def test_reports_are_capped_at_200_a_day_over_all_sessions_and_roles(begun, make_app, workspace, stop):
    earlier = [hours_ago(23)] * (REPORTS_PER_DAY // 2)
    record_reports(workspace, earlier)
    record_reports(workspace, [*earlier[: REPORTS_PER_DAY // 2 - 2]], role="ANTIGRAVITY")
    if stop == "frozen":
        assert person(workspace, "freeze", "stop") == 0
    elif stop == "locked":
        begun.call("write_file", {"path": "x", "content": "x", "plan_hash": plan(workspace)})
    other = make_app(workspace)
    other.call("begin_session", {"role": "ANTIGRAVITY"})
    envelopes = [report(app).envelope for app in (begun, other, begun, other)]

    assert [envelope and (envelope["error_code"], envelope["cause"]) for envelope in envelopes] == [
        None,
        None,
        *[("CAP_EXCEEDED", {"cap": "reports", "limit": REPORTS_PER_DAY})] * 2,
    ]
    assert len(reports(workspace)) == 2


def test_reports_older_than_a_day_do_not_count(begun, workspace):
    record_reports(workspace, [hours_ago(24.1)] * REPORTS_PER_DAY)

    assert report(begun).envelope is None


def test_a_refused_report_does_not_count(begun, workspace):
    record_reports(workspace, [hours_ago(1)] * (REPORTS_PER_DAY - 1))
    refused = report(begun, "c" * MAX_BYTES).envelope

    assert refused["error_code"] == "CAP_EXCEEDED"
    assert report(begun).envelope is None


def test_the_report_count_survives_a_restart_and_an_accepted_log(begun, workspace, make_app):
    record_reports(workspace, [hours_ago(1)] * REPORTS_PER_DAY)
    assert report(begun).envelope["cause"]["cap"] == "reports"
    begun.close()
    log = workspace / "audit/audit-log.jsonl"
    log.write_bytes(log.read_bytes().replace(b"another", b"anothre", 1))
    accept_damage(os.path.realpath(workspace), reason="looked", person="Ada")
    later = make_app(workspace)
    later.call("begin_session", {"role": "WINDSURF"})

    assert report(later).envelope["cause"]["cap"] == "reports"
    assert reports(workspace) == []


@pytest.mark.parametrize("letter", ["x", "ä", "\U0001f600"])
def test_a_report_is_capped_at_256_kib_in_bytes(begun, workspace, letter):
    longest = MAX_BYTES // len(letter.encode())
    refused = report(begun, letter * longest).envelope
    fits = report(begun, letter * (longest - 200)).envelope

    assert (refused["error_code"], refused["cause"]) == ("CAP_EXCEEDED", {"cap": "report_bytes", "limit": MAX_BYTES})
    assert fits is None
    assert [(workspace / "docs/reports" / name).stat().st_size <= MAX_BYTES for name in reports(workspace)] == [True]


def test_no_report_is_written_while_the_log_is_damaged(begun, make_app, workspace):
    begun.close()
    (workspace / "audit/audit-log.jsonl").write_bytes(b"{}\n")
    app = make_app(workspace)
    app.call("begin_session", {"role": "WINDSURF"})

    assert report(app).envelope["error_code"] == "SELF_AUDIT_FAILURE"
    assert reports(workspace) == []
    assert [entry["tool_name"] for entry in records(workspace)[1:]][-1] == "write_report"


def test_the_record_of_a_report_names_its_file(begun, workspace):
    path = report(begun).output["path"]

    assert records(workspace)[-1]["detail"]["path"] == path
    assert (workspace / path).is_file()
