from kaiza.domain.audit.inverse_changes import net_changes


def change(path, before, after, source=None):
    return {"path": path, "source": source, "before_hash": before, "after_hash": after}


def test_a_file_changed_twice_is_one_net_change():
    assert net_changes([change("a", "1", "2"), change("a", "2", "3")]) == [
        {"path": "a", "operation": "modify", "before_hash": "1", "after_hash": "3"}
    ]


def test_a_file_created_and_deleted_is_not_a_net_change():
    assert net_changes([change("a", None, "1"), change("a", "1", None)]) == []


def test_an_undone_change_is_not_a_net_change():
    assert net_changes([change("a", "1", "2"), change("a", "2", "1")]) == []


def test_the_net_change_of_a_move_is_a_delete_and_a_create():
    assert net_changes([change("new", "1", "1", source="old")]) == [
        {"path": "new", "operation": "create", "after_hash": "1"},
        {"path": "old", "operation": "delete", "before_hash": "1"},
    ]
