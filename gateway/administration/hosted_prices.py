"""Prices of hosted providers as people write them: USD per million tokens, in decimal digits.

Inside they are whole micro-USD per million tokens, which are as many pico-USD per token.
"""

import re
from decimal import Decimal

from gateway.domain.hosted import PRICE_PICO_MAX
from gateway.errors import Unprocessable

DECIMALS = 6
DECIMALS_SHOWN_MIN = 2
PRICE = re.compile(r"(0|[1-9][0-9]{0,9})(\.[0-9]{1,6})?")


def parse_price(text: object, *, field: str) -> int:
    """Pico-USD per token of a text such as "0.40", exactly.

    Raises Unprocessable naming `field` for anything but plain digits with at most six decimals: a
    number that is no text, a sign, an exponent, and what is more than PRICE_PICO_MAX.
    """
    if not isinstance(text, str) or not PRICE.fullmatch(text):
        raise _wrong(field)
    pico = int(Decimal(text).scaleb(DECIMALS))
    if pico > PRICE_PICO_MAX:
        most = show_price(PRICE_PICO_MAX)
        raise Unprocessable(f"{field}: must be at most {most} USD per million tokens", param=field)
    return pico


def show_price(pico: int) -> str:
    """USD per million tokens of that many pico-USD per token, with two to six decimals."""
    whole, rest = divmod(pico, 10**DECIMALS)
    decimals = f"{rest:0{DECIMALS}}".rstrip("0").ljust(DECIMALS_SHOWN_MIN, "0")
    return f"{whole}.{decimals}"


def _wrong(field: str) -> Unprocessable:
    return Unprocessable(
        f"{field}: must be a text such as '0.40': USD per million tokens, at most "
        f"{DECIMALS} decimals",
        param=field,
    )
