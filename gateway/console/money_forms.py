"""What forms and lists about money share: currencies, what a form is shown again for, and addresses
of the next page."""

from collections.abc import Mapping
from urllib.parse import urlencode

from billing.domain.money import CURRENCY_EXPONENTS
from gateway.console.forms import REFUSALS
from gateway.errors import StoreUnavailable

ROWS = 50
"""Of a list, on one page."""
TOLD = (*REFUSALS, StoreUnavailable)
"""What a form is shown again for, with what was typed: also where the store is away."""
CURRENCIES = [(code, code) for code in CURRENCY_EXPONENTS]


def address(path: str, values: Mapping[str, str | None]) -> str:
    """A path of the console with what is given of `values` behind it."""
    given = {name: value for name, value in values.items() if value}
    return f"{path}?{urlencode(given)}" if given else path


def next_address(path: str, values: Mapping[str, str | None], cursor: str | None) -> str | None:
    """Where the next page of a list is, None on the last."""
    return None if cursor is None else address(path, {**values, "cursor": cursor})
