"""The system that `weir dev` runs: stores, schema, tenants, workers, gateways, in this order."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

import click
from redis.exceptions import RedisError

from backend.embedded import DataDir, EmbeddedPostgres, EmbeddedValkey
from backend.supervisor import Service, Supervisor, store_service
from gateway.adapters.postgres import async_engine
from gateway.adapters.redis import connect_redis
from gateway.administration import Administration
from gateway.dev_children import gateway_ports, gateway_service, shown
from gateway.dev_engines import (
    STARTED_ENGINES,
    Engine,
    fleet_of,
    found_engine,
    started_engines,
)
from gateway.dev_history import prices_since_ms, remember_store, seed_history
from gateway.dev_hosted import (
    Hosted,
    chosen_hosted,
    forget_hosted,
    hosted_name,
    register_hosted,
)
from gateway.dev_leftovers import Leftovers
from gateway.dev_prices import seed_prices
from gateway.dev_ready import Pids, Ready, ready_document, welcome, write_ready
from gateway.dev_secrets import DevSecrets, kept_secrets
from gateway.dev_seed import register_fleet, registered_ports, seed
from gateway.dev_seller import seed_seller
from gateway.dev_terminal import Terminal
from gateway.domain.tenant import Model, Worker
from gateway.migrate import upgrade

REDIS_TIMEOUT_MS = 2_000
Result = TypeVar("Result")


@dataclass(frozen=True)
class DevOptions:
    """What the command line and the environment ask for."""

    port: int
    engine: str
    workers: int
    worker_flags: tuple[str, ...]
    gateways: int
    seed: bool
    redis_url: str | None
    database_url: str | None
    engine_api_key: str | None
    hosted: str
    hosted_api_key: str | None
    history: bool = False
    """Whether last month's usage is to be made up."""


