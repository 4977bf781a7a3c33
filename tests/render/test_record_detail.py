"""One record in full."""

from kaiza.render import record_detail


def test_a_record_in_full_begins_with_what_it_came_to_and_leaves_out_what_is_null():
    told = list(
        record_detail.render_record(
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

    assert told == [
        "seq         7",
        "outcome     error",
        "error_code  HASH_MISMATCH",
        "arguments   path=a\\u202e.py",
        "changes     path=a  operation=modify",
        "            path=b  operation=create",
        "prev_hash   00",
        "entry_hash  ff",
    ]
