import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
import redis
from aiohttp import web
from canary import running_canary
from servers import free_port
from sqlalchemy import text

from gateway.adapters.journal import Journal
from gateway.adapters.postgres import async_engine
from gateway.administration import Administration
from gateway.cli import main
from gateway.domain.hosted import HostedModel, HostedProvider
from gateway.domain.tenant import EngineKind, Model, Worker

MODEL = "smollm2-135m"


@pytest.fixture
def environment(
    database_url: str, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> pytest.MonkeyPatch:
    """The environment of a gateway that could serve."""
    monkeypatch.setenv("WEIR_DATABASE_URL", database_url)
    monkeypatch.setenv("WEIR_REDIS_URL", redis_url)
    monkeypatch.setenv("WEIR_JOURNAL_DIR", str(tmp_path / "journal"))
    return monkeypatch


@pytest.fixture
async def engine_url() -> AsyncIterator[str]:
    """An HTTP server that looks like an engine which serves MODEL and wants no key."""

    async def ready(_: web.Request) -> web.Response:
        return web.Response()

    async def models(_: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": MODEL, "object": "model"}]})

    async def locked(_: web.Request) -> web.Response:
        return web.Response(status=401)

    app = web.Application()
    app.add_routes([web.get("/ready", ready), web.get("/v1/models", models)])
    app.add_routes([web.get("/locked/v1/models", locked), web.get("/odd/v1/models", ready)])
    runner = web.AppRunner(app)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    yield f"http://127.0.0.1:{port}"
    await runner.cleanup()


async def run_check(
    capsys: pytest.CaptureFixture[str], *options: str
) -> tuple[int | str | None, str]:
    """Exit status and output of `weir check`."""

    def run() -> int | str | None:
        with pytest.raises(SystemExit) as left:
            main(["check", *options])
        return left.value.code

    status = await asyncio.to_thread(run)
    return status, capsys.readouterr().out


async def found(capsys: pytest.CaptureFixture[str]) -> dict[str, tuple[str, str]]:
    """Status and detail of each check."""
    _, out = await run_check(capsys, "--json")
    return {
        each["name"]: (each["status"], each["detail"])
        for each in msgspec.json.decode(out)["checks"]
    }


async def register(database_url: str, *workers: Worker) -> None:
    engine = async_engine(database_url, pooled=False)
    administration = Administration(engine)
    for model in sorted({worker.model for worker in workers}):
        await administration.register_model(
            "cli:test", Model(id=model, context_tokens=2048, max_output_tokens=512)
        )
    for worker in workers:
        await administration.register_worker("cli:test", worker)
    await engine.dispose()


async def test_all_is_well(
    environment: pytest.MonkeyPatch,
    database_url: str,
    engine_url: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With everything there, each check is one ok line and the exit status is 0."""
    await register(database_url, Worker(id="local-0", model=MODEL, url=engine_url))
    status, out = await run_check(capsys)
    assert status == 0, out
    assert [line[6:23].strip() for line in out.splitlines()] == [
        "settings",
        "postgres",
        "migrations",
        "billing policy",
        "redis",
        "redis scripts",
        "redis eviction",
        "redis persistence",
        "clock",
        "journal",
        "worker local-0",
    ]
    assert {line[:4].strip() for line in out.splitlines()} == {"ok"}


async def test_nothing_is_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With nothing there, each line says so, the exit status is 1, and no password is shown."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("WEIR_DATABASE_URL", f"postgresql://u:hunter2@127.0.0.1:{free_port()}/x")
    monkeypatch.setenv("WEIR_REDIS_URL", f"redis://u:hunter2@127.0.0.1:{free_port()}/0")
    monkeypatch.setenv("WEIR_JOURNAL_DIR", str(tmp_path / "file" / "journal"))
    status, out = await run_check(capsys)
    assert status == 1
    failing = [line[6:].split("  ")[0] for line in out.splitlines() if line.startswith("FAIL")]
    assert failing == ["postgres", "migrations", "billing policy", "redis", "journal", "workers"]
    assert "hunter2" not in out


@pytest.mark.parametrize(
    ("name", "value", "detail"),
    [
        ("WEIR_LEASE_TTL_MS", "soon-hunter2", "WEIR_LEASE_TTL_MS must be a whole number"),
        ("WEIR_REDIS_URL", "redi://:hunter2@h/0", "WEIR_REDIS_URL is not a Redis URL"),
        ("WEIR_DATABASE_URL", "mysql://u:hunter2@h/x", "must begin with postgresql://"),
    ],
)
async def test_a_bad_setting_is_named(
    environment: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    value: str,
    detail: str,
) -> None:
    """Which variable is wrong, never what it holds."""
    environment.setenv(name, value)
    status, out = await run_check(capsys)
    assert status == 1
    assert out.startswith("FAIL  settings")
    assert detail in out
    assert "hunter2" not in out


async def test_an_empty_database_fails_its_migrations(
    environment: pytest.MonkeyPatch, empty_database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Reached, but without this release's schema: what to run is said."""
    environment.setenv("WEIR_DATABASE_URL", empty_database_url)
    checks = await found(capsys)
    assert checks["postgres"][0] == "ok"
    assert checks["migrations"][0] == "FAIL"
    assert "weir migrate" in checks["migrations"][1]


async def test_a_schema_of_a_later_release_is_a_warning(
    environment: pytest.MonkeyPatch, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """While a fleet is upgraded its old gateways go on, on a database that is migrated already."""
    engine = async_engine(database_url, pooled=False)
    async with engine.begin() as db:
        await db.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    await engine.dispose()
    checks = await found(capsys)
    assert checks["migrations"][0] == "warn"
    assert checks["migrations"][1].startswith("at 9999, of a later release")


async def test_old_servers_fail(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A server below the version that is needed is not enough."""
    environment.setattr("gateway.preflight.POSTGRES_VERSION_MIN", 99)
    environment.setattr("gateway.preflight_redis.REDIS_VERSION_MIN", 99)
    checks = await found(capsys)
    assert (checks["postgres"][0], checks["redis"][0]) == ("FAIL", "FAIL")


async def test_a_redis_that_may_drop_leases_warns(
    environment: pytest.MonkeyPatch, redis_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Eviction and a missing append-only file are warnings: they cost something, and work."""
    with redis.Redis.from_url(redis_url) as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        client.config_set("appendonly", "no")
        try:
            status, out = await run_check(capsys)
        finally:
            client.config_set("maxmemory-policy", "noeviction")
            client.config_set("appendonly", "yes")
    assert status == 0
    warned = [line[6:24].strip() for line in out.splitlines() if line.startswith("warn")]
    assert warned == ["redis eviction", "redis persistence", "workers"]


async def test_a_redis_user_without_scripts_fails(
    environment: pytest.MonkeyPatch, redis_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Admission is a script: a user that may not run any is found before the first request."""
    with redis.Redis.from_url(redis_url) as client:
        client.execute_command(
            "ACL", "SETUSER", "plain", "on", "nopass", "~*", "+@all", "-@scripting"
        )
        try:
            separator = "&" if "?" in redis_url else "?"
            environment.setenv("WEIR_REDIS_URL", f"{redis_url}{separator}username=plain&password=x")
            checks = await found(capsys)
        finally:
            client.execute_command("ACL", "DELUSER", "plain")
    assert checks["redis"][0] == "ok"
    assert checks["redis scripts"][0] == "FAIL"


async def test_a_clock_that_is_off_fails(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """More than a second away from Redis in either direction."""
    for shift_s in (-1.5, 1.5):
        clock = SimpleNamespace(time=lambda shift_s=shift_s: time.time() + shift_s)
        environment.setattr("gateway.preflight_redis.time", clock)
        assert (await found(capsys))["clock"][0] == "FAIL"
    environment.setattr(
        "gateway.preflight_redis.time", SimpleNamespace(time=lambda: time.time() + 0.8)
    )
    assert (await found(capsys))["clock"][0] == "ok"


async def test_a_journal_in_use_fails(
    environment: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two gateways never share a directory, and looking at it leaves nothing behind."""
    assert (await found(capsys))["journal"][0] == "ok"
    assert not (tmp_path / "journal").exists()
    journal = await Journal.open(tmp_path / "journal")
    before = sorted((tmp_path / "journal").iterdir())
    assert (await found(capsys))["journal"] == (
        "FAIL",
        "journal directory is in use by another gateway",
    )
    await journal.close()
    assert (await found(capsys))["journal"][0] == "ok"
    assert sorted((tmp_path / "journal").iterdir()) == before


async def test_a_small_disk_fails(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """There must be room for some segments."""
    environment.setenv("WEIR_JOURNAL_SEGMENT_BYTES", str(2**60))
    environment.setenv("WEIR_JOURNAL_BYTES_MAX", str(2**62))
    assert (await found(capsys))["journal"][0] == "FAIL"


async def test_each_worker_is_asked(
    environment: pytest.MonkeyPatch,
    database_url: str,
    engine_url: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One line a worker: it serves its model, or what is wrong with it."""
    plain = EngineKind.OPENAI
    await register(
        database_url,
        Worker(id="a-good", model=MODEL, url=engine_url),
        Worker(id="b-other", model="llama", url=engine_url),
        Worker(id="c-gone", model=MODEL, url=f"http://127.0.0.1:{free_port()}"),
        Worker(id="d-locked", model=MODEL, url=engine_url + "/locked", kind=plain),
        Worker(id="e-odd", model=MODEL, url=engine_url + "/odd", kind=plain),
        Worker(id="f-plain", model=MODEL, url=engine_url, kind=plain),
    )
    checks = await found(capsys)
    workers = {name[7:]: each for name, each in checks.items() if name.startswith("worker ")}
    assert workers.pop("c-gone")[0] == "FAIL"
    assert workers == {
        "a-good": ("ok", f"serves {MODEL}"),
        "b-other": ("FAIL", "does not serve llama"),
        "d-locked": ("FAIL", "answers 401"),
        "e-odd": ("FAIL", "its /v1/models is not OpenAI's"),
        "f-plain": ("ok", f"serves {MODEL}"),
    }


async def test_a_worker_at_a_providers_server_is_asked_nothing(
    environment: pytest.MonkeyPatch, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The verbs refuse it; were it there all the same, it is named and never spoken to."""
    engine = async_engine(database_url, pooled=False)
    with running_canary() as canary:
        await register(database_url, Worker(id="w", model=MODEL, url="http://127.0.0.1:9"))
        await Administration(engine).register_hosted_provider(
            "cli:test",
            HostedProvider(name="p", url=canary.url, models={MODEL: HostedModel(name="x")}),
        )
        address = canary.url.removesuffix("/v1")
        async with engine.begin() as db:
            await db.execute(text("UPDATE worker SET url = :url"), {"url": address})
        status, detail = (await found(capsys))["worker w"]
        assert (status, "hosted provider" in detail) == ("FAIL", True)
        assert canary.connections == 0
    await engine.dispose()
