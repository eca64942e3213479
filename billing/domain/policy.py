"""Which outcomes a tenant pays for: data with a version, and each record names the version it was
judged by, so that a later table never rewrites an earlier bill. Postgres holds the same table."""

from collections.abc import Mapping
from dataclasses import dataclass

from billing.domain.usage_record import Outcome


@dataclass(frozen=True)
class PolicyRow:
    """Whether an outcome is paid for, by whether any output token was generated."""

    with_output: bool
    without_output: bool


POLICY_VERSIONS: dict[int, dict[Outcome, PolicyRow]] = {
    1: {
        Outcome.COMPLETED: PolicyRow(with_output=True, without_output=True),
        Outcome.CLIENT_CANCELLED: PolicyRow(with_output=True, without_output=False),
        Outcome.WORKER_FAILED: PolicyRow(with_output=False, without_output=False),
        Outcome.TIMED_OUT: PolicyRow(with_output=False, without_output=False),
        Outcome.REFUSED: PolicyRow(with_output=False, without_output=False),
        Outcome.GATEWAY_LOST: PolicyRow(with_output=False, without_output=False),
        # Of attempts only, which nobody pays for: no record has ever been judged by it.
        Outcome.TAKEN_BACK: PolicyRow(with_output=False, without_output=False),
    },
}
CURRENT_POLICY = max(POLICY_VERSIONS)


def is_billable(outcome: Outcome, output_tokens: int, *, policy: int = CURRENT_POLICY) -> bool:
    """Whether the tenant pays for a request that ended so, under that version of the policy."""
    row = POLICY_VERSIONS[policy][outcome]
    return row.with_output if output_tokens > 0 else row.without_output


def differences(stored: Mapping[int, Mapping[str, PolicyRow]]) -> list[str]:
    """Where a stored policy is another than the one that records are judged by: `<version>
    <outcome>` of each. Versions that this release does not know are a later one's."""
    return [
        f"{version} {outcome.value}"
        for version, rows in POLICY_VERSIONS.items()
        for outcome, row in rows.items()
        if stored.get(version, {}).get(outcome.value) != row
    ]
