"""Amounts of money: whole pico-units of a currency inside, plain decimal texts outside.

One unit (a dollar, a yen) is 10**12 pico. Nothing here is ever a float, and nothing is rounded.
"""

import re

PICO_DIGITS = 12
PICO_PER_UNIT = 10**PICO_DIGITS
AMOUNT_DIGITS_MAX = 12
"""Of whole units. A trillion dong is some forty million dollars."""

CURRENCY_EXPONENTS: dict[str, int] = {
    "AED": 2,
    "AUD": 2,
    "BHD": 3,
    "BRL": 2,
    "CAD": 2,
    "CHF": 2,
    "CLP": 0,
    "CNY": 2,
    "CZK": 2,
    "DKK": 2,
    "EUR": 2,
    "GBP": 2,
    "HKD": 2,
    "HUF": 2,
    "IDR": 2,
    "ILS": 2,
    "INR": 2,
    "ISK": 0,
    "JOD": 3,
    "JPY": 0,
    "KRW": 0,
    "KWD": 3,
    "MXN": 2,
    "MYR": 2,
    "NOK": 2,
    "NZD": 2,
    "OMR": 3,
    "PHP": 2,
    "PLN": 2,
    "RON": 2,
    "SAR": 2,
    "SEK": 2,
    "SGD": 2,
    "THB": 2,
    "TND": 3,
    "TRY": 2,
    "TWD": 2,
    "UAH": 2,
    "USD": 2,
    "VND": 0,
    "ZAR": 2,
}
"""The currencies that a tenant can be billed in, and how many decimals each has (ISO 4217)."""

_AMOUNT = re.compile(rf"(0|[1-9][0-9]{{0,{AMOUNT_DIGITS_MAX - 1}}})(?:\.([0-9]+))?")


class UnknownCurrency(ValueError):
    """A currency whose number of decimals is not known: it is refused, never guessed at."""


class InvalidAmount(ValueError):
    """A text that is no amount of its currency; the message says what is wanted."""


def currency_exponent(currency: str) -> int:
    """How many decimals amounts of `currency` have. Raises UnknownCurrency."""
    exponent = CURRENCY_EXPONENTS.get(currency)
    if exponent is None:
        raise UnknownCurrency(f"{currency!r} is not a currency that is known here")
    return exponent


def parse_amount(text: object, currency: str, *, decimals_max: int | None = None) -> int:
    """Pico-units of a text such as "500.00", exactly.

    Raises UnknownCurrency, and InvalidAmount for anything but plain digits with at most
    `decimals_max` decimals, at most PICO_DIGITS, or the currency's own number of them: a number
    that is no text, a sign, blanks, an exponent, a leading zero, and 10**12 units or more.
    """
    exponent = currency_exponent(currency)
    most = exponent if decimals_max is None else decimals_max
    found = _AMOUNT.fullmatch(text) if isinstance(text, str) else None
    decimals: str = "" if found is None else found[2] or ""
    if found is None or len(decimals) > most:
        example = "500" + ("." + "0" * exponent if exponent else "")
        raise InvalidAmount(
            f"must be a text such as '{example}': {currency} in plain digits, at most "
            f"{most} decimals and {AMOUNT_DIGITS_MAX} digits before them"
        )
    return int(found[1] + decimals.ljust(PICO_DIGITS, "0"))


def show_amount(pico: int, currency: str) -> str:
    """That many pico-units in decimal digits: the currency's own decimals, and as many more as it
    takes to say the amount exactly. Raises UnknownCurrency."""
    exponent = currency_exponent(currency)
    whole, rest = divmod(abs(pico), PICO_PER_UNIT)
    decimals = f"{rest:0{PICO_DIGITS}}".rstrip("0").ljust(exponent, "0")
    sign = "-" if pico < 0 else ""
    return f"{sign}{whole}.{decimals}" if decimals else f"{sign}{whole}"
