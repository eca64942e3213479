"""Hosted providers for tests."""

from typing import Any

from gateway.domain.hosted import HostedModel, HostedPrice, HostedProvider

PRICE = HostedPrice(input=400_000, cached_input=100_000, output=1_600_000)


def a_provider(name: str = "acme-ai", **fields: Any) -> HostedProvider:
    """A provider of the model `m`, priced."""
    values: dict[str, Any] = {
        "url": "https://ai.example/v1",
        "models": {"m": HostedModel(name="big-m", price=PRICE)},
        **fields,
    }
    return HostedProvider(name=name, **values)
