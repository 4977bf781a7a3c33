"""Each lint rule reports its violations, and valid files have none."""

import copy

import pytest

from kaiza.domain import schema_lint

INPUT = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "additionalProperties": False,
    "required": ["path"],
    "properties": {
        "path": {"type": "string", "description": "What to read, relative to the workspace."},
        "paths": {"type": "array", "items": {"$ref": "#/$defs/one"}, "maxItems": 50},
        "cursor": {"type": "string"},
        "pageSize": {"type": "integer", "minimum": 1, "maximum": 200},
        "query": {"type": "string", "maxLength": 512},
        "uri": {"type": "string"},
        "position": {
            "type": "object",
            "additionalProperties": False,
            "required": ["line", "character"],
            "properties": {
                "line": {"type": "integer", "minimum": 0},
                "character": {"type": "integer", "minimum": 0},
            },
        },
    },
    "$defs": {"one": {"type": "string"}},
}
OUTPUT = {
    "$schema": INPUT["$schema"],
    "type": "object",
    "additionalProperties": False,
    "required": ["summary"],
    "properties": {"summary": {"type": "string", "maxLength": 200}},
}
REMOVED = object()


def changed(document, pointer, value):
    """A copy of the document with one value replaced or removed."""
    document = copy.deepcopy(document)
    *steps, last = pointer.split("/")
    parent = document
    for step in steps:
        parent = parent[step]
    if value is REMOVED:
        del parent[last]
    else:
        parent[last] = value
    return document


def rules(document, *, output=False):
    return {found.rule for found in schema_lint.lint("a.json", document, output=output)}


def test_valid_schemas_have_no_findings():
    assert not schema_lint.lint("a.json", INPUT, output=False)
    assert not schema_lint.lint("a.output.json", OUTPUT, output=True)


@pytest.mark.parametrize(
    ("pointer", "value", "rule"),
    [
        ("$schema", REMOVED, "dialect"),
        ("$schema", "http://json-schema.org/draft-07/schema#", "dialect"),
        ("type", "string", "root-object"),
        ("additionalProperties", True, "closed"),
        ("additionalProperties", REMOVED, "closed"),
        ("properties/position/additionalProperties", REMOVED, "closed"),
        ("required", REMOVED, "required"),
        ("required", ["path", "nothing"], "required-unknown"),
        ("oneOf", [{}], "root-plain"),
        ("anyOf", [{}], "root-plain"),
        ("allOf", [{}], "root-plain"),
        ("properties/path/default", "a", "no-default"),
        ("$defs/one/default", None, "no-default"),
        ("properties/path/description", "word " * 33, "description-short"),
        ("properties/path/description", "Such as /home/ann/project", "description-harmless"),
        ("properties/path/description", "Such as ghp_0123456789abcdefghij0123456789", "description-harmless"),
        ("properties/paths/maxItems", REMOVED, "array-bounded"),
        ("properties/path/type", ["array", "null"], "array-bounded"),
        ("properties/paths/items", {"$ref": "other.json#/a"}, "local-reference"),
        ("properties/cursor/type", ["string", "null"], "argument-shape"),
        ("properties/pageSize/maximum", 500, "argument-shape"),
        ("properties/pageSize/minimum", REMOVED, "argument-shape"),
        ("properties/query/maxLength", REMOVED, "argument-shape"),
        ("properties/uri/type", "integer", "argument-shape"),
        ("properties/position/properties/line/minimum", 1, "argument-shape"),
        ("properties/position/properties/character/type", "number", "argument-shape"),
    ],
)
def test_an_input_schema_that_breaks_a_rule_is_found(pointer, value, rule):
    assert rules(changed(INPUT, pointer, value)) == {rule}


@pytest.mark.parametrize(
    ("pointer", "value", "found"),
    [
        ("properties/summary", REMOVED, {"summary", "required-unknown"}),
        ("properties/summary/maxLength", 201, {"summary"}),
        ("properties/summary/maxLength", REMOVED, {"summary"}),
        ("patternProperties", {"^x": {}}, {"no-free-form"}),
        ("additionalProperties", {"type": "string"}, {"closed"}),
        ("properties/free", {"type": ["object", "null"]}, {"closed", "required"}),
        ("properties/free", {"type": ["string", "object"], "required": []}, {"closed"}),
        ("properties/detail", {"type": ["object", "null"]}, {"closed", "required"}),
    ],
)
def test_an_output_schema_that_breaks_a_rule_is_found(pointer, value, found):
    assert rules(changed(OUTPUT, pointer, value), output=True) == found


@pytest.mark.rows("S2-32", "S2-10", "S2-31")
def test_only_the_exempt_members_of_a_record_may_be_open():
    open_object = {"type": ["object", "null"]}
    members = dict.fromkeys(("arguments", "cause", "changes", "detail"), open_object)
    item = {"type": "object", "additionalProperties": False, "required": [], "properties": members}
    document = changed(OUTPUT, "properties/items", {"type": "array", "maxItems": 1, "items": item})

    def open_members(file):
        return [(one.where.rsplit("/")[-1], one.rule) for one in schema_lint.lint(file, document, output=True)]

    assert open_members("read_audit_log.output.json") == [("changes", "closed"), ("changes", "required")]
    assert {name for name, _ in open_members("read_plan.output.json")} == set(members)


def test_nesting_deeper_than_six_levels_is_found():
    deep = {"type": "string"}
    for _ in range(6):
        deep = {"type": "array", "maxItems": 1, "items": deep}

    assert rules(changed(INPUT, "properties/deep", deep)) == {"shallow"}
    assert rules(changed(INPUT, "properties/deep", deep["items"]["items"])) == set()


def test_a_file_that_is_not_an_object_is_found():
    assert rules([1]) == {"root-object"}


ROW = {
    "id": "read_file",
    "title": "Read file",
    "description": "Reads.",
    "category": "files",
    "safety_level": "read",
    "roles": ["WINDSURF"],
    "needs_session": True,
}
FILES = ["read_file.json", "read_file.output.json"]


@pytest.mark.parametrize(
    ("rows", "files", "rule"),
    [
        ([ROW], FILES[:1], "file-missing"),
        ([], FILES, "file-orphan"),
        ([ROW, ROW], FILES, "name-twice"),
        ([ROW | {"id": "Read-File"}], ["Read-File.json", "Read-File.output.json"], "name"),
        ([{key: value for key, value in ROW.items() if key != "category"}], FILES, "catalog-incomplete"),
        ([ROW | {"description": "word " * 33}], FILES, "description-short"),
        ([ROW | {"aliases": ["other_name"]}], FILES, "alias"),
        ([ROW | {"aliases": ["file.read", "file.read"]}], FILES, "alias-twice"),
    ],
)
def test_a_catalog_that_disagrees_with_its_files_is_found(rows, files, rule):
    assert {found.rule for found in schema_lint.lint_catalog(rows, files)} == {rule}


def test_a_catalog_that_agrees_has_no_findings():
    assert not schema_lint.lint_catalog([ROW | {"aliases": ["file.read"]}], FILES)
