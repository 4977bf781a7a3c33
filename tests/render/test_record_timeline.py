"""The record as a person reads it."""

from itertools import count, islice

from kaiza.render import record_timeline, terminal


def record(seq, **members):
    return {
        "seq": seq,
        "timestamp": f"2026-11-18T09:{seq % 60:02d}:07.120Z",
        "kind": "call",
        "role": "WINDSURF",
        "tool_name": "read_file",
        "outcome": "ok",
        "error_code": None,
        "arguments": {"path": "src/app.py"},
        "changes": [],
    } | members


READ = record(1)
REFUSED = record(
    2, tool_name="write_file", outcome="error", error_code="PLAN_SCOPE_VIOLATION", arguments={"path": "docs/a.md"}
)
INTENT = record(
    3, kind="intent", tool_name="apply_patch", outcome=None, arguments=None, changes=[{"path": "a"}, {"path": "b"}]
)
FROZEN = record(4, kind="person", role=None, tool_name=None, arguments=None)


def test_a_timeline_has_a_line_for_each_record_in_aligned_columns():
    told = list(record_timeline.render_timeline([READ, REFUSED, INTENT, FROZEN], None))

    assert told == [
        "time                   seq  role      tool          path          outcome  code",
        "2026-11-18 09:01:07      1  WINDSURF  read_file     src/app.py    ok",
        "2026-11-18 09:02:07      2  WINDSURF  write_file    docs/a.md     error    PLAN_SCOPE_VIOLATION",
        "2026-11-18 09:03:07      3  WINDSURF  apply_patch   a +1          intent",
        "2026-11-18 09:04:07      4            person                      person",
    ]


def test_what_is_no_call_says_what_came_of_it():
    sealed = record(5, kind="plan", tool_name=None, outcome=None, arguments=None, plan_id="PLAN-7")
    revoked = sealed | {"kind": "person", "detail": {"action": "revoke"}}
    recovered = sealed | {"kind": "recovery", "plan_id": None, "detail": {"result": "taken_back"}}
    _, *told = record_timeline.render_timeline([sealed, revoked, recovered], None)

    assert [line.split()[4:] for line in told] == [
        ["plan", "PLAN-7", "sealed"],
        ["person", "PLAN-7", "revoke"],
        ["recovery", "taken_back"],
    ]


def test_a_narrow_terminal_gets_the_day_on_a_line_of_its_own_and_shorter_paths():
    deep = record(5, arguments={"path": "packages/server/src/handlers/authentication/rotation.py"})
    told = list(record_timeline.render_timeline([READ, REFUSED, deep], 80))

    assert told[1] == "2026-11-18"
    assert told[2].startswith("09:01:07")
    assert all(terminal.display_width(line) <= 80 for line in told)
    assert "rotation.py" in told[4]
    assert "PLAN_SCOPE_VIOLATION" in told[3]


def test_a_new_day_is_announced_once():
    later = record(6, timestamp="2026-11-19T00:00:01.000Z")
    told = list(record_timeline.render_timeline([READ, later, later], 80))

    assert [line for line in told if line.startswith("2026-")] == ["2026-11-18", "2026-11-19"]


def test_a_name_that_would_steer_the_terminal_is_shown_escaped():
    told = "\n".join(record_timeline.render_timeline([record(1, arguments={"path": "a\x1b[2J\u202eb\n"})], None))

    assert "a\\x1b[2J\\u202eb\\n" in told
    assert "\x1b" not in told


def test_a_timeline_is_lazy_and_takes_only_a_sample_to_measure():
    told = record_timeline.render_timeline((record(number) for number in count(1)), None)

    assert len(list(islice(told, 2000))) == 2000


def test_an_endless_timeline_shows_its_head_before_the_first_record_comes():
    def never():
        raise AssertionError("it waited for a record")
        yield

    assert next(record_timeline.render_timeline(never(), 100, endless=True)).split() == [
        "time", "seq", "role", "tool", "path", "outcome", "code",
    ]  # fmt: skip


def test_colour_marks_what_went_wrong():
    told = list(record_timeline.render_timeline([READ, REFUSED], None, colour=True))

    assert "\x1b[32mok\x1b[0m" in told[1]
    assert "\x1b[31mPLAN_SCOPE_VIOLATION\x1b[0m" in told[2]


def test_every_path_that_a_record_names_is_found_once():
    moved = record(1, arguments={"source": "a", "destination": "b"}, changes=[{"source": "a", "path": "b"}])

    assert record_timeline.recorded_paths(moved) == ("a", "b")
    assert record_timeline.recorded_paths(record(1, arguments={"paths": ["x", "y", "x"]})) == ("x", "y")
    assert record_timeline.recorded_paths(record(1, arguments=None, changes=None)) == ()
