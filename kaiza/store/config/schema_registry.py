"""The contract files: every tool's input and output schema, and the catalog; read as they are, never filled in.

Sound arguments pass a fast check; only what it does not let pass is looked at by jsonschema, which says what is wrong.
Neither is imported before the first arguments are checked.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

import kaiza
from kaiza.domain.tool_card import ToolCard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jsonschema import Draft202012Validator, ValidationError

_NAME = re.compile(r"[a-z_]+")
_INPUT, _OUTPUT = ".json", ".output.json"
_FileStamp = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class ToolSchemas:
    """One tool's two schemas as their files say them."""

    input: dict[str, Any]
    output: dict[str, Any]
    fingerprint: str
    """SHA-256 of both in canonical form: blanks and the order of keys change nothing."""


class SchemaValidator:
    """Checks values against one schema, strictly: nothing is coerced. Built when it is first asked."""

    __slots__ = ("_built", "_quick", "schema")

    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema = schema
        self._built: Draft202012Validator | None = None
        self._quick: Callable[[object], bool] | None = None

    def is_surely_valid(self, value: object) -> bool:
        """Whether the value is certainly as the schema says; False only means that `iter_errors` has to look."""
        if self._quick is None:
            self._quick = _compile_fast_check(self.schema)
        return self._quick(value) and not _has_float(value)

    def validate(self, value: object) -> None:
        """Return if the value is as the schema says; else jsonschema's ValidationError."""
        self._strict_validator().validate(value)

    def iter_errors(self, value: object) -> "Iterator[ValidationError]":
        """Every fault of the value, none if it is as the schema says."""
        return self._strict_validator().iter_errors(value)

    def _strict_validator(self) -> "Draft202012Validator":
        if self._built is None:
            self._built = _compile_strict(self.schema)
        return self._built


@dataclass(frozen=True, slots=True)
class ToolIo:
    """One tool's two validators."""

    input: SchemaValidator
    output: SchemaValidator


def find_directory() -> Path:
    """Where the contract files are: inside an installed package, beside a checked-out one."""
    package = Path(kaiza.__file__).parent
    inside = package / "schemas"
    return inside if inside.is_dir() else package.parent / "schemas"


class SchemaRegistry:
    """The contract files of one directory. A file that changes is noticed; what did not change is read once."""

    def __init__(self, where: Path | None = None) -> None:
        self._directory = where or find_directory()
        self._cached: dict[str, tuple[tuple[_FileStamp, _FileStamp], ToolSchemas]] = {}
        self._validators: dict[str, ToolIo] = {}

    def catalog(self) -> list[dict[str, Any]]:
        """The rows of `catalog.json`, in its order."""
        told = _read_json(self._directory / "catalog.json")
        return list(told["tools"] if isinstance(told, dict) else told)

    def load_tool_schemas(self, tool_id: str) -> ToolSchemas:
        """A tool's schemas; KeyError if there is no such tool."""
        if not _NAME.fullmatch(tool_id):
            raise KeyError(tool_id)
        paths = [self._directory / "tools" / (tool_id + ending) for ending in (_INPUT, _OUTPUT)]
        try:
            stamps = (_file_stamp(paths[0]), _file_stamp(paths[1]))
        except FileNotFoundError:
            raise KeyError(tool_id) from None
        kept = self._cached.get(tool_id)
        if kept is None or kept[0] != stamps:
            kept = self._cached[tool_id] = (stamps, _tool_schemas(*map(_read_json, paths)))
        return kept[1]

    def load_tool_io(self, tool_id: str) -> ToolIo:
        """A tool's validators, `.input.validate` and `.output.validate`: the same two as long as the files stay."""
        schemas = self.load_tool_schemas(tool_id)
        found = self._validators.get(schemas.fingerprint)
        if found is None:
            found = ToolIo(SchemaValidator(schemas.input), SchemaValidator(schemas.output))
            self._validators[schemas.fingerprint] = found
        return found

    def fingerprint(self, tool_id: str) -> str:
        """What a tool's contract is known by; another contract has another one."""
        return self.load_tool_schemas(tool_id).fingerprint

    def file_names(self) -> list[str]:
        """The names of all files beside each other in `tools/`, sorted."""
        return sorted(path.name for path in (self._directory / "tools").iterdir())

    def read_document(self, name: str) -> Any:
        """One file of `tools/`, parsed; ValueError if it is not JSON."""
        return _read_json(self._directory / "tools" / name)


def _read_json(path: Path) -> Any:
    return orjson.loads(path.read_bytes())


def _file_stamp(path: Path) -> _FileStamp:
    found = path.stat()
    return found.st_mtime_ns, found.st_size, found.st_ino


def _tool_schemas(told_input: dict[str, Any], told_output: dict[str, Any]) -> ToolSchemas:
    import hashlib  # noqa: PLC0415  only who asks for a fingerprint pays for it

    from kaiza.domain.audit import canonical_json as canonical  # noqa: PLC0415  as above

    both = canonical.encode({"input": told_input, "output": told_output})
    return ToolSchemas(told_input, told_output, hashlib.sha256(both).hexdigest())


def _compile_fast_check(schema: dict[str, Any]) -> "Callable[[object], bool]":
    import jsonschema_rs  # noqa: PLC0415  see the top

    return jsonschema_rs.Draft202012Validator(schema).is_valid


def _has_float(value: object) -> bool:
    """Whether a float is in it: the fast check takes 5.0 for an integer, and we do not."""
    if isinstance(value, dict):
        return any(map(_has_float, value.values()))
    if isinstance(value, list):
        return any(map(_has_float, value))
    return isinstance(value, float)


def _compile_strict(schema: dict[str, Any]) -> "Draft202012Validator":
    from jsonschema import Draft202012Validator, validators  # noqa: PLC0415  see the top

    kinds = Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer)
    strict = validators.extend(Draft202012Validator, type_checker=kinds)  # type: ignore[no-untyped-call]
    validator: Draft202012Validator = strict(schema)
    return validator


def _is_integer(_checker: object, value: object) -> bool:
    """An integer is written as one: 5.0 is a number, and true is neither."""
    return isinstance(value, int) and not isinstance(value, bool)


def visible_cards(
    registry: SchemaRegistry, bound_role: str | None = None, allowed: Collection[str] = ()
) -> Iterator[ToolCard]:
    """The tools in the catalog's order; of a bound server those its role may call, and what the operator allowed."""
    for row in registry.catalog():
        card = ToolCard.from_row(row)
        if (bound_role is None or bound_role in card.roles) and card.only_with in (None, *allowed):
            yield card


def list_items(
    registry: SchemaRegistry, bound_role: str | None = None, allowed: Collection[str] = ()
) -> list[Mapping[str, Any]]:
    """The items of `tools/list`."""
    return [_tool_item(card, registry) for card in visible_cards(registry, bound_role, allowed)]


def _tool_item(card: ToolCard, registry: SchemaRegistry) -> Mapping[str, Any]:
    return {
        "name": card.name,
        "title": card.title,
        "description": card.description,
        "inputSchema": registry.read_document(f"{card.name}.json"),
        "outputSchema": registry.read_document(f"{card.name}.output.json"),
        "annotations": card.annotations(),
    }
