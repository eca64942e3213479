"""`weir dev --hosted`: a provider of its own, or one elsewhere that hears nothing of it."""

import asyncio
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
from hosted_examples import a_provider
from weir_command import Weir

from backend.embedded import DataDir
from backend.supervisor import AFTER_TEN_SECONDS
from gateway.adapters.postgres import async_engine
from gateway.administration import Administration
from gateway.dev_hosted import SIMULATED_PRICE, Hosted, chosen_hosted, register_hosted
from gateway.domain.hosted import HostedModel
from gateway.domain.tenant import DataPolicy, Model, RequestClass

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
        await register_hosted(administration, chosen, [MODEL], record=record)
        assert await names(administration) == expected
    keyless = Hosted("external", "https://elsewhere.example/v1")
    await register_hosted(administration, external, [MODEL], record=record)
    await register_hosted(administration, keyless, [MODEL], record=record)
    found = await administration.get_hosted_provider("external")
    assert (found.url, found.api_key) == (keyless.url, None)
    assert found.models == {"m": HostedModel(name="m")}


async def test_an_administrators_own_is_not_overwritten(
    administration: Administration, tmp_path: Path
) -> None:
    """Whoever has the name already keeps it, and is told how to go on."""
    own = await administration.register_hosted_provider(ME, a_provider("external"))
    wanted = Hosted("external", "https://elsewhere.example/v1")
    with pytest.raises(click.ClickException, match="weir hosted remove external"):
        await register_hosted(administration, wanted, [MODEL], record=tmp_path / "hosted.json")
    assert await administration.get_hosted_provider("external") == own
    await register_hosted(administration, None, [MODEL], record=tmp_path / "hosted.json")
    assert await names(administration) == ["external"]


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
