"""What a sum of usage cost, by kind of token: the parts add up to the whole, to the pico."""

from collections.abc import Iterator
from typing import NamedTuple

from billing.domain.price_book import Price


class Rated(NamedTuple):
    """Usage of one model at one price, in sums. `price` None: some have no price, or nobody is to
    pay; `unpriced_requests` are those that somebody is to pay for."""

    model: str
    price: Price | None
    requests: int
    prompt_tokens: int
    cached_prompt_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cost_pico: int
    unpriced_requests: int


class CostLine(NamedTuple):
    """One kind of what a model cost. `pico` None: not known, since there is no price."""

    line_item: str
    """As `smollm2-135m, input_tokens`."""
    quantity: int | None
    unit: str | None
    pico: int | None
    unpriced_requests: int = 0


def cost_lines(usage: Rated) -> list[CostLine]:
    """Lines of what cost something or is free, of input_tokens, cached_input_tokens, output_tokens,
    reasoning_tokens and requests; what has no price is a line `unpriced` without an amount. Where
    the parts do not add up to what the requests cost, since an engine said more of its cached or
    reasoning tokens than it said in all, the whole is one line `other`."""
    lines: list[CostLine] = []
    if usage.unpriced_requests:
        count = usage.unpriced_requests
        lines.append(CostLine(f"{usage.model}, unpriced", count, "requests", None, count))
    parts = [] if usage.price is None else list(_parts(usage, usage.price))
    if sum(line.pico or 0 for line in parts) != usage.cost_pico:
        parts = [CostLine(f"{usage.model}, other", None, None, usage.cost_pico)]
    return parts + lines


def _parts(usage: Rated, price: Price) -> Iterator[CostLine]:
    cached = min(usage.cached_prompt_tokens, usage.prompt_tokens)
    reasoning = min(usage.reasoning_tokens, usage.output_tokens)
    cached_pico = price.input_pico if price.cached_input_pico is None else price.cached_input_pico
    reasoning_pico = price.output_pico if price.reasoning_pico is None else price.reasoning_pico
    for kind, quantity, pico in (
        ("input_tokens", usage.prompt_tokens - cached, price.input_pico),
        ("cached_input_tokens", cached, cached_pico),
        ("output_tokens", usage.output_tokens - reasoning, price.output_pico),
        ("reasoning_tokens", reasoning, reasoning_pico),
    ):
        if quantity:
            yield CostLine(f"{usage.model}, {kind}", quantity, "tokens", quantity * pico)
    if price.request_pico and usage.requests:
        pico = usage.requests * price.request_pico
        yield CostLine(f"{usage.model}, requests", usage.requests, "requests", pico)
