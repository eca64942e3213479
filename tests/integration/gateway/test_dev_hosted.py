"""`weir dev --hosted`: a provider of its own, or one elsewhere that hears nothing of it."""

import asyncio
import dataclasses
import re
import shlex
import time
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import click
import openai
import pytest
from canary import running_canary
from dev_launcher import all_gone, status_of, weir_dev
from hosted_examples import PRICE, a_provider
from msgspec.structs import replace
from weir_command import Weir

from backend.embedded import DataDir
from backend.supervisor import AFTER_TEN_SECONDS
from gateway.adapters.postgres import async_engine
from gateway.administration import Administration
from gateway.dev_hosted import (
    SIMULATED_PRICE,
    Hosted,
    chosen_hosted,
    forget_hosted,
    register_hosted,
)
from gateway.dev_seed import registered_ports
from gateway.domain.hosted import HostedModel, HostedProvider
from gateway.domain.tenant import DataPolicy, Model, RequestClass, Worker

ME = "cli:test"
MODEL = Model(id="m", context_tokens=2048, max_output_tokens=512)
SIMULATED = ("--engine", "simulated")
WATCHED_S = 2.0


@pytest.fixture
async def administration(database_url: str) -> AsyncIterator[Administration]:
    """On a database with the model `m`."""
    engine = async_engine(database_url)
    made = Administration(engine)
    await made.register_model(ME, MODEL)
    yield made
    await engine.dispose()


async def names(administration: Administration) -> list[str]:
    """Of all providers."""
    return [each.name for each in (await administration.list_hosted_providers()).items]


async def start(
    administration: Administration, hosted: Hosted | None, record: Path
) -> HostedProvider | None:
    """What a start of `weir dev` does with it."""
    keep = None if hosted is None else hosted.name
    await forget_hosted(administration, keep=keep, record=record)
    if hosted is None:
        return None
    return await register_hosted(administration, hosted, [MODEL], record=record)


async def test_a_start_removes_what_an_earlier_one_registered(
    administration: Administration, tmp_path: Path
) -> None:
    """Also its key; what an administrator has made stays."""
    record = tmp_path / "hosted.json"
    external = Hosted("external", "https://ai.example/v1", "its-secret")
    await administration.register_hosted_provider(ME, a_provider("own"))
    for chosen, expected in (
        (external, ["external", "own"]),
        (external, ["external", "own"]),
        (Hosted("simulated", "http://127.0.0.1:9/v1"), ["own", "simulated"]),
        (None, ["own"]),
        (None, ["own"]),
    ):
        await start(administration, chosen, record)
        assert await names(administration) == expected
        assert "its-secret" not in record.read_text()
    keyless = Hosted("external", "https://elsewhere.example/v1")
    await start(administration, external, record)
    await start(administration, keyless, record)
    found = await administration.get_hosted_provider("external")
    assert (found.url, found.api_key) == (keyless.url, None)
    assert found.models == {"m": HostedModel(name="m")}


async def test_an_administrators_own_is_not_overwritten(
    administration: Administration, tmp_path: Path
) -> None:
    """Whoever has the name already keeps it, and is told how to go on."""
    record = tmp_path / "hosted.json"
    own = await administration.register_hosted_provider(ME, a_provider("external"))
    wanted = Hosted("external", "https://elsewhere.example/v1")
    for _ in range(2):
        with pytest.raises(click.ClickException, match="weir hosted remove external"):
            await start(administration, wanted, record)
        assert await administration.get_hosted_provider("external") == own
    await start(administration, None, record)
    assert await names(administration) == ["external"]


async def test_what_an_administrator_changed_stays_through_restarts(
    administration: Administration, tmp_path: Path
) -> None:
    """Disabled it stays disabled, at its price and with its key, however often weir dev starts."""
    record = tmp_path / "hosted.json"
    external = Hosted("external", "https://ai.example/v1", "first-secret")
    first = await start(administration, external, record)
    assert first is not None
    changed = replace(first, enabled=False, models={"m": HostedModel(name="cheap", price=PRICE)})
    changed = await administration.register_hosted_provider(ME, changed, api_key="by-admin")
    for api_key in ("first-secret", None, "second-secret"):
        await start(administration, dataclasses.replace(external, api_key=api_key), record)
        assert await administration.get_hosted_provider("external") == changed


async def test_a_simulated_provider_is_found_at_its_new_address(
    administration: Administration, tmp_path: Path
) -> None:
    """Its process has another port after each start: all else stays as it was left."""
    record = tmp_path / "hosted.json"
    with closing(DataDir.open(tmp_path / "data")) as data_dir:
        chosen = chosen_hosted("simulated", data_dir, api_key=None, avoid=frozenset())
    assert chosen is not None
    changed: HostedProvider | None = None
    for port in (9, 10, 11):
        simulated = dataclasses.replace(chosen, url=f"http://127.0.0.1:{port}/v1")
        stored = await start(administration, simulated, record)
        assert stored is not None
        if changed is None:
            changed = await administration.register_hosted_provider(
                ME, replace(stored, enabled=False, rank=7), api_key="by-admin"
            )
        else:
            assert stored == replace(changed, url=simulated.url)


async def test_no_port_of_the_fleet_is_taken_again(administration: Administration) -> None:
    """A simulated provider never starts where a worker is registered, nor the other way round."""
    await administration.register_hosted_provider(ME, a_provider(url="https://ai.example/v1"))
    await administration.register_worker(ME, Worker(id="w", model="m", url="http://127.0.0.1:9"))
    assert await registered_ports(administration) == {9, 443}


