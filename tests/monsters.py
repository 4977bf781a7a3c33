"""Values and exceptions whose own code misbehaves in every way that tests could think of, made from a seed.

A test is given the seed and not the monster: what prints or compares a monster fails.
"""

from collections.abc import Mapping
from random import Random

from kaiza.domain import error_codes, errors
from kaiza.tools.view import Answer


class Sulk(BaseException):
    """Not an Exception, and its text cannot be had."""

    def __str__(self):
        raise GeneratorExit

    __repr__ = __str__


class QuietError(Exception):
    """An Exception with the same fault."""

    def __str__(self):
        raise Sulk

    __repr__ = __str__


RAISED = (RecursionError, MemoryError, SystemExit, GeneratorExit, StopIteration, QuietError, Sulk)
EXCEPTIONS = (Exception, BaseException, OSError, ValueError, KeyError, UnicodeError, SystemExit)
SCALARS = (
    2**53,
    *(-(2**64), 10**5000, -(10**5000), float("nan"), float("inf"), 1e308, -0.0, 0, True, None, b"\xff", object),
    "",
    *("INVALID_PATH", "\ud800", "a\udcff", "\x00\x7f\x1b[0m", "/home/ada/key " * 9, "é" * 5000, NotImplemented, ...),
)
KEYS = ("a", "cap", "\ud800", 10**5000, None, (1,), b"k", 1.5, frozenset(), object())
LIES = (str, int, dict, list, BaseException, errors.SystemError)
TEXT_METHODS = ("__str__", "__repr__", "__len__", "__getitem__", "__eq__", "__add__", "__bool__", "__format__")
NUMBER_METHODS = ("__str__", "__repr__", "__int__", "__float__", "__abs__", "__lt__", "__ge__", "__bool__", "__index__")
OBJECT_METHODS = ("__str__", "__repr__", "__hash__", "__eq__", "__bool__", "__iter__", "__len__", "__getattr__")
MAPPING_METHODS = ("items", "keys", "get", "__iter__", "__len__", "__getitem__", "__bool__", "__contains__")
PROPERTIES = (
    *("code", "error_code", "errno", "strerror", "args", "evidence", "human_message", "cause", "tool_name"),
    *("__class__", "__cause__", "__context__", "__traceback__", "__notes__", "__suppress_context__", "__dict__"),
)
MEMBERS = (
    *("human_message", "role", "session_id", "workspace_root", "tool_name", "invariant_id", "phase_id", "plan_hash"),
    *("cause", "timestamp", "evidence"),
)


def refuse(kind):
    """A method that raises."""

    def method(*_, **__):
        raise kind

    return method


