import pytest

from billing.domain.policy import CURRENT_POLICY, POLICY_VERSIONS, is_billable
from billing.domain.usage_record import Outcome


@pytest.mark.parametrize(
    ("outcome", "without_output", "with_output"),
    [
        (Outcome.COMPLETED, True, True),
        (Outcome.CLIENT_CANCELLED, False, True),
        (Outcome.WORKER_FAILED, False, False),
        (Outcome.TIMED_OUT, False, False),
        (Outcome.REFUSED, False, False),
        (Outcome.GATEWAY_LOST, False, False),
        (Outcome.TAKEN_BACK, False, False),
    ],
)
def test_who_pays_for_what(outcome: Outcome, without_output: bool, with_output: bool) -> None:
    """DESIGN 7's table, version 1: it never changes, since bills name it (D04, V44)."""
    assert is_billable(outcome, 0, policy=1) is without_output
    assert is_billable(outcome, 1, policy=1) is with_output


@pytest.mark.parametrize("version", POLICY_VERSIONS)
def test_every_version_knows_every_outcome(version: int) -> None:
    """A record can never be without a verdict."""
    assert set(POLICY_VERSIONS[version]) == set(Outcome)


def test_the_newest_version_is_in_force() -> None:
    """New records are judged by it unless another is named."""
    assert max(POLICY_VERSIONS) == CURRENT_POLICY
    for outcome in Outcome:
        for tokens in (0, 7):
            assert is_billable(outcome, tokens) is is_billable(
                outcome, tokens, policy=CURRENT_POLICY
            )


def test_an_unknown_version_is_an_error() -> None:
    """Never a silent default."""
    with pytest.raises(KeyError):
        is_billable(Outcome.COMPLETED, 1, policy=max(POLICY_VERSIONS) + 1)
