import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaiza.domain import error_envelope, errors

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.builds(object),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.sets(st.integers()),
)


def walk(value):
    yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inner:
        yield from walk(one)


def depth(value):
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(depth, inner), default=0)


@pytest.mark.rows("S1-56", "S1-57", "S1-96")
@given(ANYTHING)
def test_any_cause_becomes_bounded_json(value):
    cause = error_envelope.bound_cause(value)

    assert cause is None or isinstance(cause, str | dict)
    assert len(json.dumps(cause, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()) <= 4096
    assert depth(cause) <= 6
    assert all(one is None or isinstance(one, str | int | bool | dict | list) for one in walk(cause))


@pytest.mark.rows("S1-56")
def test_a_cause_that_contains_itself_is_cut():
    endless = {}
    endless["again"] = endless

    assert depth(error_envelope.bound_cause(endless)) <= 6


@pytest.mark.rows("S1-56")
def test_a_cause_that_contains_itself_many_times_is_cut():
    endless = {}
    endless.update({str(number): [endless] * 64 for number in range(64)})

    assert error_envelope.bound_cause(endless)["cut"] is True


@pytest.mark.rows("S1-58")
def test_an_exception_inside_a_cause_becomes_message_code_and_name():
    assert error_envelope.bound_cause({"error": ValueError("x")})["error"] == {
        "message": "x",
        "code": None,
        "name": "ValueError",
    }


@pytest.mark.rows("S1-4", "S1-5")
def test_an_envelope_has_exactly_the_eleven_keys():
    envelope = errors.SystemError.startup_failure("BOOTSTRAP_FAILURE").to_envelope()

    assert tuple(envelope) == error_envelope.KEYS
    assert len(envelope) == 11
    assert envelope["tool_name"] == "startup"
