"""The tax of an invoice: a rate in thousandths of a per cent, so that it is a whole number."""

import re

import msgspec

from billing.domain.invoicing.rounding import half_away

RATE_DECIMALS = 3
MILLI_PERCENT_OF_ALL = 100 * 10**RATE_DECIMALS
_RATE = re.compile(rf"(0|[1-9][0-9]{{0,2}})(?:\.([0-9]{{1,{RATE_DECIMALS}}}))?")


class InvalidTaxRate(ValueError):
    """A text that is no rate; the message says what is wanted."""


class Tax(msgspec.Struct, frozen=True, kw_only=True):
    """A rate, what it is called, and what the law wants said about it."""

    rate_milli_percent: int = 0
    """Thousandths of a per cent: 19,000 of 19 %."""
    name: str = ""
    """As printed, such as `VAT`."""
    note: str = ""
    """Such as why nothing is charged: reverse charge, an exemption."""


def parse_tax_rate(text: object) -> int:
    """Thousandths of a per cent of a text such as "19" or "8.875". Raises InvalidTaxRate for
    anything but plain digits with at most three decimals, and for more than 100."""
    found = _RATE.fullmatch(text) if isinstance(text, str) else None
    rate = None if found is None else int(found[1] + (found[2] or "").ljust(RATE_DECIMALS, "0"))
    if rate is None or rate > MILLI_PERCENT_OF_ALL:
        raise InvalidTaxRate(
            "must be a text such as '19' or '8.875': per cent in plain digits, at most "
            f"{RATE_DECIMALS} decimals, from 0 to 100"
        )
    return rate


def show_tax_rate(rate_milli_percent: int) -> str:
    """A rate in per cent without needless zeros: "19", "8.875"."""
    whole, rest = divmod(rate_milli_percent, 10**RATE_DECIMALS)
    decimals = f"{rest:0{RATE_DECIMALS}}".rstrip("0")
    return f"{whole}.{decimals}" if decimals else str(whole)


def tax_minor(base_minor: int, rate_milli_percent: int) -> int:
    """The tax on an amount, in whole minor units, a half away from zero."""
    return half_away(base_minor * rate_milli_percent, MILLI_PERCENT_OF_ALL)
