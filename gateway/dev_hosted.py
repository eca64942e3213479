"""The hosted provider of `weir dev`: a simulated one that it starts itself, or one at a URL.

Nothing is sent to that URL from here, no probe and no question: what goes there is a tenant's
request, or nothing. Only the simulated process is waited for, which is our own.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click
from msgspec.structs import replace

from backend.embedded import DataDir, free_port
from backend.supervisor import Service
from gateway.administration import Administration
from gateway.administration.hosted_checks import check_base_url
from gateway.dev_engines import worker_service
from gateway.dev_hosted_record import as_left, first_registered, read_record, write_record
from gateway.dev_seed import ACTOR
from gateway.domain.hosted import HostedModel, HostedPrice, HostedProvider
from gateway.domain.origin import origin_of
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


def check_apart(engine: str, hosted: str) -> None:
    """Raises UsageError where a checked `--engine` and a checked `--hosted` are one server: what
    must stay here would go there."""
    if "://" in engine and "://" in hosted and origin_of(engine) == origin_of(hosted):
        raise click.UsageError("--engine and --hosted name one server: it is ours or it is not")


def hosted_name(hosted: str) -> str | None:
    """What the provider of a checked `--hosted` is called, if there is one."""
    return {NONE: None, SIMULATED: SIMULATED}.get(hosted, EXTERNAL)


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


async def forget_hosted(administration: Administration, *, keep: str | None, record: Path) -> None:
    """Remove what an earlier start registered under another name than `keep`, with its key.

    To be called before the workers are registered: one of them may be at its address now.
    """
    before = read_record(record)
    for name in before.keys() - {keep}:
        with suppress(NotFound):
            await administration.remove_hosted_provider(ACTOR, name)
        del before[name]
    write_record(record, before)


async def register_hosted(
    administration: Administration, hosted: Hosted, models: Sequence[Model], *, record: Path
) -> HostedProvider:
    """Register the provider and return it; what an administrator has changed of it since an
    earlier start stays so.

    `record` keeps what was registered here: others are an administrator's own. Raises
    ClickException where one of these has the name already, Unprocessable where a worker is there.
    """
    wanted = replace(hosted.provider(models), api_key=hosted.api_key)
    before = read_record(record)
    stored = await _found(administration, hosted.name)
    if hosted.name not in before:
        if stored is not None:
            raise click.ClickException(
                f"there is a hosted provider {hosted.name} that weir dev did not register: remove "
                f"it (weir hosted remove {hosted.name}), or start with --hosted none"
            )
        # Written first too: a start that is cut short leaves none behind unrecorded.
        write_record(record, {**before, hosted.name: first_registered(wanted)})
    merged, registered = wanted, first_registered(wanted)
    if stored is not None:
        merged, registered = as_left(
            before[hosted.name], stored, wanted, follows=hosted.service is not None
        )
    provider = await administration.register_hosted_provider(ACTOR, merged, api_key=merged.api_key)
    write_record(record, {**before, hosted.name: registered})
    return provider


async def _found(administration: Administration, name: str) -> HostedProvider | None:
    try:
        return await administration.get_hosted_provider(name)
    except NotFound:
        return None