class DevSystem:
    """Everything that runs on one data directory."""

    def __init__(self, data_dir: DataDir, options: DevOptions, terminal: Terminal) -> None:
        """Nothing starts yet. Raises ClickException where the port is in use."""
        self._data_dir = data_dir
        self._options = options
        self._terminal = terminal
        self._ports = gateway_ports(options.port, options.gateways)
        self._ready_path = data_dir.path / "ready.json"
        self._hosted_record = data_dir.path / "hosted.json"
        # What a killed run left says that something serves.
        self._ready_path.unlink(missing_ok=True)
        self._supervisor = Supervisor(say=terminal.say, on_change=self._write_ready)
        self._secrets: DevSecrets | None = None
        self._database_url = options.database_url or ""
        self._redis_url = options.redis_url or ""
        self._postgres: EmbeddedPostgres | None = None
        self._gateways: list[str] = []
        self._engines: list[Engine] = []
        self._models: list[Model] = []
        self._workers: list[Worker] = []
        self._hosted: Hosted | None = None
        self._leftovers = Leftovers(terminal.say)

    async def start(self) -> str:
        """Start everything, write `ready.json`, and return what to tell a person.

        Raises StartFailed, ClickException and WeirError, each of one line; then call `stop`.
        """
        options, data_dir = self._options, self._data_dir
        secrets = kept_secrets(data_dir.path / "secrets.json")
        self._terminal.say(f"weir dev in {shown(data_dir.path)}")
        if options.engine not in STARTED_ENGINES:
            self._engines = [await found_engine(options.engine, options.engine_api_key)]
        with self._terminal.step("stores") as words:
            words.extend(await self._start_stores())
        with self._terminal.step("schema"):
            await upgrade(self._database_url)
        if options.seed:
            self._secrets = secrets
            with self._terminal.step("tenants") as words:
                await self._administer(lambda admin: seed(admin, secrets))
                words.extend(secrets.tenants)
        with self._terminal.step("workers") as words:
            words.extend(await self._start_workers())
        await self._start_hosted()
        if options.seed:
            await self._seed_money(secrets)
        gateways = [
            gateway_service(
                number,
                port,
                data_dir,
                database_url=self._database_url,
                redis_url=self._redis_url,
                salt=secrets.cache_salt,
            )
            for number, port in enumerate(self._ports)
        ]
        with self._terminal.step("gateways"):
            await self._supervisor.start(gateways)
        self._gateways = [f"http://127.0.0.1:{port}" for port in self._ports]
        self._write_ready()
        self._leftovers.ship(
            data_dir.folder("journal"),
            running=frozenset(f"gateway-{number}" for number in range(len(self._ports))),
            database_url=self._database_url,
            redis_url=self._redis_url,
        )
        return welcome(
            self._document(),
            ready_path=shown(self._ready_path),
            log_folder=shown(data_dir.folder("log")),
        )

    def hurry(self) -> None:
        """Let `stop` wait for no running stream."""
        self._supervisor.hurry()

    async def stop(self) -> None:
        """Stop gateways, then workers, then stores."""
        self._ready_path.unlink(missing_ok=True)
        self._gateways = []
        await self._leftovers.stop()
        await self._supervisor.stop()
        if self._postgres is not None:
            self._postgres.remove_socket_folder()

    async def _start_stores(self) -> list[str]:
        services: list[Service] = []
        if not self._redis_url:
            valkey = EmbeddedValkey(self._data_dir)
            self._redis_url = valkey.url
            services.append(store_service(valkey))
        if not self._database_url:
            self._postgres = EmbeddedPostgres(self._data_dir)
            self._database_url = self._postgres.url
            services.append(store_service(self._postgres))
        await self._supervisor.start(services)
        if self._options.redis_url:
            await _check_redis(self._redis_url)
        return [service.name for service in services] or ["as the environment names them"]

    async def _start_workers(self) -> list[str]:
        options = self._options
        forget = partial(
            forget_hosted, keep=hosted_name(options.hosted), record=self._hosted_record
        )
        await self._administer(forget)
        if options.engine in STARTED_ENGINES:
            self._engines = started_engines(
                options.engine,
                options.workers,
                self._data_dir,
                avoid=await self._taken_ports(),
                flags=options.worker_flags,
            )
            services = [engine.service for engine in self._engines if engine.service is not None]
            await self._supervisor.start(services)
        self._models, self._workers = await fleet_of(self._engines)
        record = self._data_dir.path / "workers.json"
        await self._administer(
            lambda admin: register_fleet(admin, self._models, self._workers, record=record)
        )
        return [f"{worker.id} with {worker.model}" for worker in self._workers]

    async def _start_hosted(self) -> None:
        """Start what is ours of the provider, and register it. Nothing is sent to one at a URL."""
        self._hosted = hosted = chosen_hosted(
            self._options.hosted,
            self._data_dir,
            api_key=self._options.hosted_api_key,
            avoid=await self._taken_ports(),
        )
        if hosted is None:
            return
        register = partial(
            register_hosted, hosted=hosted, models=self._models, record=self._hosted_record
        )
        with self._terminal.step("hosted") as words:
            if hosted.service is not None:
                await self._supervisor.start([hosted.service])
            provider = await self._administer(register)
            self._hosted = replace(hosted, url=provider.url)
            words.append(f"{provider.name} at {provider.url}")
            if not provider.enabled:
                words.append("disabled by an administrator")

    async def _seed_money(self, secrets: DevSecrets) -> None:
        """Prices and a seller and, where that was asked for, usage to invoice."""
        options = self._options
        since_ms = prices_since_ms(datetime.now(UTC)) if options.history else None
        prices = partial(seed_prices, models=self._models, hosted=options.hosted, since_ms=since_ms)
        await self._administer(prices)
        await seed_seller(self._database_url)
        if options.history:
            with self._terminal.step("history") as words:
                await remember_store(self._database_url, self._redis_url)
                written = await seed_history(
                    self._database_url, secrets.tenants, self._models, hosted=options.hosted
                )
                words += [
                    f"{count} simulated requests of {name}" for name, count in written.items()
                ]

    async def _taken_ports(self) -> frozenset[int]:
        return frozenset(self._ports) | await self._administer(registered_ports)

    async def _administer(self, work: Callable[[Administration], Awaitable[Result]]) -> Result:
        engine = async_engine(self._database_url, pooled=False)
        try:
            return await work(Administration(engine))
        finally:
            await engine.dispose()

    def _write_ready(self) -> None:
        if self._gateways:  # else not yet, or no more
            write_ready(self._ready_path, self._document())

    def _document(self) -> Ready:
        return ready_document(
            gateways=self._gateways,
            database_url=self._database_url,
            redis_url=self._redis_url,
            workers=self._workers,
            hosted=None if self._hosted is None else self._hosted.address,
            pids=Pids(
                gateways=self._pids(f"gateway-{n}" for n in range(len(self._gateways))),
                workers=self._pids(engine.id for engine in self._engines),
                hosted=self._hosted_pids(),
                redis=self._supervisor.pid("valkey"),
                postgres=self._supervisor.pid("postgres"),
            ),
            secrets=self._secrets,
            models=[model.id for model in self._models],
        )

    def _hosted_pids(self) -> list[int] | None:
        service = None if self._hosted is None else self._hosted.service
        return None if service is None else self._pids([service.name])

    def _pids(self, names: Iterable[str]) -> list[int]:
        found = [self._supervisor.pid(name) for name in names]
        return [pid for pid in found if pid is not None]


async def _check_redis(redis_url: str) -> None:
    """Raises ClickException where the Redis that the environment names does not answer."""
    try:
        redis = connect_redis(redis_url, timeout_ms=REDIS_TIMEOUT_MS)
        try:
            await redis.ping()
        finally:
            await redis.aclose()
    except (RedisError, OSError, ValueError) as error:
        raise click.ClickException(f"WEIR_REDIS_URL cannot be reached: {error}") from error