def test_one_server_is_no_engine_and_provider(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line and status 2, before anything starts."""
    options = ("--engine", "http://localhost:9", "--hosted", "https://127.0.0.1:9/v1")
    line = Weir(capsys).refused("dev", "--data-dir", str(tmp_path / "data"), *options)
    assert "one server" in line
    assert not (tmp_path / "data").exists()


def test_the_simulated_provider_comes_back_as_a_worker_does(tmp_path: Path) -> None:
    """Ten seconds after it died, at its old address."""
    with closing(DataDir.open(tmp_path / "data")) as data_dir:
        chosen = chosen_hosted("simulated", data_dir, api_key=None, avoid=frozenset())
        assert chosen is not None
        assert chosen.service is not None
        assert chosen.service.pauses is AFTER_TEN_SECONDS
        port = chosen.address.rpartition(":")[2]
        assert port in chosen.service.launch().arguments
        assert chosen_hosted("none", data_dir, api_key=None, avoid=frozenset()) is None


async def test_a_simulated_provider_is_a_plain_openai_one(tmp_path: Path) -> None:
    """Its own process, registered for every model with a price, and spoken to by OpenAI's SDK
    without a field of SGLang's."""
    with weir_dev(tmp_path / "data", *SIMULATED, "--hosted", "simulated") as run:
        ready = run.ready()
        assert ready.hosted is not None
        assert ready.pids.hosted is not None
        assert len(ready.pids.hosted) == 1
        assert ready.hosted not in [worker.url for worker in ready.workers]
        admin = Administration(async_engine(ready.database_url, pooled=False))
        provider = await admin.get_hosted_provider("simulated")
        assert (provider.url, provider.api_key) == (f"{ready.hosted}/v1", None)
        assert provider.models == {
            "smollm2-135m": HostedModel(name="simulated", price=SIMULATED_PRICE)
        }
        async with openai.AsyncOpenAI(base_url=provider.url, api_key="any") as client:
            whole = await client.chat.completions.create(
                model="simulated", messages=[{"role": "user", "content": "Hello"}], max_tokens=5
            )
            stream = await client.chat.completions.create(
                model="simulated",
                messages=[{"role": "user", "content": "Hello"}],
                max_tokens=5,
                stream=True,
                stream_options={"include_usage": True},
            )
            usage = [chunk.usage async for chunk in stream if chunk.usage is not None][-1]
        assert whole.usage is not None
        assert whole.choices[0].message.content
        assert (whole.usage.completion_tokens, usage.completion_tokens) == (5, 5)
        assert whole.usage.prompt_tokens == usage.prompt_tokens > 0
        pids = run.pids()
        assert ready.pids.hosted[0] in pids
        assert run.stop() == 0
        assert all_gone(pids)


async def test_a_restart_leaves_an_administrators_change(tmp_path: Path) -> None:
    """A real one: disabled stays disabled at its price, and the address is the new process's."""
    options = (*SIMULATED, "--hosted", "simulated")
    for first in (True, False):
        with weir_dev(tmp_path / "data", *options) as run:
            ready = run.ready()
            admin = Administration(async_engine(ready.database_url, pooled=False))
            provider = await admin.get_hosted_provider("simulated")
            assert provider.url == f"{ready.hosted}/v1"
            if first:
                dearer = replace(SIMULATED_PRICE, output=2_000_000)
                models = {"smollm2-135m": HostedModel(name="simulated", price=dearer)}
                changed = replace(provider, enabled=False, models=models)
                await admin.register_hosted_provider(ME, changed)
            else:
                assert provider == replace(changed, url=provider.url)
                assert "disabled by an administrator" in run.output
            assert run.stop() == 0


async def test_a_provider_at_a_url_hears_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """INV-13: 0 connections and 0 bytes by the start, while all of it serves, and by its end; its
    key is in no output."""
    data_dir = tmp_path / "my data"
    environment = {"WEIR_HOSTED_API_KEY": "provider-secret"}
    with running_canary() as canary:
        options = (*SIMULATED, "--hosted", canary.url)
        with weir_dev(data_dir, *options, environment=environment) as run:
            ready = run.ready()
            assert (ready.hosted, ready.pids.hosted) == (canary.url.removesuffix("/v1"), None)
            admin = Administration(async_engine(ready.database_url, pooled=False))
            provider = await admin.get_hosted_provider("external")
            assert (provider.url, provider.api_key) == (canary.url, "provider-secret")
            assert provider.models == {"smollm2-135m": HostedModel(name="smollm2-135m")}
            key = ready.tenants["acme"][RequestClass.INTERACTIVE]
            watched_until = time.monotonic() + WATCHED_S
            while time.monotonic() < watched_until:
                assert await status_of(f"{run.url}/readyz") == 200
                assert await status_of(f"{run.url}/v1/models", key) == 200
            run.until(lambda: "Ctrl-C stops" in run.output, "the welcome")
            command = re.search(r"once a tenant allows it: (weir limit set .+)", run.output)
            assert command is not None
            arguments = shlex.split(command[1])[1:]
            await asyncio.to_thread(Weir(capsys).ok, *arguments)
            limits = await admin.get_tenant_limits("acme")
            assert limits.data_policy is DataPolicy.HOSTED_ALLOWED
            assert run.stop() == 0
            logs = [path.read_text() for path in (data_dir / "log").iterdir()]
            assert "provider-secret" not in run.output + "".join(logs)
        assert (canary.connections, canary.received) == (0, b"")
