"""One path from the session's begin to its end: recorded steps, and what happened between them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaiza.domain.audit.record import Record, new_body
from kaiza.domain.manifest.comparison import Difference, compare, find_outside_change
from kaiza.domain.manifest.recorded_changes import RecordedChanges, collect_changes
from kaiza.domain.manifest.report import MAX_LISTED, Coverage, EntryState, OutsideReport

HASHES = {name: name * 64 for name in "abc"}
NO_RECORDS = RecordedChanges()


def file(content, mode=0o644):
    return EntryState("file", mode, 1, HASHES[content])


def change(before, after, mode=None, path="f"):
    operation = "create" if before is None else "delete" if after is None else "modify"
    hashes = {"before_hash": HASHES.get(before), "after_hash": HASHES.get(after)}
    counts = {"size": 1, "lines_added": 0, "lines_removed": 0}
    return {"path": path, "source": None, "operation": operation, "mode": mode, **hashes, **counts}


def recorded(*changes, modes=None, kind="call", seq=1, announced=True):
    """Records of one call for each change."""
    bodies = []
    for number, each in enumerate(changes):
        members = {"request_id": f"r{number}", "tool_name": "write_file", "changes": [each]}
        if announced:
            bodies.append(Record({**new_body("intent", **members, detail={}), "seq": seq}))
        detail = {"modes": modes or {}, "result": "applied"}
        bodies.append(Record({**new_body(kind, **members, outcome="ok", detail=detail), "seq": seq + 1}))
        seq += 2
    return bodies


contents = st.sampled_from([None, "a", "b", "c"])


@given(contents, st.lists(st.tuples(contents, contents)), contents)
def test_a_path_is_explained_only_if_the_steps_lead_from_its_begin_to_its_end(begin, steps, end):
    steps = [(before, after) for before, after in steps if before != after]
    at = begin
    gaps = 0
    for before, after in steps:
        gaps += before != at
        at = after
    gaps += at != end
    records = recorded(*(change(*step) for step in steps))
    difference = Difference("f", begin and file(begin), end and file(end), has_other_stat=begin != end)
    found = find_outside_change(difference, collect_changes(records, len(records)))

    assert (found is not None) == (gaps > 0)
    if found is not None:
        assert found.is_overwritten == (at == end)


@given(contents, contents, contents)
def test_a_step_that_may_not_have_been_taken_allows_both_states(begin, target, end):
    records = recorded(change(begin, target)) if begin != target else []
    difference = Difference("f", begin and file(begin), end and file(end), has_other_stat=begin != end)
    found = find_outside_change(difference, collect_changes(records, 0))

    assert (found is None) == (end in (begin, target))


@pytest.mark.parametrize("end", ["a", "b", "c"])
def test_an_intent_without_outcome_allows_both_states(end):
    (intent, _) = recorded(change("a", "b"))
    difference = Difference("f", file("a"), file(end), has_other_stat=end != "a")
    found = find_outside_change(difference, collect_changes([intent], 1))

    assert (found is None) == (end in "ab")


@pytest.mark.parametrize(
    ("mode", "recorded_mode", "is_listed"),
    [(0o644, None, False), (0o600, None, True), (0o755, None, True), (0o755, 0o755, False), (0o644, 0o755, True)],
)
def test_a_created_file_has_the_recorded_mode_or_the_usual_one(mode, recorded_mode, is_listed):
    records = recorded(change(None, "a", recorded_mode))
    found = find_outside_change(Difference("f", None, file("a", mode)), collect_changes(records, 2))

    assert (found is not None) == is_listed


@pytest.mark.parametrize(
    ("kind", "detail"),
    [("call", {"created_mode": None}), ("call", {"created_mode": "0600"}), ("recovery", {}), ("intent", {})],
)
@pytest.mark.parametrize(("mode", "is_listed"), [(0o644, False), (0o600, False), (0o666, False), (0o755, True)])
def test_a_created_file_whose_mode_is_not_known_has_any_that_is_not_executable(kind, detail, mode, is_listed):
    records = recorded(change(None, "a"), kind="recovery" if kind == "recovery" else "call")
    records[-1].members["detail"].update(detail)
    records = records[:1] if kind == "intent" else records
    found = find_outside_change(Difference("f", None, file("a", mode)), collect_changes(records, 2))

    assert (found is not None) == (is_listed and kind != "recovery")  # it may have been made before the begin


@pytest.mark.parametrize(("original", "is_listed"), [(0o755, False), (0o700, True)])
def test_a_changed_file_keeps_the_mode_that_its_record_says_it_had(original, is_listed):
    records = recorded(change("a", "b"), modes={"f": original})
    difference = Difference("f", file("a", 0o755), file("b", original))
    found = find_outside_change(difference, collect_changes(records, 2))

    assert (found is not None) == is_listed


def test_a_recovery_of_a_change_made_before_the_begin_is_no_difference():
    records = recorded(change("a", "b"), kind="recovery", announced=False)
    same = Difference("f", file("b"), file("b"), has_other_stat=False)

    assert find_outside_change(same, collect_changes(records, 2)) is None


def test_what_was_there_before_is_unknown_but_the_records_after_it_count():
    records = recorded(change("a", "b"))
    explained = Difference("f", None, file("b"), is_before_known=False)
    edited = Difference("f", None, file("c"), is_before_known=False)
    unrecorded = find_outside_change(edited, NO_RECORDS)

    assert find_outside_change(explained, collect_changes(records, 2)) is None
    assert find_outside_change(edited, collect_changes(records, 2)).before.hash == HASHES["b"]
    assert (unrecorded.change, unrecorded.before, unrecorded.is_before_known) == ("modified", None, False)


@pytest.mark.parametrize("record", [{}, {"kind": "call"}, {"kind": "intent", "changes": 1}, {"kind": "plan"}])
def test_records_of_any_form_explain_nothing(record):
    assert collect_changes([Record(record)], 1) == RecordedChanges()


def test_two_files_that_swapped_their_inode_are_not_called_renamed():
    differences = [
        Difference("old", file("a"), None, before_inode=7),
        Difference("new", None, file("b"), after_inode=7),
    ]

    assert {each.change for each in compare(differences, NO_RECORDS).changes} == {"deleted", "created"}


def test_of_equal_files_each_is_the_source_of_one_rename_at_most():
    differences = [Difference(f"old{n}", file("a"), None, before_inode=n) for n in (1, 2)]
    differences += [Difference(f"new{n}", None, file("a"), after_inode=n) for n in (2, 3, 4)]
    found = compare(differences, NO_RECORDS)

    assert [(each.path, each.change, each.source) for each in found.changes] == [
        ("new2", "renamed", "old2"),
        ("new3", "renamed", "old1"),
        ("new4", "created", None),
    ]
    assert found.outside_count == 3


def test_counts_are_exact_beyond_what_is_listed_and_ignored_paths_come_last():
    total = MAX_LISTED + 500
    differences = [Difference(f"{n:06}", None, file("a"), is_ignored=True, after_inode=n + 1) for n in range(total)]
    differences += [Difference(f"own{n}", None, file("a"), after_inode=total + n) for n in range(3)]
    found = compare(differences, NO_RECORDS)

    assert (found.outside_count, len(found.changes)) == (total + 3, MAX_LISTED)
    assert [each.path for each in found.changes[:4]] == ["own0", "own1", "own2", "000000"]


@pytest.mark.parametrize(
    "value",
    [
        {"path": 1},
        {"change": "grown"},
        {"before": {"kind": "house"}},
        {"before": {"kind": "file", "mode": "x"}},
        {"ignored": 1},
    ],
)
def test_a_report_of_another_form_is_refused(value):
    (row,) = compare([Difference("f", None, file("a"))], NO_RECORDS).changes
    report = OutsideReport("s", "", "", (row,), 1, coverage=Coverage(gaps=("unlisted",), state="partial")).as_json()
    report["ungoverned"][0].update(value)

    with pytest.raises((TypeError, ValueError, KeyError)):
        OutsideReport.from_json(report)
