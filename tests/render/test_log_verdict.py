"""The verdict on the log in sentences."""

import pytest

from kaiza.render import log_verdict

HEAD = {"seq": 12, "entry_hash": "ab" * 32}


def test_an_intact_log_is_described_with_its_proof_and_a_checkpoint():
    lines = log_verdict.describe({"verdict": "intact", "records": 12, "head": HEAD, "anchored": True})

    assert lines[0] == "Intact: 12 records, unaltered and in order."
    assert "nothing was cut off the end" in lines[1]
    assert lines[-2:] == ["  kaiza audit verify --head \\", f"    12:{'ab' * 32}"]


def test_without_a_checkpoint_the_missing_proof_is_named():
    lines = " ".join(log_verdict.describe({"verdict": "intact", "records": 1, "head": HEAD, "anchored": False}))

    assert "1 record," in lines
    assert "does not show whether the end was cut off" in lines


@pytest.mark.parametrize("word", ["broken", "cut_off", "replaced", "missing"])
def test_every_kind_of_damage_names_audit_accept(word):
    lines = log_verdict.describe({"verdict": word, "records": 3, "head": HEAD, "anchored": False})

    assert lines[0].lower().startswith(word.replace("_", " "))
    assert "kaiza audit accept --reason" in lines[-1]


def test_a_broken_log_is_described_with_record_and_reason():
    fault = {"seq": 41, "why": "edited"}
    lines = log_verdict.describe({"verdict": "broken", "records": 40, "first_fault": fault, "anchored": False})

    assert lines[0] == "Broken at record 41: edited, its content does not match its hash."


def test_an_empty_log_is_intact():
    assert log_verdict.describe({"verdict": "intact", "records": 0, "anchored": False}) == [
        "Intact: nothing has been recorded yet."
    ]
