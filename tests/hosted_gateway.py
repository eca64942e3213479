"""A straight line in memory with hosted providers, for a tenant that may use them."""

import json
from collections.abc import Sequence
from typing import Any

from hosted_examples import a_provider
from memory_gateway import MemoryGateway
from scripted_engine import Step
from tenant_examples import a_tenant

from gateway.domain.circuit import CircuitState
from gateway.domain.hosted import HostedProvider
from gateway.domain.tenant import DataPolicy, Limits
from gateway.errors import WorkerUnreachable

ALLOWED = Limits(data_policy=DataPolicy.HOSTED_ALLOWED)
ONLY = Limits(data_policy=DataPolicy.SELF_HOSTED_ONLY)
REFUSED = WorkerUnreachable("refused")


def a_gateway(
    *scripts: Sequence[Step],
    workers: int = 0,
    limits: Limits = ALLOWED,
    providers: Sequence[HostedProvider] | None = None,
) -> MemoryGateway:
    """A gateway with a provider, for a tenant that may use it."""
    gateway = MemoryGateway(*scripts, workers=workers)
    gateway.directory.one_tenant = a_tenant(limits)
    gateway.directory.all_providers = [a_provider()] if providers is None else [*providers]
    return gateway


def sent(gateway: MemoryGateway, index: int = -1) -> dict[str, Any]:
    """The body of a stream."""
    found: dict[str, Any] = json.loads(gateway.engine.streams[index].body)
    return found


def circuit_of(gateway: MemoryGateway, provider: str = "hosted:acme-ai") -> CircuitState:
    """The state of a provider's circuit now."""
    circuit = gateway.hosted.circuits[provider]
    return circuit.state(gateway.hosted.now_ms())


def failures_of(gateway: MemoryGateway, provider: str = "hosted:acme-ai") -> int:
    """How many failures of a provider count now."""
    return len(gateway.hosted.circuits[provider]._failures)
