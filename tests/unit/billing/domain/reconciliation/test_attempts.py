"""REC-6 on made-up records."""

from dataclasses import replace
from uuid import UUID

import pytest

from billing.domain.policy import POLICY_VERSIONS
from billing.domain.reconciliation.attempts import Judged, Try, check_attempts

REQUEST = UUID(int=1)
POLICIES = {1: {outcome.value: row for outcome, row in POLICY_VERSIONS[1].items()}}


def tried(
    attempt: int, outcome: str, output: int = 0, choice: int = 0, *,
    prompt: int = 10, cached: int | None = 4,
) -> Try:  # fmt: skip
    return Try(choice, attempt, outcome, prompt, output, cached)


def judged(*tries: Try, output: int = 20, **changes: object) -> Judged:
    record = Judged(
        request_id=REQUEST,
        tenant_id="acme",
        outcome="completed",
        prompt_tokens=10,
        cached_prompt_tokens=4,
        output_tokens=output,
        usage_source="engine_final",
        attempts=len(tries),
        billable=True,
        billing_policy=1,
        tries=tries,
    )
    return replace(record, **changes)  # type: ignore[arg-type]


DONE = tried(1, "completed", 20)


@pytest.mark.parametrize(
    "record",
    [
        judged(DONE),
        judged(tried(1, "worker_failed"), tried(2, "completed", 20)),
        judged(tried(1, "taken_back", 3), tried(2, "refused"), tried(3, "completed", 20)),
        judged(DONE, tried(2, "completed", 5, choice=1), output=25),
        judged(tried(1, "taken_back", 1), output=0, outcome="client_cancelled", billable=False),
        judged(output=0, outcome="client_cancelled", billable=False, usage_source="estimated"),
        judged(output=7, outcome="gateway_lost", billable=False),
        judged(tried(1, "refused", 4), output=0, outcome="refused", billable=False),
        judged(tried(1, "completed", 2**31), output=2**31 - 1, usage_flags=["count_out_of_range"]),
        judged(DONE, tried(2, "completed", 5, choice=1), output=25, prompt_tokens=20),
        judged(tried(1, "completed", 20, cached=None)),
        judged(
            tried(1, "completed", 20, prompt=0), prompt_tokens=12, usage_flags=["prompt_counted"]
        ),
        judged(tried(1, "completed", 20, cached=14), cached_prompt_tokens=10),
        judged(
            tried(1, "client_cancelled", 1), output=0, outcome="client_cancelled",
            usage_source="estimated", billable=False,
        ),
    ],
)  # fmt: skip
def test_what_is_right_is_not_found(record: Judged) -> None:
    """Several choices, tries elsewhere, places taken back, lost gateways."""
    assert check_attempts([record], POLICIES).ok


@pytest.mark.parametrize(
    ("record", "size", "what"),
    [
        (judged(tried(1, "completed", 20), tried(2, "completed", 20)), 20, "two attempts"),
        (judged(DONE, attempts=2), 1, "says 2 attempts, and there are 1"),
        (judged(output=20), 20, "no attempt of it counts"),
        (judged(output=0), 1, "no attempt of it counts"),
        (judged(DONE, output=23), 3, "says 23 output tokens, what counts of its attempts 20"),
        (judged(DONE, prompt_tokens=110), 100, "110 prompt tokens, what counts of its attempts 10"),
        (judged(DONE, prompt_tokens=7), 3, "7 prompt tokens"),
        (judged(DONE, cached_prompt_tokens=0), 4, "0 cached prompt tokens"),
        (
            judged(DONE, tried(2, "completed", 5, choice=1), output=25, prompt_tokens=21),
            1,
            "21 prompt tokens, what counts of its attempts 10 to 20",
        ),
        (judged(DONE, billable=False), 20, "it is not billed"),
        (judged(DONE, outcome="worker_failed"), 20, "it is billed"),
        (judged(DONE, billing_policy=9), 1, "no policy 9"),
    ],
)
def test_what_is_wrong_is_found_by_name_and_size(record: Judged, size: int, what: str) -> None:
    """One finding, of that request."""
    (finding,) = check_attempts([record], POLICIES).findings
    assert (finding.request_id, finding.size) == (REQUEST, size)
    assert what in finding.what


def test_terms_tell_attempts_apart() -> None:
    record = judged(tried(1, "taken_back"), tried(2, "worker_failed"), tried(3, "completed", 20))
    terms = {term.name: term.size for term in check_attempts([record], POLICIES).terms}
    assert terms == {
        "records": 1,
        "attempts": 3,
        "counted": 1,
        "tried_elsewhere": 1,
        "taken_back": 1,
        "without_attempts": 0,
    }
