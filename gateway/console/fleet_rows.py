"""Models and hosted providers as the page on the fleet shows them. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from billing.domain.price_book import PriceBook
from gateway.console.worker_rows import WorkerState
from gateway.domain.hosted import HostedProvider
from gateway.domain.limits_check import SELF
from gateway.domain.tenant import Model

Row = Mapping[str, Any]


def model_rows(
    models: Iterable[Model], workers: Sequence[Row], book: PriceBook, now_ms: int
) -> list[Row]:
    """The models by id: how many workers serve each, and in which currencies the list has a price
    for it now."""
    rows: list[Row] = []
    for model in sorted(models, key=lambda each: each.id):
        own = [row for row in workers if row["model"] == model.id]
        rows.append(
            {
                "id": model.id,
                "context_tokens": model.context_tokens,
                "max_output_tokens": model.max_output_tokens,
                "default_output_tokens": model.default_output_tokens,
                "workers": len(own),
                "healthy": sum(row["state"] is WorkerState.HEALTHY for row in own),
                "currencies": book.listed_currencies(model.id, SELF, now_ms),
            }
        )
    return rows


def hosted_rows(
    providers: Sequence[HostedProvider], live: Iterable[Row], book: PriceBook, now_ms: int
) -> list[Row]:
    """Hosted providers in the order of `live`, which is that in which they are asked, each as it is
    registered too. `unpriced` are its models without a list price in any currency, `uncosted` those
    of which it is not known what the provider charges."""
    registered = {provider.name: provider for provider in providers}
    rows: list[Row] = []
    for seen in live:
        provider = registered.get(seen["name"])
        if provider is None:
            continue
        rows.append(
            {
                **seen,
                "enabled": provider.enabled,
                "host": urlsplit(provider.url).netloc.rpartition("@")[2],
                "rank": provider.rank,
                "has_api_key": provider.api_key is not None,
                "served": sorted((ours, theirs.name) for ours, theirs in provider.models.items()),
                "unpriced": [
                    ours
                    for ours in sorted(provider.models)
                    if not book.listed_currencies(ours, provider.id, now_ms)
                ],
                "uncosted": sorted(
                    ours for ours, theirs in provider.models.items() if theirs.price is None
                ),
            }
        )
    return rows
