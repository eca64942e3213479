"""Hosted providers: OpenAI-compatible services that may serve a model when the fleet cannot."""

from collections.abc import Collection, Iterable
from typing import Annotated, Literal

import msgspec

from gateway.domain.tenant import EngineKind, Worker

PROVIDER_PREFIX = "hosted:"
PRICE_PICO_MAX = 2**31 - 1
"""So that 2**32 tokens cost less than 2**63 pico-USD, the most that a cost's column holds."""
Price = Annotated[int, msgspec.Meta(ge=0, le=PRICE_PICO_MAX)]
Timeout = Annotated[int, msgspec.Meta(ge=1, le=3_600_000)]


class HostedPrice(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a provider charges Weir's operator, in pico-USD per token (that is micro-USD per million
    tokens). `cached_input` is None where cached prompt tokens cost as much as any."""

    input: Price
    output: Price
    cached_input: Price | None = None

    def cost_pico(self, *, prompt_tokens: int, cached_tokens: int, output_tokens: int) -> int:
        """What these tokens cost, in pico-USD. Exact: whole tokens times whole pico-USD."""
        cached = min(max(cached_tokens, 0), prompt_tokens)
        cached_price = self.input if self.cached_input is None else self.cached_input
        return (
            (prompt_tokens - cached) * self.input
            + cached * cached_price
            + output_tokens * self.output
        )


class HostedModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The provider's name of one of our models, and its price; None where it is not known."""

    name: str
    price: HostedPrice | None = None


class HostedProvider(msgspec.Struct, frozen=True, kw_only=True):
    """One OpenAI-compatible provider: where it is, what it serves, how long it is waited for."""

    name: str
    url: str
    """The base address that its documentation gives to SDKs, version included (`…/v1`)."""
    models: dict[str, HostedModel]
    """Ours to theirs. A model that is not named here never goes to this provider."""
    api_key: str | None = None
    rank: int = 0
    """Of several providers of a model the lowest rank is asked first; ties by name."""
    enabled: bool = True
    connect_timeout_ms: Timeout = 5_000
    first_event_timeout_ms: Timeout = 60_000
    stall_timeout_ms: Timeout = 60_000
    output_limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """What the provider calls the maximum output; OpenAI's own newer models want the second."""
    extensions: tuple[str, ...] = ()
    """Request fields beyond OpenAI's that this provider understands as SGLang does."""

    def __repr__(self) -> str:
        """Without its key, for the same reason as a worker's."""
        return f"HostedProvider(name={self.name!r}, url={self.url!r})"

    @property
    def id(self) -> str:
        """As usage records name it: `hosted:<name>`."""
        return PROVIDER_PREFIX + self.name


class HostedTarget(Worker, frozen=True, kw_only=True):
    """One model at one provider, as something a stream can be opened on."""

    served_name: str
    price: HostedPrice | None
    connect_timeout_ms: int
    first_event_timeout_ms: int
    stall_timeout_ms: int
    output_limit_field: str
    extensions: tuple[str, ...]

    @property
    def provider(self) -> str:
        """`hosted:<name>`."""
        return self.id

    def endpoint(self, path: str) -> str:
        """The address of an endpoint: the provider's base has the version already."""
        return self.url + path.removeprefix("/v1")


def target_of(provider: HostedProvider, model: str) -> HostedTarget | None:
    """What to open a stream of `model` on, or None where the provider does not serve it."""
    served = provider.models.get(model)
    if served is None or not provider.enabled:
        return None
    return HostedTarget(
        id=provider.id,
        model=model,
        url=provider.url.rstrip("/"),
        kind=EngineKind.OPENAI,
        engine="hosted",
        api_key=provider.api_key,
        served_name=served.name,
        price=served.price,
        connect_timeout_ms=provider.connect_timeout_ms,
        first_event_timeout_ms=provider.first_event_timeout_ms,
        stall_timeout_ms=provider.stall_timeout_ms,
        output_limit_field=provider.output_limit_field,
        extensions=provider.extensions,
    )


def hosted_models(providers: Iterable[HostedProvider]) -> set[str]:
    """Models that one of them serves now."""
    return {model for provider in providers if provider.enabled for model in provider.models}


def in_order(providers: Collection[HostedProvider]) -> list[HostedProvider]:
    """Providers in the order in which they are asked."""
    return sorted(providers, key=lambda provider: (provider.rank, provider.name))
