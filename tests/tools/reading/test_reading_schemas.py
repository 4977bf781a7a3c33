import orjson
import pytest
from jsonschema import Draft202012Validator, ValidationError

from kaiza.domain import schema_lint
from kaiza.domain.caps import Caps
from kaiza.store.config.schema_registry import SchemaRegistry

REGISTRY = SchemaRegistry()
CAPS = Caps()
TOOLS = ["read_file", "read_files", "list_directory", "find_files", "search_text", "read_location", "file_info"]
SOUND = {
    "read_file": {"path": "a"},
    "read_files": {"paths": ["a"]},
    "list_directory": {"path": "a"},
    "find_files": {"pattern": "*"},
    "search_text": {"query": "a"},
    "read_location": {"uri": "file:///a", "position": {"line": 0, "character": 0}},
    "file_info": {"path": "a"},
}


def arguments_of(tool):
    return Draft202012Validator(REGISTRY.load_tool_schemas(tool).input)


@pytest.mark.parametrize("tool", TOOLS)
def test_the_files_are_schemas_and_keep_the_house_rules(tool):
    schemas = REGISTRY.load_tool_schemas(tool)

    for schema, output in ((schemas.input, False), (schemas.output, True)):
        Draft202012Validator.check_schema(schema)
        assert schema_lint.lint(tool, schema, output=output) == []
    assert all("default" not in told for told in schemas.input["properties"].values())


@pytest.mark.parametrize("tool", TOOLS)
def test_a_model_is_told_in_few_words(tool):
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
def test_a_cap_is_written_in_as_it_holds(tool, argument, value):
    validator = arguments_of(tool)

    assert validator.is_valid({**SOUND[tool], argument: value})
    assert not validator.is_valid({**SOUND[tool], argument: value + 1})
    assert not validator.is_valid({**SOUND[tool], argument: -1})


def test_queries_and_lists_of_paths_are_bounded():
    query, paths = arguments_of("search_text"), arguments_of("read_files")

    assert query.is_valid({"query": "é" * CAPS.query_characters})
    assert not query.is_valid({"query": "x" * (CAPS.query_characters + 1)})
    assert not query.is_valid({"query": ""})
    assert paths.is_valid({"paths": ["a"] * CAPS.read_paths})
    assert not paths.is_valid({"paths": ["a"] * (CAPS.read_paths + 1)})
    assert not paths.is_valid({"paths": []})


@pytest.mark.parametrize("tool", TOOLS)
def test_unknown_missing_null_and_wrongly_typed_arguments_are_refused(tool):
    validator = arguments_of(tool)
    sound = SOUND[tool]
    validator.validate({**sound, "session_id": "any"})

    assert not validator.is_valid({**sound, "more": 1})
    for name in sound:
        assert not validator.is_valid({key: value for key, value in sound.items() if key != name})
    for name in REGISTRY.load_tool_schemas(tool).input["properties"]:
        for wrong in (None, 1.5, [None], {}):
            assert not validator.is_valid({**sound, name: wrong}), (name, wrong)


@pytest.mark.parametrize("tool", TOOLS)
def test_no_output_may_hold_null(tool):
    validator = Draft202012Validator(REGISTRY.load_tool_schemas(tool).output)
    for name in REGISTRY.load_tool_schemas(tool).output["properties"]:
        with pytest.raises(ValidationError):
            validator.validate({name: None})
