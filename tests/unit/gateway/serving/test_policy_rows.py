"""DESIGN 7's table, row by row: what is recorded of a request, and whether it is paid for."""

import pytest
from policy_rows import CASES, record_of
from price_examples import a_price

from billing.domain.policy import CURRENT_POLICY, is_billable
from billing.domain.usage_record import Outcome


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("name", CASES)
async def test_a_row_of_the_policy(
    name: str, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D03, D04, D05, D07, D08: the same row in either form; what is not paid for costs 0 and keeps
    what it would have cost, for the report."""
    case = CASES[name]
    record = await record_of(case, stream=stream, monkeypatch=monkeypatch)
    assert (record.prompt_tokens, record.output_tokens) == (case.prompt, case.output)
    assert (record.billable, record.billing_policy) == (case.pays, CURRENT_POLICY)
    price = a_price()
    listed = case.prompt * price.input_pico + case.output * price.output_pico
    assert record.list_cost_pico == listed
    assert record.cost_pico == (listed if case.pays else 0)


def test_no_row_is_left_out() -> None:
    """Each outcome of a request, with output and without; who refuses has run nothing."""
    known = {(case.outcome, case.output > 0) for case in CASES.values()}
    wanted = {(outcome, output) for outcome in Outcome for output in (True, False)}
    assert wanted - known == {
        (Outcome.REFUSED, True),
        (Outcome.TAKEN_BACK, True),
        (Outcome.TAKEN_BACK, False),
    }
    for case in CASES.values():
        assert is_billable(case.outcome, case.output) is case.pays
