"""A look at a tenant's limits on real leases: what it tells, and that it takes nothing."""

import pytest
from memory_leases import Holder
from tenant_examples import a_key

from gateway.domain.admission import Demand
from gateway.domain.tenant import Limits, ModelLimits
from gateway.errors import InvalidRequest, LimitReached, Overloaded, QuotaExceeded
from gateway.serving.authenticate import Caller
from gateway.serving.queue.refusals import of_another
from gateway.serving.queue.scopes import LeaseSight

MONTH, PICO_OF_A_CENT = "2026-11", 10**10


def sight(holder: Holder, tokens: int = 60) -> LeaseSight:
    return LeaseSight(holder.leases, holder.caller, "m", Demand("asks", 1, tokens, tokens))


async def test_room_is_seen_and_not_taken() -> None:
    holder = Holder(Limits(max_sequences=1))
    assert await sight(holder).has_room()
    assert await sight(holder).refusal() is None
    assert holder.leases.held == 0
    await holder.ask("a")
    assert not await sight(holder).has_room()


async def test_the_refusal_is_the_limits_own() -> None:
    holder = Holder(Limits(tpm=100))
    await holder.ask("a", 90)
    refused = await sight(holder).refusal()
    assert isinstance(refused, LimitReached)
    assert (refused.type, refused.code) == ("tokens", "rate_limit_exceeded")
    assert "100 tokens a minute: 90 in use, this request needs 60" in refused.message
    assert holder.tokens == 90
    assert holder.leases.held == 1
    # The request itself can still be decided on.
    await holder.ask("asks", 10)


@pytest.mark.parametrize(
    ("of_tenant", "of_key", "is_of_key"),
    [
        (Limits(max_sequences=1), None, False),
        (Limits(models={"m": ModelLimits(max_sequences=1)}), None, False),
        (Limits(), Limits(max_sequences=1), True),
        (Limits(), Limits(models={"m": ModelLimits(max_sequences=1)}), True),
        (Limits(max_sequences=1), Limits(max_sequences=1), False),
    ],
)
async def test_it_says_whether_the_limit_is_the_keys_own(
    of_tenant: Limits, of_key: Limits | None, *, is_of_key: bool
) -> None:
    """Where it is, what other keys end is nothing to it; and so is it told to others behind it."""
    holder = Holder(of_tenant)
    if of_key is not None:
        holder.caller = Caller(holder.caller.tenant, a_key(of_key))
    await holder.ask("a")
    refused = await sight(holder).refusal()
    assert isinstance(refused, LimitReached)
    assert refused.of_key is is_of_key
    assert of_another(refused).of_key is is_of_key


async def test_what_was_granted_after_all_is_given_back() -> None:
    """Somebody ended between the look and the decision."""
    holder = Holder(Limits(max_sequences=1))
    lease = await holder.ask("a")
    observe = holder.ledger.observe

    async def then_ends(*asked: object) -> object:
        uses = await observe(*asked)  # type: ignore[arg-type]
        await holder.end(lease, 60)
        return uses

    holder.ledger.observe = then_ends  # type: ignore[method-assign,assignment]
    assert await sight(holder).refusal() is None
    assert holder.leases.held == 0
    assert not holder.state.leases


@pytest.mark.parametrize(("spent", "is_refused"), [(0, False), (PICO_OF_A_CENT, True)])
async def test_of_a_budget_a_decision_tells(spent: int, *, is_refused: bool) -> None:
    """What is left of it is in no look; asked for its other limits it says nothing."""
    holder = Holder(Limits(monthly_budget="0.01"))
    begun = await holder.ledger.begin_month("acme", MONTH)
    assert begun is not None
    assert await holder.ledger.finish_month("acme", MONTH, begun.at_ms, {"tenant": spent})
    asks = LeaseSight(
        holder.leases, holder.caller, "m", Demand("asks", 1, 60, 60, cost_pico=1, month=MONTH)
    )
    assert await asks.refusal() is None
    refused = await asks.refusal(of_budget=True)
    assert isinstance(refused, QuotaExceeded) is is_refused
    assert holder.leases.held == 0


async def test_what_can_never_fit_is_told_so() -> None:
    refused = await sight(Holder(Limits(tpm=50))).refusal()
    assert isinstance(refused, InvalidRequest)


async def test_nobody_knows_while_the_store_is_away() -> None:
    holder = Holder()
    await holder.lose()
    with pytest.raises(Overloaded):
        await sight(holder).has_room()
