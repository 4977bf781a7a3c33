"""A verdict in words."""

import pytest

from kaiza.render import log_verdict

HEAD = {"seq": 12, "entry_hash": "ab" * 32}


def test_an_intact_record_says_what_it_proves_and_what_to_keep():
    told = log_verdict.describe({"verdict": "intact", "records": 12, "head": HEAD, "anchored": True})

    assert told[0] == "Intact: 12 records, unaltered and in order."
    assert "its end was not cut off" in told[1]
    assert f"12:{'ab' * 32}" in told[2]


def test_without_an_anchor_it_says_what_is_not_shown():
    told = " ".join(log_verdict.describe({"verdict": "intact", "records": 1, "head": HEAD, "anchored": False}))

    assert "1 record," in told
    assert "does not show whether its end was cut off" in told


@pytest.mark.parametrize("word", ["broken", "cut_off", "replaced", "missing"])
def test_damage_names_the_way_out(word):
    told = log_verdict.describe({"verdict": word, "records": 3, "head": HEAD, "anchored": False})

    assert told[0].lower().startswith(word.replace("_", " "))
    assert "kaiza audit accept --reason" in told[-1]


def test_a_broken_record_says_where_and_why():
    fault = {"seq": 41, "why": "edited"}
    told = log_verdict.describe({"verdict": "broken", "records": 40, "first_fault": fault, "anchored": False})

    assert told[0] == "Broken at record 41: edited, its bytes are not the ones that were hashed."


def test_an_empty_record_is_intact():
    assert log_verdict.describe({"verdict": "intact", "records": 0, "anchored": False}) == [
        "Intact: nothing has been recorded yet."
    ]
