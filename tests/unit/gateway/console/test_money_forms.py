"""Instants and days as they are typed, addresses, and words for what pages on money name."""

import pytest

from billing.domain.invoicing.issuing import Obstacle
from billing.domain.invoicing.lifecycle import Status
from billing.domain.reconciliation.findings import Check
from gateway.console.forms import Form
from gateway.console.invoice_words import STATUS_KINDS, advice_on
from gateway.console.money_forms import (
    address,
    next_address,
    typed_day,
    typed_instant,
    typed_instant_ms,
)
from gateway.console.reconcile_words import explained
from gateway.console.unit_cost import percent


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2027-01-31T12:00", "2027-01-31T12:00:00+00:00"),
        ("2027-01-31 12:00", "2027-01-31T12:00:00+00:00"),
        ("2027-01-31T12:00:00+02:00", "2027-01-31T10:00:00+00:00"),
    ],
)
def test_an_instant_is_of_utc_unless_it_says_another_offset(text: str, shown: str) -> None:
    """As the field beside says."""
    at = typed_instant(Form.filled({"at": text}), "at")
    assert at is not None
    assert at.isoformat() == shown


def test_an_empty_instant_is_none_and_a_wrong_one_is_noted() -> None:
    """The form is then not ok."""
    form = Form.filled({"at": None, "wrong": "tomorrow", "day": "2027-02-30"})
    assert typed_instant_ms(form, "at") is None
    assert form.ok
    assert typed_instant(form, "wrong") is None
    assert typed_day(form, "day") is None
    assert set(form.errors) == {"wrong", "day"}


def test_addresses_hold_what_is_given() -> None:
    """The filters of a list stay on its next page; on the last there is none."""
    assert address("/p", {"a": None, "b": ""}) == "/p"
    assert address("/p", {"a": "x&y"}) == "/p?a=x%26y"
    assert next_address("/p", {"a": "1"}, "c") == "/p?a=1&cursor=c"
    assert next_address("/p", {"a": "1"}, None) is None


def test_everything_that_is_named_has_words() -> None:
    """Each obstacle what to do, each check what it compares, each status its look."""
    for obstacle in Obstacle:
        assert advice_on(obstacle.value)
    for check in Check:
        assert explained(check.value)
    assert set(STATUS_KINDS) == {each.value for each in Status}


def test_shares_are_percent() -> None:
    """With a decimal; what is not known stays so."""
    assert percent("0.123456") == 12.3
    assert percent(None) is None
