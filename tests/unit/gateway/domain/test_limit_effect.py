"""What a change of limits would do, before it is made."""

import pytest

from gateway.domain.limit_effect import (
    LIMITS,
    Capacity,
    Effect,
    Place,
    Promised,
    capacity_of,
    effects,
)
from gateway.domain.queue.capacity import WorkerRoom
from gateway.domain.queue.ceilings import NO_CEILING
from gateway.domain.tenant import ModelLimits, TenantLimits

USD = 10**12


def effect_of(
    name: str,
    now: TenantLimits,
    then: TenantLimits,
    used: dict[Place, int],
    model: str | None = None,
) -> Effect:
    """One of them."""
    (found,) = (
        each
        for each in effects(now, then, used, currency="USD")
        if (each.model, each.limit) == (model, name)
    )
    return found


@pytest.mark.parametrize(
    ("then", "used", "over_by", "binds"),
    [(8, 12, 4, True), (8, 8, 0, True), (8, 7, 0, False), (0, 0, 0, True), (None, 12, 0, False)],
)
def test_it_binds_at_once_where_as_much_is_in_use(
    then: int | None, used: int, over_by: int, binds: bool
) -> None:
    """12 running against 8: nothing is cut off, the next is admitted below 8; at 8 too."""
    before, after = TenantLimits(max_sequences=20), TenantLimits(max_sequences=then)
    found = effect_of("max_sequences", before, after, {(None, "max_sequences"): used})
    assert (found.now, found.then, found.used) == (20, then, used)
    assert (found.over_by, found.binds_at_once) == (over_by, binds)


def test_what_nobody_knows_binds_perhaps() -> None:
    """Null, neither yes nor no; the same of what is not used up."""
    for name in ("tpm", "weight", "data_policy", "max_output_tokens"):
        found = effect_of(name, TenantLimits(), TenantLimits(tpm=1), {})
        assert (found.used, found.over_by, found.binds_at_once) == (None, None, None)


def test_every_limit_of_the_tenant_is_there() -> None:
    """Changed or not, in the order of the form."""
    found = effects(TenantLimits(), TenantLimits(), {}, currency="USD")
    assert tuple(each.limit for each in found) == LIMITS
    assert "models" not in LIMITS


def test_a_budget_is_compared_to_the_last_digit() -> None:
    """Spent and reserved together against the new budget, shown as money."""
    before, after = TenantLimits(), TenantLimits(monthly_budget="10.00")
    used: dict[Place, int] = {(None, "monthly_budget"): 10 * USD + 1}
    found = effect_of("monthly_budget", before, after, used)
    assert (found.then, found.used, found.over_by) == ("10.00", "10.000000000001", "0.000000000001")
    assert found.binds_at_once is True
    used = {(None, "monthly_budget"): 10 * USD - 1}
    assert effect_of("monthly_budget", before, after, used).binds_at_once is False


def test_of_a_model_what_either_narrows_is_there() -> None:
    """Also where the change takes it away."""
    before = TenantLimits(models={"a": ModelLimits(tpm=5)})
    after = TenantLimits(models={"b": ModelLimits(max_sequences=2)})
    used: dict[Place, int] = {("b", "max_sequences"): 3, ("a", "tpm"): 4}
    found = [each for each in effects(before, after, used, currency="USD") if each.model]
    assert [(each.model, each.limit, each.now, each.then) for each in found] == [
        ("a", "tpm", 5, None),
        ("b", "max_sequences", None, 2),
    ]
    assert [each.binds_at_once for each in found] == [False, True]


def test_one_without_a_limit_is_counted_apart() -> None:
    """No limit is no number that could be added."""
    others = Promised(total=40, unlimited=1)
    assert others.with_one(8) == Promised(48, 1)
    assert others.with_one(0) == Promised(40, 1)
    assert others.with_one(None) == Promised(40, 2)


def test_what_the_workers_hold() -> None:
    """Healthy ones; one without a ceiling is in no sum."""
    rooms = [
        WorkerRoom("a", 32, 16, 100_000, well_until_ms=2_000, running=3),
        WorkerRoom("b", 16, 8, 50_000, well_until_ms=2_000, running=1),
        WorkerRoom("open", NO_CEILING, NO_CEILING, NO_CEILING, well_until_ms=2_000, running=5),
        WorkerRoom("away", 64, 64, 10**6, well_until_ms=1_000, running=0),
    ]
    assert capacity_of(rooms, 1_000) == Capacity(
        workers=3, without_ceiling=1, sequences=48, kv_tokens=150_000, sequences_running=9
    )
    assert capacity_of([], 1_000) == Capacity()
