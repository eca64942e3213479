"""Prices as people write them: a currency (USD for what hosted providers charge) per million
tokens, in decimal digits.

Inside they are whole micro-units per million tokens, which are as many pico-units per token.
"""

import re
from decimal import Decimal

from gateway.domain.hosted import PRICE_PICO_MAX
from gateway.errors import Unprocessable

DECIMALS = 6
DECIMALS_SHOWN_MIN = 2
PRICE = re.compile(r"(0|[1-9][0-9]{0,9})(\.[0-9]{1,6})?")


def parse_price(
    text: object, *, field: str, currency: str = "USD", pico_max: int = PRICE_PICO_MAX
) -> int:
    """Pico-units of `currency` per token of a text such as "0.40", exactly.

    Raises Unprocessable naming `field` for anything but plain digits with at most six decimals: a
    number that is no text, a sign, an exponent, and what is more than `pico_max`.
    """
    if not isinstance(text, str) or not PRICE.fullmatch(text):
        raise _wrong(field, currency)
    pico = int(Decimal(text).scaleb(DECIMALS))
    if pico > pico_max:
        most = show_price(pico_max)
        raise Unprocessable(
            f"{field}: must be at most {most} {currency} per million tokens", param=field
        )
    return pico


def show_price(pico: int) -> str:
    """Units per million tokens of that many pico-units per token, with two to six decimals."""
    whole, rest = divmod(pico, 10**DECIMALS)
    decimals = f"{rest:0{DECIMALS}}".rstrip("0").ljust(DECIMALS_SHOWN_MIN, "0")
    return f"{whole}.{decimals}"


def _wrong(field: str, currency: str) -> Unprocessable:
    return Unprocessable(
        f"{field}: must be a text such as '0.40': {currency} per million tokens, at most "
        f"{DECIMALS} decimals",
        param=field,
    )
