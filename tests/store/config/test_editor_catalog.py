"""The catalog in the editor dialect's form."""

import pytest

from kaiza.domain.tool_card import ToolOffer
from kaiza.store.config.editor_catalog import EditorCatalog
from kaiza.store.config.schema_registry import SchemaRegistry, list_items

REGISTRY = SchemaRegistry()
ALL = ToolOffer(allowed=("allow_checks",))
CATALOG = EditorCatalog(REGISTRY, ALL)
NAMES = [row["id"] for row in REGISTRY.catalog()]
MEMBER_KEYS = {"type", "required", "description", "minimum", "maximum", "enum", "items"}


def names(**filters):
    return [item["id"] for item in CATALOG.list_tools(**filters)]


@pytest.mark.rows("S4-22")
def test_every_tool_is_listed_by_id_with_its_schemas():
    items = CATALOG.list_tools()

    assert [item["id"] for item in items] == sorted(NAMES)
    for item in items:
        texts = [item[key] for key in ("id", "name", "title", "description", "category", "safetyLevel", "tier")]
        assert all(isinstance(text, str) and text for text in texts)
        assert item["name"] == item["id"]
        assert item["inputSchema"] == REGISTRY.read_document(f"{item['id']}.json")
        assert item["outputSchema"] == REGISTRY.read_document(f"{item['id']}.output.json")


@pytest.mark.rows("S4-13")
def test_a_tier_filters_the_list():
    read = {row["id"] for row in REGISTRY.catalog() if row["safety_level"] == "read"}

    assert set(names(tier="core")) == read
    assert set(names(tier="governed")) == set(NAMES) - read
    assert names(tier="pro") == []
    assert names(tier="core", category="changes") == []


def test_a_core_server_lists_only_tools_that_read():
    core = ToolOffer(tier="core")
    read_only = {item["name"]: item["annotations"]["readOnlyHint"] for item in list_items(REGISTRY, core)}

    assert read_only
    assert all(read_only.values())
    assert (
        read_only.keys()
        <= {item["id"] for item in EditorCatalog(REGISTRY, core).list_tools()}
        == set(names(tier="core"))
    )


@pytest.mark.rows("S4-23", "S4-24")
@pytest.mark.parametrize("name", NAMES)
def test_a_description_has_every_property_of_the_schemas(name):
    described = EditorCatalog(REGISTRY, ALL).describe_tool(name)
    schemas = REGISTRY.load_tool_schemas(name)

    assert list(described) == [
        "id", "name", "description", "category", "safetyLevel", "tier", "inputs", "outputs", "notes"
    ]  # fmt: skip
    assert isinstance(described["notes"], str)
    for members, schema in ((described["inputs"], schemas.input), (described["outputs"], schemas.output)):
        assert list(members) == list(schema["properties"])
        assert {key for key, member in members.items() if member["required"]} == set(schema["required"])
        assert all(member.keys() <= MEMBER_KEYS and isinstance(member["type"], str) for member in members.values())
        assert "$ref" not in str(members)


@pytest.mark.rows("S4-24")
def test_a_description_carries_bounds_and_items():
    inputs = EditorCatalog(REGISTRY, ALL).describe_tool("find_files")["inputs"]
    outputs = EditorCatalog(REGISTRY, ALL).describe_tool("find_files")["outputs"]

    assert inputs["pageSize"] == {"type": "integer", "required": False, "minimum": 1, "maximum": 200}
    assert inputs["pattern"]["required"] is True
    assert outputs["items"]["items"]["properties"]["type"]["enum"] == ["file", "directory", "link", "other"]


def test_an_unknown_tool_has_no_description():
    assert EditorCatalog(REGISTRY, ALL).describe_tool("scene.hierarchy.dump") is None
    assert EditorCatalog(REGISTRY, ToolOffer()).describe_tool("run_checks") is None
    assert EditorCatalog(REGISTRY, ToolOffer(tier="core")).describe_tool("write_file")["tier"] == "governed"
