"""What use of the past would have cost at other prices: shown before they are written."""

from collections.abc import Iterable
from typing import NamedTuple

from billing.domain.price_book import PriceBook
from billing.domain.rating import cost_pico


class Used(NamedTuple):
    """Requests that somebody is to pay for, summed up; `cost_pico` is what they cost."""

    tenant_id: str
    model: str
    provider: str
    request_class: str
    currency: str
    requests: int
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cost_pico: int


class Effect(NamedTuple):
    """One tenant's use in one currency: what it cost, and what all of it would cost at the prices
    that hold at the instant `at_ms`, without and with the new ones. What has no price adds nothing,
    and is counted."""

    at_ms: int
    tenant_id: str
    currency: str
    requests: int
    cost_pico: int
    before_pico: int
    after_pico: int
    unpriced_before: int
    unpriced_after: int


def effects_of(
    used: Iterable[Used], before: PriceBook, after: PriceBook, instants: Iterable[int]
) -> list[Effect]:
    """The effect from each instant on, in order of time: of the first on everybody, of the others
    on those to whom it makes a difference to the one before."""
    every = list(used)
    found: list[Effect] = []
    latest: dict[tuple[str, str], tuple[int, int]] = {}
    for at_ms in sorted(set(instants)):
        for each in effect_of(every, before, after, at_ms=at_ms):
            key = (each.tenant_id, each.currency)
            made = (each.after_pico - each.before_pico, each.unpriced_after - each.unpriced_before)
            if latest.get(key) != made:
                found.append(each)
            latest[key] = made
    return found


def effect_of(
    used: Iterable[Used], before: PriceBook, after: PriceBook, *, at_ms: int
) -> list[Effect]:
    """The effect on each tenant and currency, in their order. Currencies are never added."""
    found: dict[tuple[str, str], Effect] = {}
    for each in used:
        key = (each.tenant_id, each.currency)
        so_far = found.get(key, Effect(at_ms, *key, 0, 0, 0, 0, 0, 0))
        at_before, at_after = _cost(each, before, at_ms), _cost(each, after, at_ms)
        found[key] = Effect(
            at_ms,
            *key,
            so_far.requests + each.requests,
            so_far.cost_pico + each.cost_pico,
            so_far.before_pico + (at_before or 0),
            so_far.after_pico + (at_after or 0),
            so_far.unpriced_before + (each.requests if at_before is None else 0),
            so_far.unpriced_after + (each.requests if at_after is None else 0),
        )
    return [found[key] for key in sorted(found)]


def _cost(used: Used, book: PriceBook, at_ms: int) -> int | None:
    price = book.price_at(
        used.model,
        used.provider,
        used.currency,
        at_ms,
        tenant_id=used.tenant_id,
        request_class=used.request_class,
    )
    if price is None:
        return None
    of_tokens = cost_pico(
        price,
        prompt_tokens=used.prompt_tokens,
        cached_tokens=used.cached_tokens,
        output_tokens=used.output_tokens,
        reasoning_tokens=used.reasoning_tokens,
    )
    return of_tokens + (used.requests - 1) * price.request_pico
