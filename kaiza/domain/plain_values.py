"""Copies any value into plain JSON values, whatever the value's own code does.

Exceptions and causes come from libraries and tools. Their `str()`, properties and iterators may raise anything or
return odd types, and an iterator may have no end. None of these functions raises.
"""

import math
import re
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, TypeGuard, TypeVar

UNREADABLE = "<unreadable>"
"""Stands for a value whose own code failed."""
MAX_ITEMS = 64
MAX_TEXT = 512
_MAX_KEY = 64
_MAX_INTEGER = 2**53
_MAX_MESSAGE = 200
_MAX_EXCERPT = 4096
_ABSOLUTE_PATH = re.compile(r"(?<![\w.])/(?:[^\s/'\":]+/)*[^\s/'\":]+")
_name_of = type.__dict__["__name__"].__get__

_Answer = TypeVar("_Answer")
_Kind = TypeVar("_Kind")


def ask(question: Callable[[], _Answer], otherwise: _Answer) -> _Answer:
    """What another's code answers; `otherwise` if it raises anything at all."""
    try:
        return question()
    # The only place below the boundary that catches everything: a failure that cannot be described is still answered.
    except BaseException:  # noqa: BLE001
        return otherwise


def is_instance(value: object, kinds: type[_Kind] | tuple[type[_Kind], ...]) -> TypeGuard[_Kind]:
    """Whether a value really is of one of the types. `isinstance` believes `__class__`, which may lie or raise."""
    return ask(lambda: issubclass(type(value), kinds), otherwise=False)


def type_name(value: object) -> str:
    """Name of a value's type, bounded."""
    return plain_text(_name_of(type(value)), _MAX_KEY)


def plain_text(value: object, limit: int = MAX_TEXT) -> str:
    """The text of a value, at most `limit` characters, as exactly `str` and without lone surrogates."""
    text = ask(lambda: str.__str__(value) if is_instance(value, str) else str(value), UNREADABLE)
    # A subclass of str may have any methods; str's own make it a plain one.
    return str.__str__(text)[:limit].encode("utf-8", "backslashreplace").decode()[:limit]


def copy_value(value: object, depth: int, most: int) -> Any:
    """Copy a value as JSON: at most `most` values, nested at most `depth` deep, without floats.

    What is nested deeper, or of a type that JSON does not have, becomes its type's name.
    """
    return _Copier(most).copy(value, depth)


def describe_exception(error: BaseException) -> dict[str, Any]:
    """Describe an exception as {message, code, name}, with absolute paths removed."""
    if is_instance(error, OSError):
        # str() of an OSError includes the file name; strerror does not.
        message: object = ask(lambda: error.strerror or "", "")
        code: object = ask(lambda: error.errno, None)
    else:
        message, code = ask(lambda: str(error), UNREADABLE), ask(lambda: getattr(error, "code", None), None)
    return {
        "message": _ABSOLUTE_PATH.sub("<path>", plain_text(message, _MAX_EXCERPT))[:_MAX_MESSAGE],
        "code": _copy_scalar(code) if is_instance(code, (int, str)) else None,
        "name": type_name(error),
    }


class _Copier:
    """Copies one value. Counts what it copies, so that a value that refers to itself many times ends."""

    def __init__(self, most: int) -> None:
        self._left = most

    def copy(self, value: object, depth: int) -> Any:
        self._left -= 1
        if self._left < 0:
            return UNREADABLE
        if value is None or is_instance(value, (str, int, float)):
            return _copy_scalar(value)
        if is_instance(value, BaseException):
            return describe_exception(value)
        copied: Any = None
        if depth > 1:
            copied = ask(lambda: self._copy_container(value, depth), None)
        return f"<{type_name(value)}>" if copied is None else copied

    def _copy_container(self, value: Any, depth: int) -> Any:
        """The copy of an object or a list; None for a value of any other type."""
        if is_instance(value, Mapping):
            pairs = dict.items(value) if is_instance(value, dict) else value.items()
            return {_copy_key(key): self.copy(item, depth - 1) for key, item in islice(pairs, MAX_ITEMS)}
        kind: Any = next((kind for kind in (list, tuple, set, frozenset) if is_instance(value, kind)), None)
        if kind is None:
            return None
        # By the built-in type's own iterator: a subclass may have any.
        return [self.copy(item, depth - 1) for item in islice(kind.__iter__(value), MAX_ITEMS)]


def _copy_key(key: object) -> str:
    is_scalar = key is None or is_instance(key, (str, int, float))
    return plain_text(_copy_scalar(key), _MAX_KEY) if is_scalar else f"<{type_name(key)}>"


def _copy_scalar(value: Any) -> Any:
    if value is None or type(value) is bool:
        return value
    if is_instance(value, str):
        return plain_text(value)
    if is_instance(value, float):
        number = float.__float__(value)
        return float.__repr__(number) if math.isfinite(number) else "not a number"
    number = int.__int__(value)
    return number if abs(number) < _MAX_INTEGER else "a number of more than 53 bits"
