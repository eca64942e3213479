"""What forms and lists about money share: instants and days as they are typed, addresses of the
next page, and refusals told at their field."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from urllib.parse import urlencode

from billing.domain.money import CURRENCY_EXPONENTS
from gateway.console.forms import REFUSALS, Form
from gateway.domain.instants import ms_of
from gateway.errors import StoreUnavailable

ROWS = 50
"""Of a list, on one page."""
TOLD = (*REFUSALS, StoreUnavailable)
"""What a form is shown again for, with what was typed: also where the store is away."""
CURRENCIES = [(code, code) for code in CURRENCY_EXPONENTS]


def typed_instant(form: Form, name: str) -> datetime | None:
    """An instant, None where the field was left empty; one without an offset is of UTC. What is
    none is noted at the field."""
    text = form.text(name)
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
        return (at.replace(tzinfo=UTC) if at.tzinfo is None else at).astimezone(UTC)
    except (ValueError, OverflowError):
        form.errors[name] = "must be an instant such as 2027-01-31 12:00, of UTC"
        return None


def typed_instant_ms(form: Form, name: str) -> int | None:
    """The same in Unix milliseconds."""
    return ms_of(typed_instant(form, name))


def typed_day(form: Form, name: str) -> date | None:
    """A day. What is none, and an empty field, is noted at the field."""
    try:
        return date.fromisoformat(form.text(name))
    except ValueError:
        form.errors[name] = "must be a day such as 2027-01-31"
        return None


def address(path: str, values: Mapping[str, str | None]) -> str:
    """A path of the console with what is given of `values` behind it."""
    given = {name: value for name, value in values.items() if value}
    return f"{path}?{urlencode(given)}" if given else path


def next_address(path: str, values: Mapping[str, str | None], cursor: str | None) -> str | None:
    """Where the next page of a list is, None on the last."""
    return None if cursor is None else address(path, {**values, "cursor": cursor})
