"""A system whose workers a test chooses, with a canary as its hosted provider."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import servers
from canary import Canary, running_canary
from weir_dev import Reply, WeirDev, weir_dev
from worker_process import WorkerProcess, running_worker

SETTLED_S = 8.0
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


@dataclass
class Fallback:
    """A running system, one of its tenants, and the canary."""

    system: WeirDev
    canary: Canary
    registered: list[str] = field(default_factory=list)
    tenants: dict[str | None, WeirDev] = field(default_factory=dict)
    """Tenants with that data policy, made once."""
    dead: tuple[str, ...] = ()
    """The fleet's addresses while it is known to be dead."""

    def use_dead(self, workers: int = 1) -> None:
        """The fleet is so many workers at which nothing listens."""
        if len(self.dead) != workers:
            urls = tuple(f"http://127.0.0.1:{servers.free_port()}" for _ in range(workers))
            self.use(*urls, healthy=False)
            self.dead = urls

    def use(self, *urls: str, healthy: bool) -> None:
        """Replace the fleet by workers at these addresses, and wait until every gateway sees them
        as they are expected to be."""
        self.dead = ()
        names = [f"w-{uuid4().hex[:8]}" for _ in urls]
        for name, url in zip(names, urls, strict=True):
            body = {"id": name, "model": self.system.model, "url": url}
            assert self.system.admin("POST", "/admin/v1/workers", body).status == 201
        for name in self.registered:
            assert self.system.admin("DELETE", f"/admin/v1/workers/{name}").status == 204
        self.registered = names
        self.until_fleet_is(names, healthy=healthy)

    def until_fleet_is(self, names: Sequence[str], *, healthy: bool) -> None:
        """On every gateway."""
        deadline = time.monotonic() + SETTLED_S
        for index in range(len(self.system.ready["gateways"])):
            while True:
                live = self.system.admin("GET", "/admin/v1/live", gateway=index).json["workers"]
                if {(w["id"], w["healthy"]) for w in live} == {(n, healthy) for n in names}:
                    break
                assert time.monotonic() < deadline, live
                time.sleep(0.02)

    def seen_by(self, policy: str | None) -> "Fallback":
        """By a new tenant with this data policy, None as a tenant has it by default, whose requests
        do not wait for a worker."""
        seen = Fallback(self.system.with_new_tenant(AT_ONCE), self.canary)
        if policy is not None:
            seen.set_policy(policy)
        return seen

    def seen_by_a(self, policy: str | None) -> "Fallback":
        """By the tenant with this data policy that other tests use too: leave it as it is."""
        if policy not in self.tenants:
            self.tenants[policy] = self.seen_by(policy).system
        return Fallback(self.tenants[policy], self.canary)

    def set_policy(self, policy: str) -> None:
        """Change the tenant's data policy; every gateway has it when this returns."""
        limits = {"data_policy": policy, **AT_ONCE}
        tenant = self.system.tenant
        reply = self.system.admin("PUT", f"/admin/v1/tenants/{tenant}/limits", limits)
        assert reply.status == 200, reply.raw
        time.sleep(POLICY_IN_FORCE_S)

    def ask(self, **fields: Any) -> Reply:
        """A chat completion."""
        return self.system.chat(**fields)


AT_ONCE = {"max_queued": 0, "max_wait_ms": 0}
POLICY_IN_FORCE_S = 1.0
"""The longest that a gateway may act on an older policy."""


@contextmanager
def fallback_system(data_dir: Path) -> Iterator[Fallback]:
    """Two gateways, no worker yet, and the canary registered as provider `canary`."""
    options = ("--engine", "simulated", "--gateways", "2")
    with running_canary() as canary, weir_dev(data_dir, *options) as system:
        for worker in system.ready["workers"]:
            assert system.admin("DELETE", f"/admin/v1/workers/{worker['id']}").status == 204
        price = {"input": "0.40", "cached_input": "0.10", "output": "1.60"}
        provider = {
            "name": "canary",
            "url": canary.url,
            "api_key": "provider-key",
            "models": {system.model: {"name": "afar-1", "price": price}},
        }
        assert system.admin("POST", "/admin/v1/hosted", provider).status == 201
        yield Fallback(system, canary)


@contextmanager
def a_worker_of(fallback: Fallback) -> Iterator[WorkerProcess]:
    """The fleet is this one worker, healthy."""
    with running_worker("simulated", "--model", fallback.system.model) as worker:
        fallback.use(worker.url, healthy=True)
        yield worker
