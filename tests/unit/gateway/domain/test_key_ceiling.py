"""B10: a tenant's admin changes a key's limits within the tenant's own, and no further."""

import re
from typing import Any

import pytest
from tenant_examples import a_tenant

from gateway.domain.key_ceiling import check_within
from gateway.domain.tenant import CacheIsolation, DataPolicy, Limits, ModelLimits
from gateway.errors import Unprocessable

COUNTS = ("max_sequences", "tpm", "rpm", "max_prompt_tokens", "max_output_tokens")
WAITING = ("max_queued", "max_wait_ms")
MODEL_KINDS = (*COUNTS, "monthly_budget")


def of(model: Any = None, **fields: Any) -> Limits:
    """Limits, of the model `m` too where they are given."""
    return Limits(**fields, models={} if model is None else {"m": ModelLimits(**model)})


def refused(wanted: Limits, before: Limits, tenant: Limits) -> str | None:
    """What is said of the field that goes beyond; None where none does."""
    try:
        check_within(wanted, before, a_tenant(limits=tenant, currency="USD"))
    except Unprocessable as error:
        param, message = error.param, error.message
    else:
        return None
    assert param is not None
    assert message.startswith(f"{param}: ")
    return message


@pytest.mark.parametrize("field", [*COUNTS, *WAITING, "weight"])
def test_each_count_goes_up_to_the_tenants(field: str) -> None:
    """B10: the ceiling is named; below it a key's limit is raised at will."""
    tenant = of(**{field: 10})
    for value in (1, 9, 10):
        assert refused(of(**{field: value}), of(), tenant) is None
    said = refused(of(**{field: 11}), of(), tenant)
    assert said == f"{field}: must be at most 10, the tenant's own"


@pytest.mark.parametrize("field", [*COUNTS, *WAITING])
def test_no_count_of_its_own_is_the_tenants(field: str) -> None:
    """The tenant's holds then, which is within it."""
    assert refused(of(), of(**{field: 3}), of(**{field: 10})) is None


@pytest.mark.parametrize("field", COUNTS)
def test_without_a_limit_of_the_tenants_there_is_no_ceiling(field: str) -> None:
    """None is no limit, 0 is none at all."""
    assert refused(of(**{field: 2**40}), of(), of()) is None
    assert refused(of(**{field: 1}), of(), of(**{field: 0})) is not None


def test_waiting_has_a_ceiling_where_nobody_wrote_one() -> None:
    """A tenant's waiting is always bounded: 64 requests, 10 s."""
    assert refused(of(max_queued=64, max_wait_ms=10_000), of(), of()) is None
    assert refused(of(max_queued=65), of(), of()) == (
        "max_queued: must be at most 64, the tenant's own"
    )
    assert refused(of(max_wait_ms=10_001), of(), of()) is not None


def test_a_budget_is_raised_up_to_the_tenants() -> None:
    """B10: by amount, not by text."""
    tenant = of(monthly_budget="100.00")
    assert refused(of(monthly_budget="100"), of(monthly_budget="9.50"), tenant) is None
    assert refused(of(monthly_budget="9.99"), of(monthly_budget="1"), tenant) is None
    said = refused(of(monthly_budget="100.01"), of(monthly_budget="9.50"), tenant)
    assert said == "monthly_budget: must be at most 100.00 USD, the tenant's own"
    assert refused(of(monthly_budget="999999"), of(), of()) is None


def test_a_budget_is_not_taken_away_where_the_tenant_has_one() -> None:
    """Without it the key would reach for all of the tenant's; where the tenant has none it may."""
    had = of(monthly_budget="5")
    said = refused(of(), had, of(monthly_budget="100"))
    assert said is not None
    assert re.fullmatch(
        r"monthly_budget: must be at most 100 USD, the tenant's own; without .*", said
    )
    assert refused(of(), had, of()) is None
    assert refused(of(), of(), of(monthly_budget="100")) is None


@pytest.mark.parametrize("field", MODEL_KINDS)
def test_of_one_model_the_tighter_of_the_tenants_two_holds(field: str) -> None:
    """That for the model and that for all, whichever is less."""

    def of_kind(amount: int) -> Any:
        return str(amount) if field == "monthly_budget" else amount

    for tenant in (
        of({field: of_kind(10)}),
        of(**{field: of_kind(10)}),
        of({field: of_kind(10)}, **{field: of_kind(20)}),
        of({field: of_kind(20)}, **{field: of_kind(10)}),
    ):
        assert refused(of({field: of_kind(10)}), of(), tenant) is None
        said = refused(of({field: of_kind(11)}), of(), tenant)
        assert said is not None
        assert said.startswith(f"models.m.{field}: must be at most 10")


def test_a_models_budget_is_not_taken_away_by_leaving_the_model_out() -> None:
    """The fields of a PUT replace all of them."""
    had = of({"monthly_budget": "5"})
    assert refused(of(), had, of(monthly_budget="100")) is not None
    assert refused(of({}), had, of({"monthly_budget": "6"})) is not None
    assert refused(of(), had, of()) is None


def test_what_is_as_it_was_is_not_refused() -> None:
    """Whoever runs the gateway may have written more than the tenant's own."""
    beyond = of({"tpm": 99, "monthly_budget": "70"}, tpm=99, weight=9, monthly_budget="70")
    tenant = of(tpm=10, monthly_budget="50")
    assert refused(beyond, beyond, tenant) is None
    more = of({"tpm": 99, "monthly_budget": "70"}, tpm=98, weight=9, monthly_budget="70")
    assert refused(more, beyond, tenant) == "tpm: must be at most 10, the tenant's own"


def test_policies_are_not_loosened_beyond_the_tenants() -> None:
    """Where the tenant's prompts go, and whose cache they share, only whoever runs it says."""
    hosted, shared = DataPolicy.HOSTED_ALLOWED, CacheIsolation.SHARED
    assert refused(of(data_policy=hosted), of(), of(data_policy=hosted)) is None
    assert refused(of(data_policy=DataPolicy.SELF_HOSTED_ONLY), of(), of()) is None
    assert refused(of(data_policy=hosted), of(), of()) is not None
    assert refused(of(data_policy=hosted), of(data_policy=hosted), of()) is None
    assert refused(of(cache_isolation=shared), of(), of(cache_isolation=shared)) is None
    assert refused(of(cache_isolation=shared), of(), of()) is not None
