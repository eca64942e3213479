"""What may be asked of the reconciliation at the console, and what is then looked at."""

from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from billing.domain.reconciliation.findings import Check, Verdict
from gateway.adapters.asked_reconciliations import AskedReconciliations
from gateway.adapters.reconciler import Reconciler, Scope
from gateway.errors import StoreUnavailable, Unprocessable

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


class _Told:
    """Notes what it is to look at; fails where it is told to."""

    def __init__(self, error: Exception | None = None) -> None:
        self.scopes: list[Scope] = []
        self._error = error

    async def run(self, scope: Scope) -> list[Verdict]:
        """One verdict."""
        self.scopes.append(scope)
        if self._error is not None:
            raise self._error
        return [Verdict(Check.ROLLUPS)]


def asked(told: _Told) -> AskedReconciliations:
    return AskedReconciliations(cast("Reconciler", told))


async def test_a_period_is_widened_to_whole_quarters() -> None:
    """An end on a quarter stays; records are not all counted for it."""
    told = _Told()
    since = NOW - HOUR + timedelta(minutes=7, seconds=3)
    period, verdicts = await asked(told).run(since, NOW, now=NOW)
    assert (period.since, period.until) == (NOW - HOUR, NOW)
    assert [each.check for each in verdicts] == [Check.ROLLUPS]
    assert not told.scopes[0].count_rows
    period, _ = await asked(told).run(since, NOW + timedelta(seconds=1), now=NOW)
    assert period.until == NOW + timedelta(minutes=15)


@pytest.mark.parametrize(
    ("since", "until", "field"),
    [
        (NOW, NOW, "until"),
        (NOW - 25 * HOUR, NOW, "until"),
        (NOW + HOUR, NOW + 2 * HOUR, "since"),
    ],
)
async def test_what_cannot_be_asked_names_the_field(
    since: datetime, until: datetime, field: str
) -> None:
    """And nothing is looked at."""
    told = _Told()
    with pytest.raises(Unprocessable) as refused:
        await asked(told).run(since, until, now=NOW)
    assert refused.value.param == field
    assert told.scopes == []


@pytest.mark.parametrize("error", [OSError("away"), TimeoutError()])
async def test_a_store_that_is_away_is_said(error: Exception) -> None:
    """Also where it takes too long; the next one has its turn."""
    reconciliations = asked(_Told(error))
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await reconciliations.run(NOW - HOUR, NOW, now=NOW)
