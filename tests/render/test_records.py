"""Records for people: the timeline, and one record in full."""

from itertools import count, islice

from kaiza.domain.audit.record import Record
from kaiza.render import records, terminal


def record(seq, **members):
    return Record(
        {
            "seq": seq,
            "timestamp": f"2026-11-18T09:{seq % 60:02d}:07.120Z",
            "kind": "call",
            "role": "WINDSURF",
            "tool_name": "read_file",
            "outcome": "ok",
            "error_code": None,
            "arguments": {"path": "src/app.py"},
            "changes": [],
            **members,
        }
    )


READ = record(1)
REFUSED = record(
    2, tool_name="write_file", outcome="error", error_code="PLAN_SCOPE_VIOLATION", arguments={"path": "docs/a.md"}
)
INTENT = record(
    3, kind="intent", tool_name="apply_patch", outcome=None, arguments=None, changes=[{"path": "a"}, {"path": "b"}]
)
FROZEN = record(4, kind="person", role=None, tool_name=None, arguments=None)


def test_a_timeline_has_one_aligned_row_per_record():
    lines = list(records.render_timeline([READ, REFUSED, INTENT, FROZEN], None))

    assert lines == [
        "time UTC               seq  by        tool          path          outcome  code",
        "2026-11-18 09:01:07      1  executor  read_file     src/app.py    ok",
        "2026-11-18 09:02:07      2  executor  write_file    docs/a.md     error    PLAN_SCOPE_VIOLATION",
        "2026-11-18 09:03:07      3  executor  apply_patch   a +1          intent",
        "2026-11-18 09:04:07      4            person                      ok",
    ]


def test_records_other_than_calls_show_their_result():
    sealed = record(5, kind="plan", tool_name=None, outcome=None, arguments=None, plan_id="PLAN-7")
    revoked = Record(
        {**sealed.members, "kind": "person", "outcome": "ok", "detail": {"action": "revoke", "person": "Ann"}}
    )
    recovered = Record({**sealed.members, "kind": "recovery", "plan_id": None, "detail": {"result": "taken_back"}})
    _, *lines = records.render_timeline([sealed, revoked, recovered], None)

    assert [line.split()[4:] for line in lines] == [
        ["plan", "PLAN-7", "sealed"],
        ["revoke", "PLAN-7", "ok"],
        ["recovery", "taken_back"],
    ]


def test_a_narrow_timeline_has_a_line_for_the_day_and_whole_paths():
    deep = record(5, arguments={"path": "packages/server/src/handlers/authentication/rotation.py"})
    lines = list(records.render_timeline([READ, REFUSED, deep], 80))

    assert all(terminal.display_width(line) <= 80 for line in lines)
    assert lines == [
        "time UTC   seq by       tool         path                                outcome",
        "2026-11-18",
        "09:01:07     1 executor read_file    src/app.py                          ok",
        "09:02:07     2 executor write_file   docs/a.md                           error",
        "    code: PLAN_SCOPE_VIOLATION",
        "09:05:07     5 executor read_file                                        ok",
        "    path: packages/server/src/handlers/authentication/rotation.py",
    ]


def test_a_dry_run_is_marked():
    dry = {"arguments": {"path": "src/app.py", "dry_run": True}}
    _, done, refused = records.render_timeline(
        [Record({**READ.members, **dry}), Record({**REFUSED.members, **dry})], None
    )

    assert done.endswith("src/app.py    dry run")
    assert "error, dry run" in refused


def test_a_persons_undo_shows_the_name_the_action_and_the_outcome():
    intent = Record({**INTENT.members, "tool_name": None, "role": None, "detail": {"action": "undo", "person": "Ann"}})
    failed = Record({**intent.members, "kind": "person", "outcome": "error", "error_code": "FILE_WRITE_FAILED"})
    _, *lines = records.render_timeline([intent, failed], None)

    assert [line.split()[3:] for line in lines] == [
        ["Ann", "undo", "a", "+1", "intent"],
        ["Ann", "undo", "a", "+1", "error", "FILE_WRITE_FAILED"],
    ]


def test_a_long_name_leaves_room_for_the_other_columns():
    frozen = Record({**FROZEN.members, "detail": {"action": "freeze", "person": "n" * 200}})
    lines = list(records.render_timeline([READ, frozen], 80))

    assert all(terminal.display_width(line) <= 80 for line in lines)
    assert "n" * 15 + "…" in lines[-1]


def test_each_day_has_one_line():
    later = record(6, timestamp="2026-11-19T00:00:01.000Z")
    lines = list(records.render_timeline([READ, later, later], 80))

    assert [line for line in lines if line.startswith("2026-")] == ["2026-11-18", "2026-11-19"]


def test_paths_in_a_timeline_are_escaped():
    lines = "\n".join(records.render_timeline([record(1, arguments={"path": "a\x1b[2J\u202eb\n"})], None))

    assert "a\\x1b[2J\\u202eb\\n" in lines
    assert "\x1b" not in lines


def test_a_timeline_is_lazy_and_measured_on_a_sample():
    lines = records.render_timeline((record(number) for number in count(1)), None)

    assert len(list(islice(lines, 2000))) == 2000


def test_a_followed_timeline_prints_its_header_before_the_first_record():
    def never():
        raise AssertionError("it waited for a record")
        yield

    assert next(records.render_timeline(never(), 100, endless=True)).split() == [
        "time", "UTC", "seq", "by", "tool", "path", "outcome",
    ]  # fmt: skip


def test_errors_are_coloured():
    lines = list(records.render_timeline([READ, REFUSED], None, colour=True))

    assert "\x1b[32mok\x1b[0m" in lines[1]
    assert "\x1b[31mPLAN_SCOPE_VIOLATION\x1b[0m" in lines[2]


def test_every_path_of_a_record_counts_once():
    moved = record(1, arguments={"source": "a", "destination": "b"}, changes=[{"source": "a", "path": "b"}])
    read = record(1, arguments={"paths": ["x", "y", "x"]})
    _, *lines = records.render_timeline([moved, read, record(1, arguments=None, changes=None)], None)

    assert [line.split()[5:] for line in lines] == [["a", "+1", "ok"], ["x", "+1", "ok"], ["ok"]]


def test_a_record_in_full_begins_with_its_outcome_and_omits_nulls():
    lines = list(
        records.render_record(
            Record(
                {
                    "arguments": {"path": "a\u202e.py", "expected_hash": None},
                    "changes": [{"path": "a", "operation": "modify"}, {"path": "b", "operation": "create"}],
                    "entry_hash": "ff",
                    "error_code": "HASH_MISMATCH",
                    "outcome": "error",
                    "plan_id": None,
                    "prev_hash": "00",
                    "seq": 7,
                }
            )
        )
    )

    assert lines == [
        "seq         7",
        "outcome     error",
        "error_code  HASH_MISMATCH",
        "arguments   path=a\\u202e.py",
        "changes     path=a  operation=modify",
        "            path=b  operation=create",
        "prev_hash   00",
        "entry_hash  ff",
    ]


def test_a_long_value_of_a_record_has_a_line_of_its_own():
    deep = "packages/server/src/handlers/authentication/session_token_rotation.py"
    lines = list(records.render_record(Record({"arguments": {"path": deep, "tool": "x"}, "seq": 7}), 80))

    assert lines == ["seq        7", "arguments", f"    path={deep}", "    tool=x"]
    assert list(records.render_record(Record({"arguments": {"path": deep}}), 72))[1:] == ["    path=", deep]
