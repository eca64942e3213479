"""The hosted fallback: who may use it, where it is, and when it is left alone.

INV-13: a tenant's data policy is read again at each send, at most a second old, or the send is
refused. Nothing else than a request that may go there ever opens a connection to a provider.

B25: with a budget in any scope a provider without a price, or dearer than what is reserved, is left
out as one that does not serve the model.
"""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gateway.domain.circuit import Circuit, CircuitState, Leave
from gateway.domain.hosted import HostedTarget, in_order, target_of
from gateway.domain.tenant import DataPolicy, RequestClass, data_policy
from gateway.errors import HostedSendRefused
from gateway.serving.authenticate import Caller, request_class
from gateway.serving.ports import Clock, Directory
from gateway.serving.spending import Spending
from gateway.telemetry import metrics
from gateway.wire.hosted_body import can_be_hosted
from gateway.wire.request import CompletionRequest

if TYPE_CHECKING:
    from gateway.serving.hosted_use import HostedUse

POLICY_AGE_MS_MAX = 1_000
_STATES = {CircuitState.CLOSED: 0, CircuitState.HALF_OPEN: 1, CircuitState.OPEN: 2}


@dataclass
class HostedFallback:
    """All hosted providers as this gateway knows them, each behind a circuit of its own."""

    directory: Directory
    clock: Clock
    circuits: dict[str, Circuit] = field(default_factory=lambda: defaultdict(Circuit))
    use: "HostedUse | None" = None
    """Is told of each stream."""

    def allows(self, caller: Caller, request: CompletionRequest) -> bool:
        """Whether the request may go to a provider by what is known now, at most a second old.

        Batch may not: it waits for the fleet (DESIGN 10).
        """
        tenant = self.directory.tenant(caller.tenant.id)
        key = self.directory.key_by_digest(caller.key.digest)
        if tenant is None or tenant.suspended or key is None or key.revoked_at_ms is not None:
            return False
        interactive = request_class(caller, asked_batch=request.asked_batch)
        return (
            interactive is RequestClass.INTERACTIVE
            and not request.self_hosted_only
            and self.directory.age_ms <= POLICY_AGE_MS_MAX
            and data_policy(tenant, key) is DataPolicy.HOSTED_ALLOWED
        )

    def targets(self, model: str) -> list[HostedTarget]:
        """Where the model is served now, in the order in which it is asked for."""
        found = (target_of(each, model) for each in in_order(self.directory.hosted_providers()))
        return [target for target in found if target is not None]

    def circuit(self, provider_id: str) -> CircuitState:
        """What this gateway lets through to the provider now."""
        return self.circuits[provider_id].state(self.now_ms())

    def show(self, *provider_ids: str) -> None:
        """What it lets through, as a metric. An open circuit half opens by time alone, so somebody
        who reads it has this called first."""
        for each in provider_ids:
            metrics.HOSTED_CIRCUIT.labels(each).set(_STATES[self.circuit(each)])

    def now_ms(self) -> int:
        """The circuits' time."""
        return self.clock.monotonic_us() // 1000


@dataclass
class HostedLeave:
    """One request's leave to use one provider, shared by its choices: together they are one try
    and at most one failure."""

    circuit: Circuit
    leave: Leave
    open: int = 0
    failed: bool = False
    succeeded: bool = False


@dataclass
class HostedRoute:
    """The fallback for one request."""

    fallback: HostedFallback
    caller: Caller
    request: CompletionRequest
    spending: Spending
    _leaves: dict[str, HostedLeave] = field(default_factory=dict)

    def target(self, *, excluded: Collection[str] = ()) -> HostedTarget | None:
        """The provider to ask, or None: not allowed, none serves the model for what is reserved or
        understands every field of the request, or those that do are left alone after failures."""
        fallback = self.fallback
        for target in self._reachable():
            if target.id in excluded or not self.spending.allows(target.provider):
                continue
            if target.id in self._leaves or fallback.circuits[target.id].may_try(fallback.now_ms()):
                return target
        return None

    def providers(self) -> list[str]:
        """All that the request may come to be served by, as usage records and prices name them."""
        return [target.provider for target in self._reachable()]

    def _reachable(self) -> list[HostedTarget]:
        if not self.fallback.allows(self.caller, self.request):
            return []
        targets = self.fallback.targets(self.request.model)
        return [target for target in targets if can_be_hosted(self.request, target)]

    def check_send(self, target: HostedTarget) -> None:
        """The last look before the first byte: still allowed, and the provider still there as it
        was. Raises HostedSendRefused."""
        there = any(
            (known.id, known.url, known.api_key, known.served_name)
            == (target.id, target.url, target.api_key, target.served_name)
            for known in self.fallback.targets(target.model)
        )
        affordable = self.spending.allows(target.provider)
        if not (there and affordable and self.fallback.allows(self.caller, self.request)):
            raise HostedSendRefused

    def begin(self, target: HostedTarget) -> bool:
        """Whether an attempt may begin; then `end` follows."""
        held = self._leaves.get(target.id)
        if held is None:
            circuit = self.fallback.circuits[target.id]
            leave = circuit.begin(self.fallback.now_ms())
            if leave is None:
                return False
            held = self._leaves[target.id] = HostedLeave(circuit, leave)
        held.open += 1
        if self.fallback.use is not None:
            self.fallback.use.began(target.id)
        return True

    def answered(self, target: HostedTarget) -> None:
        """The provider has begun to answer."""
        held = self._leaves[target.id]
        held.circuit.answered(held.leave)
        self.fallback.show(target.id)

    def end(self, target: HostedTarget, *, works: bool | None) -> None:
        """An attempt has ended; `works` is what it tells of the provider, None where nothing."""
        held = self._leaves[target.id]
        held.open -= 1
        if self.fallback.use is not None:
            self.fallback.use.ended(target.id)
        held.succeeded |= works is True
        if works is False and not held.failed:
            held.failed = True
            held.circuit.failed(held.leave, self.fallback.now_ms())
        if held.open == 0:
            if held.succeeded and not held.failed:
                held.circuit.succeeded(held.leave)
            elif not held.failed:
                held.circuit.abandoned(held.leave)
                del self._leaves[target.id]
        self.fallback.show(target.id)
