"""What hosted providers would have charged for the same tokens, and where the two are equal."""

from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from billing.domain.unit_cost.quantities import half_up

REFERENCE_READ_ON = "2026-11-29"


class HostedRate(NamedTuple):
    """A price in pico-units per token, which are as many micro-units per million tokens."""

    input_pico: int
    output_pico: int

    def cost_pico(self, prompt_tokens: int, output_tokens: int) -> int:
        """Every prompt token at the full price: whether a provider would find it in a cache, and
        what it would take off, nobody knows."""
        return prompt_tokens * self.input_pico + output_tokens * self.output_pico


REFERENCE_RATES: dict[str, HostedRate] = {
    "deepinfra-turbo": HostedRate(100_000, 320_000),
    "novita": HostedRate(135_000, 400_000),
    "deepinfra": HostedRate(230_000, 400_000),
    "groq": HostedRate(590_000, 790_000),
    "bedrock": HostedRate(720_000, 720_000),
    "together": HostedRate(1_040_000, 1_040_000),
}
"""Llama-3.3-70B in USD, from the price maps of litellm 1.106.12 and genai-prices 0.2.3 as read on
REFERENCE_READ_ON. Such lists lag behind."""


class Comparison(NamedTuple):
    """One hosted price beside the pool, for the same tokens."""

    name: str
    rates: Mapping[str, HostedRate]
    """By model."""
    hosted_pico: int
    """What all the pool's tokens would have cost there."""
    break_even: Fraction | None
    """The utilisation above which the hosted price is dearer than the pool; above 1: never. None
    where the hosted price is 0."""
    price_factor: Fraction | None
    """Times the hosted price is as dear as the pool was, its idle time included."""
    gpu_hour_pico: int
    """The price of a GPU-hour at which the pool would have cost as much; negative where its
    operations alone cost more."""
    saved_pico: int
    """What the pool was cheaper by; negative: dearer."""


class PoolCost(NamedTuple):
    """The pool's side of a comparison."""

    bill_pico: int
    busy_pico: int
    """The part of the bill that the work bears: what it costs at full use."""
    operations_pico: int
    gpu_ms: int
    tokens: Mapping[str, tuple[int, int]]
    """Prompt and output tokens by model."""


class NoHostedPrice(ValueError):
    """A model that the pool served has no price there."""


def compare(name: str, rates: Mapping[str, HostedRate], pool: PoolCost) -> Comparison:
    """Raises NoHostedPrice, naming the model."""
    missing = sorted(set(pool.tokens) - set(rates))
    if missing:
        raise NoHostedPrice(f"{name} has no price for {', '.join(missing)}")
    hosted = sum(rates[model].cost_pico(*tokens) for model, tokens in pool.tokens.items())
    left_for_gpus = hosted - pool.operations_pico
    return Comparison(
        name,
        rates,
        hosted,
        break_even_of(pool.busy_pico, hosted),
        Fraction(pool.bill_pico, hosted) if hosted else None,
        half_up(Fraction(left_for_gpus * 3_600_000, pool.gpu_ms)) if pool.gpu_ms else 0,
        hosted - pool.bill_pico,
    )


def break_even_of(cost_at_full_use: int, hosted: int) -> Fraction | None:
    """The utilisation at which both cost the same: at half of full use each token costs twice."""
    return Fraction(cost_at_full_use, hosted) if hosted else None
