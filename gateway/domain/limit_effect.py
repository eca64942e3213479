"""What a change of a tenant's limits would do: to what runs now, and to what is promised in all.
Pure.

Nothing is ever cut off by a lower limit. Where as much is in use as the new limit allows, or more,
it binds at once: the next request is admitted when use has fallen below it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec

from billing.domain.money import parse_amount, show_amount
from gateway.domain.queue.capacity import WorkerRoom
from gateway.domain.queue.ceilings import NO_CEILING
from gateway.domain.tenant import Limits, ModelLimits, TenantLimits

Place = tuple[str | None, str]
"""A limit: its model, None for all of them, and its name."""
LIMITS = tuple(name for name in TenantLimits.__struct_fields__ if name != "models")
MODEL_LIMITS = ModelLimits.__struct_fields__
BUDGET = "monthly_budget"


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """One limit. `used` is None where nothing of that kind is used up, or nobody knows how much;
    `over_by` is by how much use exceeds the new limit. Amounts of money are texts."""

    limit: str
    model: str | None
    now: int | str | None
    then: int | str | None
    used: int | str | None
    over_by: int | str | None
    binds_at_once: bool | None


@dataclass(frozen=True)
class Promised:
    """What tenants may have of one kind: the sum of their limits, and how many have none."""

    total: int
    unlimited: int

    def with_one(self, limit: int | None) -> "Promised":
        """With one more tenant."""
        if limit is None:
            return Promised(self.total, self.unlimited + 1)
        return Promised(self.total + limit, self.unlimited)


@dataclass(frozen=True)
class Capacity:
    """What the healthy workers can hold at once, and what they do. A worker without a ceiling is in
    `without_ceiling` and in no sum."""

    workers: int = 0
    without_ceiling: int = 0
    sequences: int = 0
    kv_tokens: int = 0
    sequences_running: int = 0


def effects(now: Limits, then: Limits, used: Mapping[Place, int], *, currency: str) -> list[Effect]:
    """Each limit of the tenant or the key, then those of each model that either narrows. `used` has
    what is known to be used of them, of a budget in pico-units of `currency`."""
    found = [
        _effect((None, name), getattr(now, name), getattr(then, name), used, currency)
        for name in LIMITS
    ]
    none = ModelLimits()
    for model in sorted({*now.models, *then.models}):
        before, after = now.models.get(model, none), then.models.get(model, none)
        found += [
            _effect((model, name), getattr(before, name), getattr(after, name), used, currency)
            for name in MODEL_LIMITS
            if getattr(before, name) is not None or getattr(after, name) is not None
        ]
    return found


def _effect(
    place: Place,
    now: int | str | None,
    then: int | str | None,
    used: Mapping[Place, int],
    currency: str,
) -> Effect:
    model, name = place
    in_use = used.get(place)
    over_by: int | None = None
    binds: bool | None = None
    if in_use is not None:
        over_by, binds = 0, False
        if then is not None:
            most = parse_amount(str(then), currency) if name == BUDGET else int(then)
            over_by, binds = max(0, in_use - most), in_use >= most

    def shown(number: int | None) -> int | str | None:
        return show_amount(number, currency) if name == BUDGET and number is not None else number

    return Effect(
        limit=name,
        model=model,
        now=now,
        then=then,
        used=shown(in_use),
        over_by=shown(over_by),
        binds_at_once=binds,
    )


def capacity_of(rooms: Iterable[WorkerRoom], now_ms: int) -> Capacity:
    """Of the workers that a gateway finds well."""
    well = [room for room in rooms if room.well_until_ms > now_ms]
    bounded = [
        room for room in well if room.sequences_max < NO_CEILING and room.tokens_max < NO_CEILING
    ]
    return Capacity(
        workers=len(well),
        without_ceiling=len(well) - len(bounded),
        sequences=sum(room.sequences_max for room in bounded),
        kv_tokens=sum(room.tokens_max for room in bounded),
        sequences_running=sum(room.running for room in well),
    )
