import orjson
import pytest
from jsonschema import Draft202012Validator, ValidationError

from kaiza.domain import schema_lint
from kaiza.domain.caps import Caps
from kaiza.store.config.schema_registry import SchemaRegistry

REGISTRY = SchemaRegistry()
CAPS = Caps()
TOOLS = ["read_file", "read_files", "list_directory", "find_files", "search_text", "read_location", "file_info"]
CHANGING = ["write_file", "edit_file", "apply_patch", "move_file", "delete_file"]
VALID = {
    "read_file": {"path": "a"},
    "read_files": {"paths": ["a"]},
    "list_directory": {"path": "a"},
    "find_files": {"pattern": "*"},
    "search_text": {"query": "a"},
    "read_location": {"uri": "file:///a", "position": {"line": 0, "character": 0}},
    "file_info": {"path": "a"},
}


def input_validator(tool):
    return Draft202012Validator(REGISTRY.load_tool_schemas(tool).input)


@pytest.mark.parametrize("tool", [*TOOLS, *CHANGING])
def test_schema_files_are_valid_schemas_and_pass_the_lint(tool):
    schemas = REGISTRY.load_tool_schemas(tool)

    for schema, output in ((schemas.input, False), (schemas.output, True)):
        Draft202012Validator.check_schema(schema)
        assert schema_lint.lint(tool, schema, output=output) == []


@pytest.mark.parametrize("tool", TOOLS)
def test_input_schemas_are_shorter_than_1000_bytes(tool):
    assert len(orjson.dumps(REGISTRY.load_tool_schemas(tool).input)) < 1000


@pytest.mark.parametrize(
    ("tool", "argument", "value"),
    [
        ("read_file", "max_lines", CAPS.read_lines),
        ("list_directory", "pageSize", CAPS.page_items),
        ("find_files", "pageSize", CAPS.page_items),
        ("search_text", "pageSize", CAPS.page_items),
        ("search_text", "context_lines", CAPS.context_lines),
        ("read_location", "context_lines", CAPS.context_lines),
    ],
)
def test_schemas_state_the_caps_that_are_enforced(tool, argument, value):
    validator = input_validator(tool)

    assert validator.is_valid({**VALID[tool], argument: value})
    assert not validator.is_valid({**VALID[tool], argument: value + 1})
    assert not validator.is_valid({**VALID[tool], argument: -1})


def test_schemas_bound_queries_and_lists_of_paths():
    query, paths = input_validator("search_text"), input_validator("read_files")

    assert query.is_valid({"query": "é" * CAPS.query_characters})
    assert not query.is_valid({"query": "x" * (CAPS.query_characters + 1)})
    assert not query.is_valid({"query": ""})
    assert paths.is_valid({"paths": ["a"] * CAPS.read_paths})
    assert not paths.is_valid({"paths": ["a"] * (CAPS.read_paths + 1)})
    assert not paths.is_valid({"paths": []})


@pytest.mark.parametrize("tool", TOOLS)
def test_unknown_missing_null_and_wrongly_typed_arguments_are_refused(tool):
    validator = input_validator(tool)
    valid = VALID[tool]
    validator.validate({**valid, "session_id": "any"})

    assert not validator.is_valid({**valid, "more": 1})
    for name in valid:
        assert not validator.is_valid({key: value for key, value in valid.items() if key != name})
    for name in REGISTRY.load_tool_schemas(tool).input["properties"]:
        for wrong in (None, 1.5, [None], {}):
            assert not validator.is_valid({**valid, name: wrong}), (name, wrong)


@pytest.mark.parametrize("tool", TOOLS)
def test_output_schemas_forbid_null(tool):
    validator = Draft202012Validator(REGISTRY.load_tool_schemas(tool).output)
    for name in REGISTRY.load_tool_schemas(tool).output["properties"]:
        with pytest.raises(ValidationError):
            validator.validate({name: None})
