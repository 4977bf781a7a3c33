"""How a person confirms: `[y/N]`, or the plan's id or a word where `approval.confirm` is "id"."""

import json

import pytest


@pytest.fixture
def frozen(kaiza, workspace):
    """A workspace that is frozen; whether it still is."""
    kaiza("freeze", "stop")
    return lambda: json.loads(kaiza("status", "--json").out)["frozen"] is not None


@pytest.mark.parametrize("answer", ["y", "Y", "yes", "YES", " Yes "])
def test_y_and_yes_confirm_in_any_case(frozen, screen, answer):
    prompt = screen("thaw")
    prompt.answer(answer, "Thaw? [y/N] ")

    assert prompt.end() == 0
    assert not frozen()


@pytest.mark.parametrize("answer", ["", "n", "yy", "yes please", "thaw", "\x04"])
def test_every_other_answer_and_none_decline(frozen, screen, answer):
    prompt = screen("thaw")
    prompt.answer(answer)

    assert prompt.end() == 1
    assert frozen()


@pytest.mark.parametrize(("answer", "status"), [("thaw", 0), ("y", 1), ("THAW", 1), ("", 1)])
def test_with_the_stricter_setting_the_word_has_to_be_typed_exactly(frozen, workspace, screen, answer, status):
    (workspace / "kaiza.toml").write_text('[approval]\nconfirm = "id"\n')
    prompt = screen("thaw")
    prompt.answer(answer, "Type thaw to confirm, anything else to cancel: ")

    assert prompt.end() == status
    assert frozen() == bool(status)
