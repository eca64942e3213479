"""From what was asked to what is under test: addresses, keys, and what the target says it is."""

from collections.abc import Sequence
from dataclasses import replace

import aiohttp
import msgspec

from backend.loadtest.asked import Request
from backend.loadtest.http_connection import address_of
from backend.loadtest.plan import PlannedRequest, Workload
from backend.loadtest.run import TargetFacts
from backend.loadtest.spread import SpreadConnections
from backend.loadtest.target_facts import TargetNotReady, read_facts, shown_url, target_facts
from backend.loadtest.tenants import Keys, ensure_tenants
from backend.loadtest.under_test import ServiceUnderTest, UnderTest, VirtualReplicasUnderTest
from backend.loadtest.weir_system import WeirSystem, WeirWorker, read_system
from backend.simulated.profiles import PROFILES
from backend.simulated.scheduler_options import flags_of

ASK_TIMEOUT_S = 10.0


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model]


async def open_target(asked: Request, workload: Workload) -> UnderTest:
    """What the request names, ready to be sent such workloads.

    Raises SystemNotFound, TenantsNotMade and TargetNotReady, each with one line.
    """
    if asked.virtual is not None:
        profile = PROFILES[asked.virtual]
        flags = flags_of(profile, asked.scheduler or {})
        return VirtualReplicasUnderTest(profile, flags, asked.replicas, asked.timeout_s)
    if asked.url is not None:
        return await _open_url(asked, asked.url)
    return await _open_system(asked, workload)


async def _open_url(asked: Request, url: str) -> UnderTest:
    model = asked.model or await _first_model(url, asked.api_key)
    facts = await target_facts(url, model, asked.api_key, clock_speed=asked.speed)
    return ServiceUnderTest(
        url,
        facts,
        model=model,
        api_key_of=lambda _: asked.api_key,
        min_tokens=facts.takes_min_tokens if asked.min_tokens is None else asked.min_tokens,
        timeout_s=asked.timeout_s,
        workers={"worker": url.rstrip("/").removesuffix("/v1")} if facts.kind == "engine" else {},
    )


async def _open_system(asked: Request, workload: Workload) -> UnderTest:
    assert asked.data_dir is not None  # noqa: S101 - one of the three is set
    system = read_system(asked.data_dir)
    keys = _TenantKeys(system, asked)
    await keys.prepare(workload)
    model = asked.model or system.models[0]
    facts = await _system_facts(system, model, keys.of(workload.requests[0]), asked)
    addresses = [address_of(url) for url in system.gateways]
    return ServiceUnderTest(
        system.gateways[0],
        facts,
        model=model,
        api_key_of=keys.of,
        prepare=keys.prepare,
        min_tokens=facts.takes_min_tokens if asked.min_tokens is None else asked.min_tokens,
        timeout_s=asked.timeout_s,
        workers={worker.id: worker.url for worker in system.workers},
        database_url=system.database_url,
        connections=lambda _: SpreadConnections(addresses),
    )


class _TenantKeys:
    """The keys of all tenants seen so far: another seed may bring another tenant."""

    def __init__(self, system: WeirSystem, asked: Request) -> None:
        self._system = system
        self._asked = asked
        self._keys: Keys = {}

    async def prepare(self, workload: Workload) -> None:
        """Make what this workload needs and the ones before did not. Raises TenantsNotMade."""
        missing = {request.tenant for request in workload.requests} - self._keys.keys()
        if missing and self._asked.data_dir is not None:
            self._keys |= await ensure_tenants(
                self._system, missing, limits=self._asked.limits, data_dir=self._asked.data_dir
            )

    def of(self, request: PlannedRequest) -> str:
        """The key of its tenant and class."""
        return self._keys[request.tenant][request.traffic_class]


async def _system_facts(
    system: WeirSystem, model: str, api_key: str, asked: Request
) -> TargetFacts:
    """What Weir is, with what its workers say of themselves."""
    of_workers = await _worker_facts(system.workers)
    speeds = {facts.clock_speed for facts in of_workers} or {1.0}
    if len(speeds) > 1 and asked.speed is None:
        raise TargetNotReady("the workers' clocks run at different speeds: give --speed")
    labels = {facts.simulated for facts in of_workers}
    # One simulated worker among others makes simulated figures.
    simulated = True if True in labels else False if labels == {False} else None
    profiles = sorted({facts.step_times for facts in of_workers if facts.step_times})
    found = await target_facts(
        system.gateways[0],
        model,
        api_key,
        simulated=simulated,
        clock_speed=asked.speed or max(speeds),
        step_times=", ".join(profiles) or None,
    )
    engines = ", ".join(sorted({worker.engine for worker in system.workers})) or "no"
    return replace(
        found,
        # Its workers have been asked: one that refuses the field refuses all that it is sent.
        takes_min_tokens=all(facts.takes_min_tokens for facts in of_workers),
        # A gateway does not know of a foreign engine what it is; its own silence counts.
        simulated=simulated,
        description=f"Weir at {shown_url(system.gateways[0])}: {len(system.gateways)} gateways, "
        f"{len(system.workers)} {engines} workers",
    )


async def _worker_facts(workers: Sequence[WeirWorker]) -> list[TargetFacts]:
    timeout = aiohttp.ClientTimeout(total=ASK_TIMEOUT_S)
    found = []
    async with aiohttp.ClientSession(timeout=timeout) as session:
        for worker in workers:
            try:
                async with session.get(f"{worker.url.rstrip('/')}/server_info") as answer:
                    body = await answer.read() if answer.status == 200 else b""
            except (aiohttp.ClientError, TimeoutError) as error:
                raise TargetNotReady(f"worker {worker.id} cannot be reached") from error
            found.append(read_facts(shown_url(worker.url), body))
    return found


async def _first_model(url: str, api_key: str | None) -> str:
    headers = {} if api_key is None else {"authorization": f"Bearer {api_key}"}
    timeout = aiohttp.ClientTimeout(total=ASK_TIMEOUT_S)
    path = f"{url.rstrip('/').removesuffix('/v1')}/v1/models"
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(path, headers=headers) as answer,
        ):
            models = msgspec.json.decode(await answer.read(), type=_Models).data
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise TargetNotReady(
            f"{shown_url(url)} does not list its models ({type(error).__name__}): give --model"
        ) from error
    if not models:
        raise TargetNotReady(f"{shown_url(url)} serves no model")
    return models[0].id
