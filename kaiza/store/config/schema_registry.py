"""Tool schemas and the catalog, read from the contract files and served unchanged.

Arguments and outputs are checked by jsonschema-rs, which is imported with the first check. It accepts 5.0 as an
integer, as JSON Schema says; Kaiza does not, so floats are checked once more. Commands for people use jsonschema, whose
errors say more and whose import takes 90 ms.
"""

import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

import kaiza
from kaiza.domain.argument_faults import ArgumentFault
from kaiza.domain.tool_card import ToolCard, ToolOffer

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError
    from jsonschema_rs import Draft202012Validator as FastValidator
    from jsonschema_rs import ValidationError as FastError

_NAME = re.compile(r"[a-z_]+")
LONG_ANSWERS = {"anthropic/maxResultSizeChars": 500_000}
"""Tells Claude Code to hand on whole what was asked to be long; without it, it hands on 50,000 characters."""


@dataclass(frozen=True, slots=True)
class ToolSchemas:
    """Input and output schema of a tool."""

    input: dict[str, Any]
    output: dict[str, Any]
    fingerprint: str
    """SHA-256 of both in canonical form, so that white space and key order do not matter."""


class SchemaValidator:
    """Validator for one schema, compiled on first use. Strict: values are not coerced."""

    __slots__ = ("_fast", "_strict", "schema")

    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema = schema
        self._strict: Draft202012Validator | None = None
        self._fast: FastValidator | None = None

    def is_surely_valid(self, value: object) -> bool:
        """Whether the value is valid; False means unknown, ask `find_faults`."""
        try:
            return self.is_valid(value) and not has_float(value)
        except ValueError:  # text that is not Unicode
            return False

    def find_faults(self, value: object) -> "Iterator[ArgumentFault]":
        """All faults of the value, without importing jsonschema."""
        return find_faults(self._fast_validator(), value)

    def is_valid(self, value: object) -> bool:
        """Whether the value is valid JSON Schema, where 5.0 is an integer. ValueError if it is not JSON."""
        return self._fast_validator().is_valid(value)

    def validate(self, value: object) -> None:
        """Raise jsonschema's ValidationError if the value is invalid."""
        self._strict_validator().validate(value)

    def iter_errors(self, value: object) -> "Iterator[ValidationError]":
        """All faults of the value."""
        return self._strict_validator().iter_errors(value)

    def _fast_validator(self) -> "FastValidator":
        if self._fast is None:
            import jsonschema_rs  # noqa: PLC0415  see the top

            self._fast = jsonschema_rs.Draft202012Validator(self.schema)
        return self._fast

    def _strict_validator(self) -> "Draft202012Validator":
        if self._strict is None:
            from jsonschema import Draft202012Validator, validators  # noqa: PLC0415  see the top

            # JSON Schema calls 5.0 an integer, and in Python True is an int; neither is accepted.
            types = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
            strict = validators.extend(Draft202012Validator, type_checker=types)  # type: ignore[no-untyped-call]
            self._strict = strict(self.schema)
        return self._strict


@dataclass(frozen=True, slots=True)
class ToolIo:
    """Input and output validator of a tool."""

    input: SchemaValidator
    output: SchemaValidator


def find_directory() -> Path:
    """The directory of the contract files: inside the installed package, or beside it in a checkout."""
    package = Path(kaiza.__file__).parent
    installed = package / "schemas"
    return installed if installed.is_dir() else package.parent / "schemas"


class SchemaRegistry:
    """Reader of the contract files of one directory. A tool's schemas are read once."""

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory or find_directory()
        self._schemas: dict[str, ToolSchemas] = {}
        self._validators: dict[str, ToolIo] = {}

    def catalog(self) -> list[dict[str, Any]]:
        """Rows of `catalog.json`, in file order."""
        catalog = _read_json(self._directory / "catalog.json")
        return list(catalog["tools"] if isinstance(catalog, dict) else catalog)

    def load_tool_schemas(self, tool_id: str) -> ToolSchemas:
        """Load a tool's schemas; KeyError if there is no such tool."""
        # The name comes from a client: it must not lead out of the directory.
        if not _NAME.fullmatch(tool_id):
            raise KeyError(tool_id)
        if tool_id not in self._schemas:
            import hashlib  # noqa: PLC0415  needed for fingerprints only

            from kaiza.domain.audit import canonical_json  # noqa: PLC0415  as above

            try:
                both = {
                    "input": self.read_document(f"{tool_id}.json"),
                    "output": self.read_document(f"{tool_id}.output.json"),
                }
            except FileNotFoundError:
                raise KeyError(tool_id) from None
            self._schemas[tool_id] = ToolSchemas(
                **both, fingerprint=hashlib.sha256(canonical_json.encode(both)).hexdigest()
            )
        return self._schemas[tool_id]

    def load_tool_io(self, tool_id: str) -> ToolIo:
        """A tool's validators: the same objects as long as the schemas are the same."""
        schemas = self.load_tool_schemas(tool_id)
        validators = self._validators.get(schemas.fingerprint)
        if validators is None:
            validators = ToolIo(SchemaValidator(schemas.input), SchemaValidator(schemas.output))
            self._validators[schemas.fingerprint] = validators
        return validators

    def load_envelope(self) -> SchemaValidator:
        """Validator of a request's envelope in its strictest form: the id is a string, and params are present."""
        return SchemaValidator(_read_json(self._directory / "mcp" / "envelope.schema.json"))

    def fingerprint(self, tool_id: str) -> str:
        """Hash that identifies a tool's contract."""
        return self.load_tool_schemas(tool_id).fingerprint

    def file_names(self) -> list[str]:
        """Names of all files in `tools/`, sorted."""
        return sorted(path.name for path in (self._directory / "tools").iterdir())

    def read_document(self, name: str) -> Any:
        """Parse one file of `tools/`; ValueError if it is not JSON."""
        return _read_json(self._directory / "tools" / name)