class Monsters:
    """The monsters of one seed."""

    def __init__(self, seed):
        self._random = Random(seed)

    def value(self, depth=3):
        """Any value, from plain to impossible."""
        makers = [self._scalar, self._odd_text, self._odd_number, self._odd_object, self._liar, self.mapping]
        makers += [self._endless, self._itself] + [self._container] * 3 * (depth > 0)
        maker = self._random.choice(makers)
        return maker(depth) if maker == self._container else maker()

    def exception(self):
        """Any exception, sometimes with others as cause and context."""
        makers = (self._odd_exception, self._our_error, self._odd_system_error, self._nested_group, self._plain)
        error = self._random.choice(makers)()
        for name in ("__cause__", "__context__"):
            if self._random.random() < 0.2:
                BaseException.__dict__[name].__set__(error, self._random.choice(makers)())
        return error

    def mapping(self):
        """A mapping whose members cannot all be read."""
        sound = {
            "__getitem__": lambda _self, _key: 1,
            "__iter__": lambda _self: iter(["a"]),
            "__len__": lambda _self: 1,
            "items": lambda _self: iter(lambda: ("key", "value"), None),
        }
        return type("OddMapping", (self._random.choice([Mapping, dict]),), sound | self._refusals(MAPPING_METHODS))()

    def answer(self):
        """An answer with odd members, or something else in its place."""
        if self._random.random() < 0.1:
            return self.value()
        output = {"said": "x", "summary": "fine"}
        if self._random.random() < 0.5:
            output = self._random.choice([self.mapping(), {**output, "said": self.value()}, {**output, "more": 1}])
        odd = {name: self.value() for name in self._random.sample(["changes", "detail", "diagnostics", "exempt"], 2)}
        kind = Answer if self._random.random() < 0.8 else self._odd_answer()
        return kind(output, **odd)

    def _odd_answer(self):
        hidden = {name: property(method) for name, method in self._refusals(["changes", "detail", "__class__"]).items()}
        return type("OddAnswer", (Answer,), {**hidden, "__init__": lambda self, output, **_: None})

    def members(self, depth=3):
        """Odd members for one of our own errors."""
        return {name: self.value(depth) for name in self._random.sample(MEMBERS, self._random.randint(0, 3))}

    def _refusals(self, names):
        names = self._random.sample(names, self._random.randint(1, len(names)))
        return {name: refuse(self._random.choice(RAISED)) for name in names}

    def _scalar(self):
        return self._random.choice(SCALARS)

    def _odd_text(self):
        kind = type("OddText", (str,), {"__hash__": str.__hash__, **self._refusals(TEXT_METHODS)})
        return kind(self._random.choice(["INVALID_PATH", "", "\ud800", "x" * 3_000_000]))

    def _odd_number(self):
        base = self._random.choice([int, float])
        return type("OddNumber", (base,), {"__hash__": base.__hash__, **self._refusals(NUMBER_METHODS)})(7)

    def _odd_object(self):
        return type("Odd", (), {**self._refusals(OBJECT_METHODS), "__class__": property(refuse(Sulk))})()

    def _liar(self):
        return type("Liar", (), {"__class__": self._random.choice(LIES)})()

    def _endless(self):
        return iter(int, 1)

    def _itself(self):
        outer = {}
        outer.update({str(number): [outer] * 64 for number in range(64)})
        return outer

    def _container(self, depth):
        values = [self.value(depth - 1) for _ in range(self._random.randint(0, 3))]
        kind = self._random.choice(["list", "tuple", "dict", "exception"])
        if kind == "dict":
            return dict(zip(self._random.sample(KEYS, len(values)), values, strict=True))
        return {"list": list, "tuple": tuple, "exception": lambda items: ValueError(*items)}[kind](values)

    def _plain(self):
        return self._random.choice(
            [self._random.choice(RAISED)(), ValueError(self.value()), OSError(self.value(), self.value())]
        )

    def _odd_exception(self):
        values = {name: self.value(1) for name in self._random.sample(["code", "error_code", "errno", "strerror"], 2)}
        hidden = {name: property(method) for name, method in self._refusals(PROPERTIES).items()}
        texts = self._refusals(["__str__", "__repr__"])
        base = self._random.choice(EXCEPTIONS)
        kind = type("OddError", (base,), values | self._random.choice([hidden, texts, hidden | texts]))
        return kind.__new__(kind, "odd")

    def _our_error(self):
        """Our own error with odd members: given to its maker if that takes them, or put in place afterwards."""
        code = self._random.choice(sorted(error_codes.SYSTEM_ERROR_CODES))
        error = errors.SystemError.tool_failure(code)
        try:
            error = errors.SystemError.tool_failure(code, self.members())
        except BaseException:  # noqa: BLE001  then the tool itself fails
            return error
        members = self.members() | ({"error_code": self.value()} if self._random.random() < 0.2 else {})
        for name, value in members.items():
            setattr(error, name, value)
        return error

    def _odd_system_error(self):
        hidden = {name: property(method) for name, method in self._refusals([*MEMBERS, *PROPERTIES]).items()}
        kind = type("OddSystemError", (errors.SystemError,), hidden)
        return kind.__new__(kind)

    def _nested_group(self):
        group = QuietError()
        for _ in range(900):
            group = ExceptionGroup("outer", [group])
        return group
