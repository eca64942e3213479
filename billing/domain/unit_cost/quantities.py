"""Decimal texts as exact numbers and back. Whatever is rounded here is for reading only, but for
the bill itself, which is rounded to a whole pico-unit once."""

import re
from fractions import Fraction

from billing.domain.invoicing.rounding import half_away

_DECIMAL = re.compile(r"(0|[1-9][0-9]*)(?:\.([0-9]+))?")
DIGITS_MAX = 9
"""Before the point."""


class InvalidQuantity(ValueError):
    """A text that is no such number; the message says what is wanted."""


def parse_decimal(text: object, *, decimals_max: int) -> Fraction:
    """The number that plain decimal digits say, exactly.

    Raises InvalidQuantity for a sign, blanks, an exponent, a leading zero, a number that is no
    text, more than DIGITS_MAX digits before the point or `decimals_max` after it.
    """
    found = _DECIMAL.fullmatch(text) if isinstance(text, str) and text.isascii() else None
    if found is None or len(found[1]) > DIGITS_MAX or len(found[2] or "") > decimals_max:
        raise InvalidQuantity(
            f"must be a text such as '2.35': plain digits, at most {DIGITS_MAX} before the point "
            f"and {decimals_max} after it"
        )
    return Fraction(found[0])


def half_up(number: Fraction | int) -> int:
    """The nearest whole number; a half goes away from zero."""
    exact = Fraction(number)
    return half_away(exact.numerator, exact.denominator)


def show_decimal(number: Fraction | int, *, decimals: int) -> str:
    """Rounded to so many decimals, half away from zero."""
    scaled = half_up(Fraction(number) * 10**decimals)
    whole, rest = divmod(abs(scaled), 10**decimals)
    sign = "-" if scaled < 0 else ""
    return f"{sign}{whole}.{rest:0{decimals}}" if decimals else f"{sign}{whole}"


def show_exact(number: Fraction) -> str:
    """All decimals of a number that has finitely many, at most twelve; beyond that rounded."""
    shown = show_decimal(number, decimals=12).rstrip("0").rstrip(".")
    return shown or "0"
