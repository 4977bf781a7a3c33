"""Sessions as the log shows them."""

from kaiza.domain.audit import record
from kaiza.domain.audit.record import Record
from kaiza.queries.session_summary import summarize_sessions

FRESH = "2999-01-01T00:00:00.000Z"


def call(tool, session="s-1", outcome="ok", **members):
    given = {"tool_name": tool, "session_id": session, "outcome": outcome, "timestamp": FRESH, "role": "WINDSURF"}
    return Record({**record.new_body("call", **{**given, "client": "a-client", **members}), "seq": 1})


def change(path):
    hashes = {"before_hash": None, "after_hash": "0" * 64}
    return {"path": path, "source": None, "operation": "create", **hashes, "size": 1, "lines_added": 1,
            "lines_removed": 0, "mode": None}  # fmt: skip


def summarize(*records, detailed=None):
    return summarize_sessions(records, detailed, lambda _seq: None)


def test_calls_changes_and_refusals_are_counted():
    (session,) = summarize(
        call("begin_session"),
        call("write_file", changes=[change("a"), change("b")]),
        call("write_file", outcome="error", changes=[change("c")]),
        call("read_file", session="another"),
    )

    assert session.as_json()["counts"] == {"calls": 3, "changes": 2, "refusals": 1}
    assert (session.changes, session.refusals) == ([], [])


def test_details_are_kept_only_of_the_sessions_asked_for():
    records = [call("begin_session", session=session) for session in ("s-1", "t-1")]
    records += [call("write_file", session=session, changes=[change("a")]) for session in ("s-1", "t-1")]
    first, second = summarize(*records, detailed="s")

    assert [each["path"] for each in first.changes] == ["a"]
    assert second.changes == []


def test_a_session_without_a_call_for_twelve_hours_is_expired():
    (session,) = summarize(call("begin_session", timestamp="2020-01-01T00:00:00.000Z"))

    assert session.state == "expired"
