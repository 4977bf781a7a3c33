from kaiza.domain.audit.inverse_changes import net_changes


def change(path, before, after, source=None):
    return {"path": path, "source": source, "before_hash": before, "after_hash": after}


def test_a_file_changed_twice_is_one_row_from_first_to_last():
    assert net_changes([change("a", "1", "2"), change("a", "2", "3")]) == [
        {"path": "a", "operation": "modify", "before_hash": "1", "after_hash": "3"}
    ]


def test_what_was_made_and_removed_again_is_no_change():
    assert net_changes([change("a", None, "1"), change("a", "1", None)]) == []


def test_what_was_undone_is_no_change():
    assert net_changes([change("a", "1", "2"), change("a", "2", "1")]) == []


def test_a_move_is_a_file_less_here_and_one_more_there():
    assert net_changes([change("new", "1", "1", source="old")]) == [
        {"path": "new", "operation": "create", "after_hash": "1"},
        {"path": "old", "operation": "delete", "before_hash": "1"},
    ]
