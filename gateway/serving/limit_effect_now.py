"""What limits would do, and what is used of them, by what a gateway sees at this moment."""

from gateway.domain.pools import pools_of
from gateway.errors import StoreUnavailable
from gateway.serving.limit_effect import Change, KeyChange, key_limit_effect, limit_effect
from gateway.serving.live_view import LiveView
from gateway.serving.queue_view import Json, Uses


async def effect_now(change: Change, live: LiveView) -> Json:
    """What a change of a tenant's limits would do. What runs is looked at through the parts of the
    live view; what they do not tell is not known, and `degraded` says so."""
    return await limit_effect(
        change,
        live.ledger,
        await _uses(live),
        now_ms=live.clock.now_ms(),
        tokens_last_minute=await _tokens_last_minute(live),
    )


async def use_now(unchanged: Change, live: LiveView) -> Json:
    """The same of limits that stay as they are: what is used of each. The tokens of all tenants,
    which take a look at each, are left out."""
    uses = await _uses(live)
    return await limit_effect(unchanged, live.ledger, uses, now_ms=live.clock.now_ms())


async def key_effect_now(change: KeyChange, live: LiveView) -> Json:
    """What a change of a key's limits would do."""
    return await key_limit_effect(change, live.ledger, now_ms=live.clock.now_ms())


async def _uses(live: LiveView) -> Uses:
    models = (model.id for model in live.directory.models())
    return await live.looks.look_at(pools_of(models, live.directory.workers()))


async def _tokens_last_minute(live: LiveView) -> int | None:
    try:
        return await live.tokens_last_minute()
    except StoreUnavailable:
        return None
