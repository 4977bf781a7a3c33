from kaiza.domain.audit.inverse_changes import PathState, invert, net_changes
from kaiza.domain.audit.record import Record
from kaiza.domain.audit.undone_changes import effective_changes


def record(path, before, after, source=None, mode=None, modes=None, **more):
    change = {"path": path, "source": source, "before_hash": before, "after_hash": after, "mode": mode}
    detail = {"modes": modes or {}} | more.pop("detail", {})
    return Record({"request_id": "r", "tool_name": "write_file", "detail": detail, "changes": [change]} | more)


def invert_in_order(records):
    return invert(reversed(records))


def test_the_inverse_of_several_changes_is_the_first_state():
    inverse = invert_in_order([record("a", None, "1"), record("a", "1", "2"), record("a", "2", "3")])["a"]

    assert (inverse.latest, inverse.target, inverse.blocked) == (PathState("3"), PathState(None), False)


def test_a_foreign_change_in_between_blocks_the_inverse():
    inverse = invert_in_order([record("a", "0", "1"), record("a", "5", "6"), record("a", "6", "7")])["a"]

    assert (inverse.latest, inverse.target, inverse.blocked) == (PathState("7"), PathState("5"), True)


def test_a_change_that_was_already_undone_does_not_block_the_inverse():
    inverse = invert_in_order([record("a", "0", "1"), record("a", "0", "2")])["a"]

    assert (inverse.target, inverse.blocked) == (PathState("0"), False)


def test_the_inverse_includes_known_modes():
    inverse = invert_in_order([record("a", "0", "1", modes={"a": 0o755}), record("a", "1", "2", mode=0o600)])["a"]

    assert (inverse.latest, inverse.target) == (PathState("2", 0o600), PathState("0", 0o755))


def test_the_inverses_of_a_moves_two_paths_name_each_other():
    inverses = invert_in_order([record("b", "1", "1", source="a", modes={"a": 0o755})])

    assert (inverses["a"].latest, inverses["a"].target, inverses["a"].moved_with) == (
        PathState(None),
        PathState("1", 0o755),
        {"b"},
    )
    assert (inverses["b"].latest, inverses["b"].target, inverses["b"].moved_with) == (
        PathState("1", 0o755),
        PathState(None),
        {"a"},
    )


def test_an_undone_change_is_effective_again_when_the_undo_is_undone():
    made = record("a", "0", "1", request_id="made")
    undo = record("a", "1", "0", request_id="undo", tool_name="undo_changes", detail={"undone": ["made"]})
    redo = record("a", "0", "1", request_id="redo", tool_name=None, detail={"action": "undo", "undone": ["undo"]})

    assert effective_changes([made, undo]) == []
    assert effective_changes([made, undo, redo]) == [made]


def test_a_change_that_an_undo_names_but_did_not_reach_is_still_effective():
    first = record("a", "0", "1", request_id="first")
    second = record("a", "5", "6", request_id="second")
    undo = record("a", "6", "5", tool_name="undo_changes", detail={"undone": ["second", "first"]})

    assert effective_changes([first, second, undo]) == [first]


def hash_change(path, before, after, source=None):
    return {"path": path, "source": source, "before_hash": before, "after_hash": after}


def test_a_file_changed_twice_is_one_net_change():
    assert net_changes([hash_change("a", "1", "2"), hash_change("a", "2", "3")]) == [
        {"path": "a", "operation": "modify", "before_hash": "1", "after_hash": "3"}
    ]


def test_a_file_created_and_deleted_is_not_a_net_change():
    assert net_changes([hash_change("a", None, "1"), hash_change("a", "1", None)]) == []


def test_an_undone_change_is_not_a_net_change():
    assert net_changes([hash_change("a", "1", "2"), hash_change("a", "2", "1")]) == []


def test_the_net_change_of_a_move_is_a_delete_and_a_create():
    assert net_changes([hash_change("new", "1", "1", source="old")]) == [
        {"path": "new", "operation": "create", "after_hash": "1"},
        {"path": "old", "operation": "delete", "before_hash": "1"},
    ]
