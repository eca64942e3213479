"""The hosted provider of `weir dev`: a simulated one that it starts itself, or one at a URL.

Nothing is sent to that URL from here, no probe and no question: what goes there is a tenant's
request, or nothing. Only the simulated process is waited for, which is our own.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click
import msgspec

from backend.embedded import DataDir, free_port
from backend.embedded.data_dir import write_private
from backend.supervisor import Service
from gateway.administration import Administration
from gateway.administration.hosted_checks import check_base_url
from gateway.dev_engines import worker_service
from gateway.dev_seed import ACTOR, recorded
from gateway.domain.hosted import HostedModel, HostedPrice, HostedProvider
from gateway.domain.tenant import Model
from gateway.errors import NotFound, Unprocessable

NONE = "none"
SIMULATED = "simulated"
EXTERNAL = "external"
SERVICE_NAME = "hosted-simulated"
SERVED_NAME = "simulated"
"""What the simulated provider calls its model: another name than ours, as a real one does."""
SIMULATED_PRICE = HostedPrice(input=400_000, cached_input=100_000, output=1_600_000)
"""Nobody charges it: a simulated price for simulated tokens."""


@dataclass(frozen=True)
class Hosted:
    """The provider that was asked for; `service` is None where it is not ours to run."""

    name: str
    url: str
    api_key: str | None = None
    served_name: str | None = None
    """None where it calls each model as we do."""
    price: HostedPrice | None = None
    service: Service | None = None

    @property
    def address(self) -> str:
        """Its base address without the version, as `ready.json` has it."""
        return self.url.removesuffix("/v1")

    def provider(self, models: Sequence[Model]) -> HostedProvider:
        """The provider of all these models, to be registered."""
        served = {
            model.id: HostedModel(name=self.served_name or model.id, price=self.price)
            for model in models
        }
        return HostedProvider(name=self.name, url=self.url, models=served)


def check_hosted(hosted: str) -> str:
    """`none`, `simulated` or a provider's base address. Raises BadParameter."""
    if hosted in (NONE, SIMULATED):
        return hosted
    try:
        return check_base_url(hosted)
    except Unprocessable as error:
        raise click.BadParameter(
            "must be simulated, none or the base URL of a provider", param_hint="--hosted"
        ) from error


def chosen_hosted(
    hosted: str, data_dir: DataDir, *, api_key: str | None, avoid: frozenset[int]
) -> Hosted | None:
    """What a checked `--hosted` stands for. A simulated one gets a port that is not in `avoid`."""
    if hosted == NONE:
        return None
    if hosted != SIMULATED:
        return Hosted(EXTERNAL, hosted, api_key)
    port = free_port(avoid=avoid)
    return Hosted(
        SIMULATED,
        f"http://127.0.0.1:{port}/v1",
        served_name=SERVED_NAME,
        price=SIMULATED_PRICE,
        service=worker_service(SERVICE_NAME, SIMULATED, port, data_dir, model=SERVED_NAME),
    )


async def register_hosted(
    administration: Administration,
    hosted: Hosted | None,
    models: Sequence[Model],
    *,
    record: Path,
) -> None:
    """Register the provider, and remove that of an earlier start.

    `record` keeps the name of what was registered here: others are an administrator's own. Raises
    ClickException where one of these has the name already.
    """
    before = recorded(record)
    names = set() if hosted is None else {hosted.name}
    if hosted is not None and hosted.name not in before:
        with suppress(NotFound):
            await administration.get_hosted_provider(hosted.name)
            raise click.ClickException(
                f"there is a hosted provider {hosted.name} that weir dev did not register: remove "
                f"it (weir hosted remove {hosted.name}), or start with --hosted none"
            )
    # Written first with both: a start that is cut short leaves none behind unrecorded.
    write_private(record, msgspec.json.encode(sorted(before | names)))
    if hosted is not None:
        await administration.register_hosted_provider(
            ACTOR, hosted.provider(models), api_key=hosted.api_key
        )
    for name in before - names:
        with suppress(NotFound):
            await administration.remove_hosted_provider(ACTOR, name)
    write_private(record, msgspec.json.encode(sorted(names)))
