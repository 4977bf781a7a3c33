"""A person's large undo is split into batches that fit into one record each."""

from collections import deque

from kaiza.domain.audit import record, undo_batches
from kaiza.domain.audit.record import Record
from kaiza.domain.change import Change
from kaiza.domain.paths.rel_path import RelPath


def path_of(number):
    return RelPath(("ä" * 100, "b" * 200, f"file-{number}"))


def call(number):
    return {"request_id": f"{number:036d}", "changes": [{"path": str(path_of(number)), "source": None}]}


def split_batches(changes, records):
    calls = undo_batches.UndoneCalls()
    deque(calls.note(map(Record, reversed(records)), lambda _row: True), maxlen=0)
    return list(undo_batches.split_batches(changes, calls))


def test_every_batch_fits_into_its_record_and_no_change_is_missing():
    changes = [Change(path_of(number), "modify", "0" * 64, "1" * 64, 9, mode=0o755) for number in range(2000)]
    batches = split_batches(changes, [call(number) for number in range(2000)])
    for batch in batches:
        modes = {str(change.path): 0o755 for change in batch.changes}
        detail = {"action": "undo", "person": "x" * 200, "undone": list(batch.undone), "modes": modes}
        listed = [change.as_record() for change in batch.changes]
        record.serialize_and_hash(
            record.new_body("person", changes=listed, detail=detail, workspace_root="r" * 4000), 1, "0" * 64
        )

    assert len(batches) > 1
    assert [change for batch in batches for change in batch.changes] == changes
    assert {request_id for batch in batches for request_id in batch.undone} == {
        f"{number:036d}" for number in range(2000)
    }
