import pytest

from kaiza.domain import error_envelope, errors, plain_values


@pytest.mark.rows("S1-67", "S1-90")
def test_an_exception_becomes_an_error_with_its_message_code_and_name():
    error = errors.SystemError.from_unknown(ValueError("x"), {"tool_name": "read_file"})

    assert error.error_code == "UNKNOWN_TOOL_FAILURE"
    assert error_envelope.bound_cause(error.cause) == {"message": "x", "code": None, "name": "ValueError"}


@pytest.mark.rows("S1-91", "S1-92")
@pytest.mark.parametrize(("thrown", "cause"), [("boom", "boom"), ({"a": 1}, {"a": 1})])
def test_a_string_or_an_object_becomes_an_error_with_itself_as_the_cause(thrown, cause):
    error = errors.SystemError.from_unknown(thrown)

    assert error.error_code == "UNKNOWN_TOOL_FAILURE"
    assert error_envelope.bound_cause(error.cause) == cause


@pytest.mark.rows("S1-64")
def test_from_unknown_returns_a_system_error_unchanged():
    ours = errors.SystemError.tool_failure("FILE_NOT_FOUND")

    assert errors.SystemError.from_unknown(ours) is ours


@pytest.mark.rows("S1-68", "S1-93")
def test_an_invariant_violation_has_its_invariant_id():
    error = errors.SystemError.invariant_violation("MANDATORY_DIAGNOSTICS", {"human_message": "No."})

    assert (error.error_code, error.invariant_id) == ("INVARIANT_VIOLATION", "MANDATORY_DIAGNOSTICS")


@pytest.mark.rows("S1-69")
def test_a_tool_failure_has_its_code():
    assert errors.SystemError.tool_failure("INVALID_PATH", {"human_message": "No."}).error_code == "INVALID_PATH"


def test_an_unregistered_code_cannot_be_raised():
    with pytest.raises(KeyError):
        errors.SystemError.tool_failure("MADE_UP")


def test_absolute_paths_are_removed_from_messages():
    description = plain_values.describe_exception(ValueError("cannot open '/home/ada/secret/key' now"))

    assert "/home" not in description["message"]


def test_an_os_error_is_described_without_its_file_name():
    description = plain_values.describe_exception(FileNotFoundError(2, "No such file or directory", "/home/ada/x"))

    assert description == {"message": "No such file or directory", "code": 2, "name": "FileNotFoundError"}


@pytest.mark.rows("S1-74")
def test_an_exception_that_claims_another_class_is_described_as_what_it_is():
    liar = type("LiarError", (ValueError,), {"__class__": errors.SystemError})("x")

    assert plain_values.describe_exception(liar) == {"message": "x", "code": None, "name": "LiarError"}
    assert errors.SystemError.from_unknown(liar).error_code == "UNKNOWN_TOOL_FAILURE"


class Stop(BaseException):
    """Not an Exception: what catches those lets it through."""


@pytest.mark.rows("S1-73")
def test_an_exception_whose_text_raises_anything_at_all_is_described():
    def stop(_):
        raise Stop

    described = plain_values.describe_exception(type("MuteError", (ValueError,), {"__str__": stop})("x"))

    assert described == {"message": "<unreadable>", "code": None, "name": "MuteError"}