def _read_json(path: Path) -> Any:
    return orjson.loads(path.read_bytes())


def offered_cards(registry: SchemaRegistry, offer: ToolOffer) -> list[ToolCard]:
    """Cards of the tools that a server offers, in catalog order."""
    return [card for card in map(ToolCard.from_row, registry.catalog()) if offer.includes(card)]


def list_items(
    registry: SchemaRegistry, offer: ToolOffer, also_listed: Collection[str] = ()
) -> list[Mapping[str, Any]]:
    """Items of MCP's `tools/list` answer: the offered tools that the catalog lists, and those named."""
    cards = offered_cards(registry, offer)
    return [
        {
            **card.identity(),
            "title": card.title,
            "inputSchema": registry.read_document(f"{card.name}.json"),
            "outputSchema": registry.read_document(f"{card.name}.output.json"),
            "annotations": card.annotations(),
            **({"_meta": LONG_ANSWERS} if card.may_answer_at_length else {}),
        }
        for card in cards
        if card.listed or card.name in also_listed
    ]


def find_faults(validator: "FastValidator", value: object) -> Iterator[ArgumentFault]:
    """All faults of a value; none if it is valid. What the validator cannot take is reported alone."""
    unusable = list(_find_unusable(value, ()))
    if unusable:
        yield from unusable
        return
    if not has_float(value):
        yield from map(_convert, validator.iter_errors(value))
        return
    faults = map(_convert, validator.iter_errors(value))
    yield from (fault for fault in faults if fault.keyword != "type")
    faults = map(_convert, validator.iter_errors(_without_whole_floats(value)))
    yield from (fault for fault in faults if fault.keyword == "type")


def has_float(value: object) -> bool:
    """Whether the value contains a float."""
    if isinstance(value, dict):
        return any(map(has_float, value.values()))
    if isinstance(value, list):
        return any(map(has_float, value))
    return isinstance(value, float)


def _without_whole_floats(value: object) -> object:
    """The value with each float replaced by one that is no integer."""
    if isinstance(value, dict):
        return {name: _without_whole_floats(member) for name, member in value.items()}
    if isinstance(value, list):
        return list(map(_without_whole_floats, value))
    return 0.5 if isinstance(value, float) else value


def _find_unusable(value: object, path: tuple[str | int, ...]) -> Iterator[ArgumentFault]:
    """Numbers beyond 64 bits, and text that UTF-8 cannot hold: JSON has them, and no file or record."""
    if isinstance(value, dict):
        for name, member in value.items():
            shown = name.encode(errors="backslashreplace").decode()
            yield from _find_unusable(name, (*path, shown))
            yield from _find_unusable(member, (*path, shown))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _find_unusable(item, (*path, index))
    elif isinstance(value, str):
        if value.encode(errors="replace").decode() != value:
            yield ArgumentFault("unicode", "text without lone surrogates", path)
    elif isinstance(value, float) and not math.isfinite(value):
        yield ArgumentFault("range", "a number that 64 bits hold", path)


def _convert(error: "FastError") -> ArgumentFault:
    kind: Any = error.kind
    return ArgumentFault(kind.name, _value_of(kind), tuple(error.instance_path))


def _value_of(kind: Any) -> Any:
    """The value of a fault's keyword; the missing or unknown names where it is about names."""
    if kind.name == "required":
        return [kind.property]
    if kind.name == "additionalProperties":
        return kind.unexpected
    # A schema that names one type does not name a list.
    return kind.types[0] if kind.name == "type" and len(kind.types) == 1 else kind.value
