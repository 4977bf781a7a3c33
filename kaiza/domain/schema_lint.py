"""Linter of the tools' schema files and catalog. Does not check that a file is valid JSON Schema."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kaiza.domain.caps import Caps

JSON_SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"
MAX_DESCRIPTION = 160
MAX_DEPTH = 6
_TOOL_NAME = re.compile(r"[a-z_]+")
_ALIAS = re.compile(r"[a-z_]+(?:\.[a-z_]+)+")
_ABSOLUTE_PATH = re.compile(r"(?<![\w.<>])/(?:home|Users|tmp|etc|usr|var|root|opt|mnt|work)/|\b[A-Z]:\\")
_TOKEN = re.compile(r"(?=[A-Za-z+=_-]*\d)[A-Za-z0-9+=_-]{32,}")
_CAPS = Caps()
_MAX_SUMMARY = _CAPS.summary_characters
_CLOSED_OBJECT_RULES = frozenset({"closed", "required"})
_OPEN_MEMBERS: Mapping[str, frozenset[str]] = {
    "read_audit_log.output.json": frozenset(
        f"/properties/items/items/properties/{name}" for name in ("cause", "arguments", "detail")
    )
}
"""Members of a record whose form depends on code, tool and kind. They are for people; programs use the closed ones."""
_FIXED_OUTPUTS = frozenset(
    f"{name}.output.json" for name in ("context_resolve", "context_list_caches", "context_inspect_cache")
)
"""Outputs whose members another specification fixes: they have no summary."""
_NAMED_SUBSCHEMAS = ("properties", "$defs", "patternProperties", "dependentSchemas")
_SUBSCHEMAS = ("items", "additionalProperties", "contains", "not", "if", "then", "else", "propertyNames")
_LISTED_SUBSCHEMAS = ("oneOf", "anyOf", "allOf", "prefixItems")
_CATALOG_KEYS = frozenset({"id", "title", "category", "safety_level", "roles", "needs_session"})


@dataclass(frozen=True, slots=True)
class SchemaFinding:
    """Violation of one rule at one place of a file. `message` says what to write instead."""

    file: str
    where: str
    rule: str
    message: str

    def as_json(self) -> dict[str, str]:
        """JSON form for `kaiza schema lint --json`."""
        return {"file": self.file, "where": self.where, "rule": self.rule, "message": self.message}


@dataclass(frozen=True, slots=True)
class _SchemaNode:
    """One schema inside a file, with its JSON pointer and nesting depth."""

    where: str
    depth: int
    schema: Mapping[str, Any]


_Violations = Iterator[tuple[str, str, str]]
"""JSON pointer, rule, and what to write instead."""


def lint(file: str, document: object, *, output: bool) -> list[SchemaFinding]:
    """Findings in one schema file."""
    if not isinstance(document, Mapping):
        return [SchemaFinding(file, "", "root-object", 'Make the file one JSON object with "type": "object".')]
    rules = (_check_object, _check_value, _check_description, _check_output if output else _check_input)
    faults = list(_lint_root(document, output=output))
    for node in _walk_nodes(document):
        faults += [fault for rule in rules for fault in rule(node)]
    return [
        SchemaFinding(file, where, rule, message)
        for where, rule, message in faults
        if not (rule == "summary" and file in _FIXED_OUTPUTS)
        and not (rule in _CLOSED_OBJECT_RULES and where in _OPEN_MEMBERS.get(file, ()))
    ]


def lint_catalog(rows: Sequence[Mapping[str, Any]], files: Sequence[str]) -> list[SchemaFinding]:
    """Findings in the catalog, and differences between it and the files beside it."""
    names = [str(row.get("id")) for row in rows]
    expected = {name + ending for name in names for ending in (".json", ".output.json")}
    orphans = sorted(set(files) - expected)
    faults = [
        *(("", "file-missing", f"Write tools/{file}.") for file in sorted(expected - set(files))),
        *(("", "file-orphan", f"List the tool of tools/{file}, or delete the file.") for file in orphans),
        *(each for number, row in enumerate(rows) for each in _lint_row(number, row, names)),
        *_lint_aliases(rows),
    ]
    return [SchemaFinding("catalog.json", *fault) for fault in faults]


def _lint_row(number: int, row: Mapping[str, Any], names: Sequence[str]) -> _Violations:
    name = str(row.get("id"))
    if not _TOOL_NAME.fullmatch(name):
        yield f"/{number}/id", "name", "Use lower-case letters and underscores only."
    if names.index(name) < number:
        yield f"/{number}/id", "name-twice", f"List {name} once."
    if missing := sorted(_CATALOG_KEYS - set(row)):
        yield f"/{number}", "catalog-incomplete", f"Add {', '.join(missing)}."
    yield from _check_description(_SchemaNode(f"/{number}", 1, row))


def _lint_aliases(rows: Sequence[Mapping[str, Any]]) -> _Violations:
    seen: set[str] = set()
    for number, row in enumerate(rows):
        for index, alias in enumerate(row.get("aliases", ())):
            where = f"/{number}/aliases/{index}"
            if not _ALIAS.fullmatch(alias):
                yield where, "alias", "Use lower-case words joined by dots."
            if alias in seen:
                yield where, "alias-twice", f"Give {alias} to one tool."
            seen.add(alias)


def _lint_root(document: Mapping[str, Any], *, output: bool) -> _Violations:
    if document.get("$schema") != JSON_SCHEMA_DIALECT:
        yield "", "dialect", f'Set "$schema" to "{JSON_SCHEMA_DIALECT}".'
    if document.get("type") != "object":
        yield "", "root-object", 'Set "type" to "object".'
    for key in ("oneOf", "anyOf", "allOf"):
        if key in document:
            yield f"/{key}", "root-plain", f"Remove {key} from the root: clients refuse it."
    if output and "summary" not in document.get("properties", {}):
        yield "/properties", "summary", f'Add "summary", a string of at most {_MAX_SUMMARY} characters.'


def _walk_nodes(document: Mapping[str, Any]) -> Iterator[_SchemaNode]:
    stack = [_SchemaNode("", 1, document)]
    while stack:
        node = stack.pop()
        yield node
        stack += list(_children(node))[::-1]


def _children(node: _SchemaNode) -> Iterator[_SchemaNode]:
    for key, value in node.schema.items():
        if key in _SUBSCHEMAS and isinstance(value, Mapping):
            yield _SchemaNode(f"{node.where}/{key}", node.depth + 1, value)
        elif key in _NAMED_SUBSCHEMAS and isinstance(value, Mapping):
            depth = 1 if key == "$defs" else node.depth + 1
            yield from (_SchemaNode(f"{node.where}/{key}/{name}", depth, schema) for name, schema in value.items())
        elif key in _LISTED_SUBSCHEMAS and isinstance(value, list):
            yield from (
                _SchemaNode(f"{node.where}/{key}/{index}", node.depth + 1, schema) for index, schema in enumerate(value)
            )


def _check_object(node: _SchemaNode) -> _Violations:
    if not _has_type(node, "object") and "properties" not in node.schema:
        return
    if node.schema.get("additionalProperties") is not False:
        yield node.where, "closed", 'Set "additionalProperties" to false.'
    if not isinstance(node.schema.get("required"), list):
        yield node.where, "required", 'List the required properties under "required"; use [] for none.'
        return
    for name in node.schema["required"]:
        if name not in node.schema.get("properties", {}):
            yield f"{node.where}/required", "required-unknown", f"Define {name}, or remove it from the list."


def _check_value(node: _SchemaNode) -> _Violations:
    if "default" in node.schema:
        yield f"{node.where}/default", "no-default", "Remove the default: defaults are not applied."
    reference = node.schema.get("$ref")
    if reference is not None and not str(reference).startswith("#/"):
        yield f"{node.where}/$ref", "local-reference", 'Put the definition under "$defs" of the same file.'
    if node.depth > MAX_DEPTH:
        yield node.where, "shallow", f"Nest at most {MAX_DEPTH} levels deep."


def _check_description(node: _SchemaNode) -> _Violations:
    text = node.schema.get("description")
    if not isinstance(text, str):
        return
    where = f"{node.where}/description"
    if len(text) > MAX_DESCRIPTION:
        yield where, "description-short", f"Use at most {MAX_DESCRIPTION} characters, not {len(text)}."
    if _ABSOLUTE_PATH.search(text) or _TOKEN.search(text):
        yield where, "description-harmless", "Remove absolute paths and anything that looks like a token."


def _check_input(node: _SchemaNode) -> _Violations:
    if _has_type(node, "array") and "maxItems" not in node.schema:
        yield node.where, "array-bounded", 'Set "maxItems".'
    # An argument with a well-known name has the same schema in every tool.
    for name, schema in node.schema.get("properties", {}).items():
        shape = _SHAPES.get(name)
        if shape and isinstance(schema, Mapping) and any(schema.get(key) != value for key, value in shape.items()):
            yield f"{node.where}/properties/{name}", "argument-shape", _SHAPE_FIXES[name]


def _check_output(node: _SchemaNode) -> _Violations:
    if "patternProperties" in node.schema:
        yield f"{node.where}/patternProperties", "no-free-form", "Use an array of objects instead of a map."
    summary = node.schema.get("properties", {}).get("summary")
    if node.where == "" and isinstance(summary, Mapping) and summary.get("maxLength", _MAX_SUMMARY + 1) > _MAX_SUMMARY:
        yield "/properties/summary", "summary", f'Set "maxLength": {_MAX_SUMMARY}.'


def _has_type(node: _SchemaNode, name: str) -> bool:
    """Whether `type` is this name, or a list that contains it."""
    declared = node.schema.get("type")
    return name in declared if isinstance(declared, list) else declared == name


# The members, and their values, that the schema of an argument with this name must have.
_SHAPES: Mapping[str, Mapping[str, Any]] = {
    "pageSize": {"type": "integer", "minimum": 1, "maximum": _CAPS.page_items},
    "query": {"type": "string", "maxLength": _CAPS.query_characters},
    "cursor": {"type": "string"},
    "uri": {"type": "string"},
    "line": {"type": "integer", "minimum": 0},
    "character": {"type": "integer", "minimum": 0},
}
_SHAPE_FIXES = {
    "pageSize": f'Make it an integer with "minimum": 1 and "maximum": {_CAPS.page_items}.',
    "query": f'Make it a string with "maxLength": {_CAPS.query_characters}.',
    "cursor": "Make it a string, never null.",
    "uri": "Make it a string.",
    "line": 'Make it an integer with "minimum": 0.',
    "character": 'Make it an integer with "minimum": 0.',
}
