"""A report may always be written, as long as there is a sound record to say so; but not without end."""

import os
from datetime import datetime, timedelta

import pytest
from agents import Agent, person, plan
from scenes import records

from kaiza.boundary import current_timestamp
from kaiza.domain.audit import record
from kaiza.domain.audit.projection import AuditState
from kaiza.domain.audit.record_folding import apply_record
from kaiza.domain.caps import Caps
from kaiza.store.audit import log as audit_log
from kaiza.store.audit.verification.accept import accept_damage

DAY = Caps().reports
LONGEST = Caps().report_bytes


def report(app, content="c", **more):
    return app.call("write_report", {"title": "t", "content": content, **more})


def reports(root):
    place = root / "docs/reports"
    return sorted(os.listdir(place)) if place.exists() else []


def written(root, times, role="WINDSURF"):
    """Reports in the record, of other sessions, at these times."""
    log = audit_log.AuditLog(os.path.realpath(root), follow=lambda _record: None)
    for number, at in enumerate(times):
        members = {"request_id": f"r{number}", "session_id": "another", "role": role, "outcome": "ok"}
        body = record.new_body("call", timestamp=at, tool_name="write_report", **members)
        log.append(lambda body=body: body, durable=False)
    log.close()


def hours_ago(hours):
    told = datetime.fromisoformat(current_timestamp()) - timedelta(hours=hours)
    return told.isoformat(timespec="milliseconds")[:-6] + "Z"


@pytest.mark.parametrize("stop", [None, "frozen", "locked"])
def test_reports_are_capped_at_200_a_day_over_all_sessions_and_roles(begun, make_app, workspace, stop):
    earlier = [hours_ago(23)] * (DAY // 2)
    written(workspace, earlier)
    written(workspace, [*earlier[: DAY // 2 - 2]], role="ANTIGRAVITY")
    if stop == "frozen":
        assert person(workspace, "freeze", "stop") == 0
    elif stop == "locked":
        begun.call("write_file", {"path": "x", "content": "x", "plan_hash": plan(workspace)})
    other = make_app(workspace)
    other.call("begin_session", {"role": "ANTIGRAVITY"})
    told = [report(app).envelope for app in (begun, other, begun, other)]

    assert [one and (one["error_code"], one["cause"]) for one in told] == [
        None,
        None,
        *[("CAP_EXCEEDED", {"cap": "reports", "limit": DAY})] * 2,
    ]
    assert len(reports(workspace)) == 2


def test_reports_older_than_a_day_do_not_count(begun, workspace):
    written(workspace, [hours_ago(24.1)] * DAY)

    assert report(begun).envelope is None


def test_a_refused_report_does_not_count(begun, workspace):
    written(workspace, [hours_ago(1)] * (DAY - 1))
    refused = report(begun, "c" * LONGEST).envelope

    assert refused["error_code"] == "CAP_EXCEEDED"
    assert report(begun).envelope is None


def test_the_report_count_survives_a_restart_and_an_accepted_log(begun, workspace, make_app):
    written(workspace, [hours_ago(1)] * DAY)
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
    longest = LONGEST // len(letter.encode())
    told = report(begun, letter * longest).envelope
    fits = report(begun, letter * (longest - 200)).envelope

    assert (told["error_code"], told["cause"]) == ("CAP_EXCEEDED", {"cap": "report_bytes", "limit": LONGEST})
    assert fits is None
    assert [(workspace / "docs/reports" / name).stat().st_size <= LONGEST for name in reports(workspace)] == [True]


def test_a_report_far_above_the_cap_gets_the_same_error(workspace):
    agent = Agent(workspace)
    told = agent.call("write_report", title="t", content="x" * 900_000)
    agent.close()

    assert (told["error_code"], told["cause"]["cap"]) == ("CAP_EXCEEDED", "report_bytes")


def test_the_projection_keeps_no_more_report_times_than_the_cap():
    facts = AuditState()
    at = [f"2026-11-18T09:{seq // 60:02}:{seq % 60:02}.000Z" for seq in range(3 * DAY)]
    members = {"tool_name": "write_report", "role": "WINDSURF", "request_id": "r", "outcome": "ok"}
    for seq, timestamp in enumerate(at, 1):
        apply_record(facts, {**record.new_body("call", timestamp=timestamp, **members), "seq": seq})

    assert facts.reports == at[-DAY:]


def test_no_report_is_written_while_the_log_is_damaged(begun, make_app, workspace):
    begun.close()
    (workspace / "audit/audit-log.jsonl").write_bytes(b"{}\n")
    app = make_app(workspace)
    app.call("begin_session", {"role": "WINDSURF"})

    assert report(app).envelope["error_code"] == "SELF_AUDIT_FAILURE"
    assert reports(workspace) == []
    assert [one["tool_name"] for one in records(workspace)[1:]][-1] == "write_report"
