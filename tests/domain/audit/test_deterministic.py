"""What a deterministic record has in place of times, and how it is recognised."""

import pytest

from kaiza.domain.audit import record
from kaiza.domain.audit.deterministic import is_deterministic, stamp_record

CHECKS = {"checks": [{"command": ["true"], "duration_ms": 12}], "duration_ms": 34, "kept": [5, "x"]}


def test_a_deterministic_record_has_no_duration_at_any_depth():
    stamped = stamp_record(record.new_body("call", duration_ms=56, detail=CHECKS), 3)

    assert stamped["detail"] == {
        "checks": [{"command": ["true"], "duration_ms": 0}],
        "duration_ms": 0,
        "kept": [5, "x"],
        "deterministic": True,
    }
    assert (stamped["duration_ms"], stamped["timestamp"]) == (0, "1970-01-01T00:00:00.002Z")


@pytest.mark.parametrize("detail", [None, {}, [], {"deterministic": False}, {"deterministic": 1}, "deterministic"])
def test_only_the_mark_itself_makes_a_record_deterministic(detail):
    assert not is_deterministic(record.Record({"detail": detail}))
    assert is_deterministic(record.Record(stamp_record(record.new_body("call"), 1)))
