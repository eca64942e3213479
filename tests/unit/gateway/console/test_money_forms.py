"""Words for what pages on money name."""

from billing.domain.invoicing.issuing import Obstacle
from billing.domain.invoicing.lifecycle import Status
from billing.domain.reconciliation.findings import Check
from gateway.console.invoice_words import STATUS_KINDS, advice_on
from gateway.console.reconcile_words import explained
from gateway.console.unit_cost import percent


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
