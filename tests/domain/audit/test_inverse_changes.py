from kaiza.domain.audit.inverse_changes import PathState, effective_changes, invert


def step(path, before, after, source=None, mode=None, modes=None, **more):
    change = {"path": path, "source": source, "before_hash": before, "after_hash": after, "mode": mode}
    detail = {"modes": modes or {}} | more.pop("detail", {})
    return {"request_id": "r", "tool_name": "write_file", "detail": detail, "changes": [change]} | more


def test_the_inverse_of_several_changes_is_the_first_state():
    way = invert([step("a", None, "1"), step("a", "1", "2"), step("a", "2", "3")])["a"]

    assert (way.latest, way.target, way.blocked) == (PathState("3"), PathState(None), False)


def test_a_foreign_change_in_between_blocks_the_inverse():
    way = invert([step("a", "0", "1"), step("a", "5", "6"), step("a", "6", "7")])["a"]

    assert (way.latest, way.target, way.blocked) == (PathState("7"), PathState("5"), True)


def test_a_change_that_was_already_undone_does_not_block_the_inverse():
    way = invert([step("a", "0", "1"), step("a", "0", "2")])["a"]

    assert (way.target, way.blocked) == (PathState("0"), False)


def test_the_inverse_includes_known_modes():
    way = invert([step("a", "0", "1", modes={"a": 0o755}), step("a", "1", "2", mode=0o600)])["a"]

    assert (way.latest, way.target) == (PathState("2", 0o600), PathState("0", 0o755))


def test_the_inverses_of_a_moves_two_paths_name_each_other():
    found = invert([step("b", "1", "1", source="a", modes={"a": 0o755})])

    assert (found["a"].latest, found["a"].target, found["a"].moved_with) == (
        PathState(None),
        PathState("1", 0o755),
        {"b"},
    )
    assert (found["b"].latest, found["b"].target, found["b"].moved_with) == (
        PathState("1", 0o755),
        PathState(None),
        {"a"},
    )


def test_an_undone_change_is_effective_again_when_the_undo_is_undone():
    made = step("a", "0", "1", request_id="made")
    undo = step("a", "1", "0", request_id="undo", tool_name="undo_changes", detail={"undone": ["made"]})
    redo = step("a", "0", "1", request_id="redo", tool_name=None, detail={"action": "undo", "undone": ["undo"]})

    assert effective_changes([made, undo]) == []
    assert effective_changes([made, undo, redo]) == [made]
