"""Contract files are found, identified by content, and validated without coercion."""

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import ValidationError

from kaiza.store.config.schema_registry import SchemaRegistry

INPUT = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"count": {"type": "integer"}, "flag": {"type": "boolean"}},
    "required": [],
}


@pytest.fixture
def registry(tmp_path):
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "read_file.json").write_text(json.dumps(INPUT))
    (tmp_path / "tools" / "read_file.output.json").write_text('{"type":"object"}')
    (tmp_path / "catalog.json").write_text('{"tools":[{"id":"read_file"}]}')
    return SchemaRegistry(tmp_path)


@pytest.mark.rows("S3-15")
def test_a_tool_is_loaded_with_both_validators(registry):
    io = registry.load_tool_io("read_file")

    io.input.validate({"count": 1})
    io.output.validate({})
    with pytest.raises(ValidationError):
        io.input.validate({"unknown": 1})


@pytest.mark.rows("S2-13")
@pytest.mark.parametrize("arguments", [{"count": "5"}, {"count": 5.0}, {"count": True}, {"flag": 1}, {"count": None}])
def test_values_are_not_coerced(registry, arguments):
    validator = registry.load_tool_io("read_file").input

    assert len(list(validator.iter_errors(arguments))) == len(list(validator.find_faults(arguments))) == 1


@pytest.mark.rows("S3-16")
def test_validators_are_reused_while_the_contract_is_the_same(registry, tmp_path):
    first, same = registry.load_tool_io("read_file"), registry.load_tool_io("read_file")
    (tmp_path / "tools" / "read_file.json").write_text(json.dumps(INPUT, indent=4, sort_keys=True))
    reformatted = SchemaRegistry(tmp_path).fingerprint("read_file")
    (tmp_path / "tools" / "read_file.output.json").write_text('{"type":"object","required":[]}')
    changed = SchemaRegistry(tmp_path).fingerprint("read_file")

    assert first is same
    assert registry.fingerprint("read_file") == reformatted != changed


@pytest.mark.parametrize("name", ["write_file", "../catalog", "", "Read_File", "read_file.output"])
def test_an_unknown_tool_is_a_key_error(registry, name):
    with pytest.raises(KeyError):
        registry.load_tool_io(name)


@given(
    st.dictionaries(
        st.sampled_from(["path", "start_line", "max_lines", "byte_offset", "session_id", "other"]),
        st.none() | st.booleans() | st.integers(-2, 6000) | st.sampled_from([0.0, 5.0, 1.5]) | st.text(max_size=3),
    )
)
def test_values_that_pass_the_fast_check_have_no_errors(arguments):
    validator = SchemaRegistry().load_tool_io("read_file").input

    assert not validator.is_surely_valid(arguments) or not list(validator.iter_errors(arguments))


EDIT = {"path": "a", "expected_hash": "0" * 64, "plan_hash": "0" * 64, "edits": [{"old_text": "a", "new_text": "b"}]}
ODD = st.none() | st.booleans() | st.integers(-2, 2**70) | st.sampled_from([0.0, 5.0, 0.5, 1e300]) | st.text(max_size=3)
VALUES = st.recursive(
    ODD | st.sampled_from(EDIT["edits"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["old_text", "new_text", "range", "start", "line", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)


def described(validator, arguments):
    """The faults by jsonschema, in the same form."""
    for error in validator.iter_errors(arguments):
        value = error.validator_value
        if error.validator == "required":
            value = [name for name in value if name not in error.instance]
        if error.validator == "additionalProperties":
            value = [name for name in error.instance if name not in error.schema["properties"]]
        yield from ((error.validator, repr(each), tuple(error.absolute_path)) for each in _each(error.validator, value))


def _each(keyword, value):
    return value if keyword in {"required", "additionalProperties"} else [value]


@given(
    arguments=st.dictionaries(
        st.sampled_from([*EDIT, "dry_run", "phase_id", "session_id", "other"]), VALUES, max_size=6
    ),
    given=st.sets(st.sampled_from(sorted(EDIT))),
)
def test_both_validators_find_the_same_faults(arguments, given):
    validator = SchemaRegistry().load_tool_io("edit_file").input
    value = {**{name: EDIT[name] for name in given}, **arguments}
    found = {
        (fault.keyword, repr(each), fault.path)
        for fault in validator.find_faults(value)
        for each in _each(fault.keyword, fault.value)
    }

    assert found == set(described(validator, value))


def test_a_refused_argument_does_not_import_jsonschema():
    script = """
import sys
from kaiza.store.config.schema_registry import SchemaRegistry
faults = list(SchemaRegistry().load_tool_io("read_file").input.find_faults({"path": 5, "x": 5.0}))
print(len(faults), [name for name in ("jsonschema", "referencing", "attrs") if name in sys.modules])
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert run.stdout.strip() == "2 []"


def test_valid_arguments_pass_the_fast_check_and_floats_never_do():
    validator = SchemaRegistry().load_tool_io("read_file").input

    assert validator.is_surely_valid({"path": "a", "max_lines": 5})
    assert not validator.is_surely_valid({"path": "a", "max_lines": 5.0})
