"""Names in records: no two are written alike, and each is read again as the file has it."""

import os

from hypothesis import example, given
from hypothesis import strategies as st

from kaiza.domain.audit import record
from kaiza.domain.audit.recorded_names import recorded_form, restore_names

PIECES = ["\x7f", "\\x7f", "\\", "\\\\", "x7f", "\\\\x7f", "é", "\\xe9", "\u2028", "\x9b", "\x01", "\U0001f600", "a",
          ".", "\\u00e9", "\\U0001f600", "\\udc80"]  # fmt: skip
NAMES = st.lists(st.sampled_from(PIECES) | st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5).map(
    "".join
)
RAW_NAMES = NAMES | st.binary(min_size=1, max_size=8).map(os.fsdecode)


def change(path, source=None):
    numbers = {"size": 1, "lines_added": 1, "lines_removed": 0, "mode": None}
    return {"path": path, "source": source, "operation": "move", "before_hash": None, "after_hash": None, **numbers}


def written(changes, modes=None, **members):
    """A record as the log has it."""
    body = record.new_body("call", changes=changes, detail={"modes": modes or {}}, **members)
    return record.serialize_and_hash(body, 1, record.GENESIS)[1]


@given(st.lists(NAMES, min_size=1, max_size=6, unique=True))
@example(["a\x7f", "a\\x7f", "a\\\\x7f"])
@example(["\\x7f\x7f", "\x7f\x7f", "\\x7f\\x7f"])
@example(["é", "\\xe9", "\\u00e9"])
def test_names_are_read_from_a_record_as_the_files_have_them(names):
    changes = [change(name, source) for name, source in zip(names, reversed(names), strict=True)]
    modes = {name: number for number, name in enumerate(names)}
    in_log = written(changes, modes, arguments={"paths": names}, cause={"path": names[0]})
    found = restore_names(in_log)

    assert found.changes == changes
    assert found.detail == {"modes": modes}
    assert found.arguments["paths"] == names
    assert found.cause["path"] == names[0]
    assert "\x7f" not in str(in_log.members)
    assert restore_names(found) == found


@given(RAW_NAMES, RAW_NAMES)
@example(os.fsdecode(b"\xff"), "\\xff")
@example(os.fsdecode(b"\\xff\xff"), os.fsdecode(b"\xff\\xff"))
def test_two_names_are_never_written_alike(one, other):
    records = [written([change(name)]) for name in (one, other)]
    spelled = [(each.changes, each.detail) for each in records]

    assert (spelled[0] == spelled[1]) == (one == other)


@given(NAMES)
def test_a_name_is_searched_for_as_records_spell_it(name):
    assert written([change(name)]).changes[0]["path"] == recorded_form(name)


HOSTILE = [
    *("changes.0.path", "changes", "changes.0", "changes.9.path", "changes.x.path", "changes.0.path.a"),
    *("detail.modes", "detail", "detail.escaped", "seq", "", ".", "." * 5000, "changes." + "9" * 5000 + ".path"),
    *(7, None, ["a"], "changes.\u0662.path"),
]


@given(st.lists(st.sampled_from(HOSTILE), max_size=5), st.sampled_from([2, 1, None, "2", True, [2]]), RAW_NAMES)
def test_a_hostile_list_of_members_restores_nothing_else(escaped, escaping, name):
    odd = {**written([change("\\xff\\ud800\\Uffffffff")]).members, "detail": {"escaped": escaped, "escaping": escaping}}
    found = restore_names(record.Record(odd))

    assert found.changes == odd["changes"]
    assert found.seq == 1
    assert "detail" in found.members
