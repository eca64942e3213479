import pytest

from billing.domain.policy import CURRENT_POLICY, POLICY_VERSIONS, is_billable
from billing.domain.usage_record import Outcome

PAID = {
    (Outcome.COMPLETED, 0),
    (Outcome.COMPLETED, 9),
    (Outcome.CLIENT_CANCELLED, 9),
}


@pytest.mark.parametrize("outcome", list(Outcome))
@pytest.mark.parametrize("output_tokens", [0, 9])
def test_who_pays_for_what(outcome: Outcome, output_tokens: int) -> None:
    """What was answered is paid, a leave only for what it had got, our own failures never."""
    assert is_billable(outcome, output_tokens, policy=1) is ((outcome, output_tokens) in PAID)


@pytest.mark.parametrize("policy", POLICY_VERSIONS)
def test_a_policy_judges_every_outcome(policy: int) -> None:
    """No record can meet a table that does not know its outcome."""
    assert POLICY_VERSIONS[policy].keys() == set(Outcome)


def test_the_current_policy_is_the_latest() -> None:
    """New records are judged by the newest table."""
    assert max(POLICY_VERSIONS) == CURRENT_POLICY
