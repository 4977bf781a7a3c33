"""The schema files of the tools, and what is wrong with them."""

import orjson

from kaiza.domain import schema_lint
from kaiza.domain.schema_lint import SchemaFinding
from kaiza.store.config.schema_registry import SchemaRegistry

__all__ = ["SchemaRegistry", "find_schema_faults"]


def find_schema_faults(registry: SchemaRegistry) -> list[SchemaFinding]:
    """Every violation of a rule in the schema files and the catalog."""
    names = registry.file_names()
    findings = [finding for name in names for finding in _find_file_faults(registry, name)]
    return [*findings, *schema_lint.lint_catalog(registry.catalog(), names)]


def _find_file_faults(registry: SchemaRegistry, name: str) -> list[SchemaFinding]:
    from jsonschema import Draft202012Validator, SchemaError  # noqa: PLC0415  slow to import; fingerprints do not need it

    try:
        document = registry.read_document(name)
        if isinstance(document, dict):
            Draft202012Validator.check_schema(document)
    except orjson.JSONDecodeError as error:
        return [SchemaFinding(name, "", "json", f"Make it JSON: {error}.")]
    except SchemaError as error:
        where = "".join(f"/{part}" for part in error.absolute_path)
        return [SchemaFinding(name, where, "json-schema", "Make it valid JSON Schema 2020-12.")]
    return schema_lint.lint(name, document, output=name.endswith(".output.json"))
