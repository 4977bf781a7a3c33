"""Numbers of a JSON text. What 64 bits cannot hold is kept as it was sent, and refused where it is used."""

from typing import Final, Self

_INTEGER_BOUND: Final = 1 << 63
# `int` takes quadratic time on long digit strings.
_MAX_DIGITS: Final = 64


class WideNumber(float):
    """A number beyond 64 bits: an infinity that remembers its digits, so that an id can be returned as it was sent."""

    text: str

    def __new__(cls, text: str) -> Self:
        """Keep the digits."""
        number = super().__new__(cls, "-inf" if text.startswith("-") else "inf")
        number.text = text
        return number

    def __repr__(self) -> str:
        return self.text


def parse_integer(digits: str) -> int | WideNumber:
    """The integer, if 64 bits hold it."""
    if len(digits) > _MAX_DIGITS or not -_INTEGER_BOUND <= (number := int(digits)) < _INTEGER_BOUND:
        return WideNumber(digits)
    return number


def parse_float(digits: str) -> float:
    """The float, if 64 bits hold it."""
    number = float(digits)
    is_finite = number - number == 0  # false for infinities only
    return number if is_finite else WideNumber(digits)
