"""The hosted fallback: who may use it, where it is, and when it is left alone.

INV-13: a tenant's data policy is read again at each send, at most a second old, or the send is
refused. Nothing else than a request that may go there ever opens a connection to a provider.
"""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field

from gateway.domain.circuit import Circuit, CircuitState
from gateway.domain.hosted import HostedTarget, in_order, target_of
from gateway.domain.tenant import DataPolicy, data_policy
from gateway.errors import HostedSendRefused
from gateway.serving.authenticate import Caller
from gateway.serving.ports import Clock, Directory
from gateway.telemetry import metrics
from gateway.wire.hosted_body import can_be_hosted
from gateway.wire.request import CompletionRequest

POLICY_AGE_MS_MAX = 1_000
_STATES = {CircuitState.CLOSED: 0, CircuitState.HALF_OPEN: 1, CircuitState.OPEN: 2}


@dataclass
class HostedFallback:
    """All hosted providers as this gateway knows them, each behind a circuit of its own."""

    directory: Directory
    clock: Clock
    _circuits: dict[str, Circuit] = field(default_factory=lambda: defaultdict(Circuit))

    def allows(self, caller: Caller, request: CompletionRequest) -> bool:
        """Whether the request may go to a provider by what is known now, at most a second old."""
        tenant = self.directory.tenant(caller.tenant.id)
        key = self.directory.key_by_digest(caller.key.digest)
        if tenant is None or tenant.suspended or key is None or key.revoked_at_ms is not None:
            return False
        return (
            not request.self_hosted_only
            and self.directory.age_ms <= POLICY_AGE_MS_MAX
            and data_policy(tenant, key) is DataPolicy.HOSTED_ALLOWED
        )

    def target(
        self, caller: Caller, request: CompletionRequest, *, excluded: Collection[str] = ()
    ) -> HostedTarget | None:
        """The provider to ask, or None: not allowed, none serves the model or understands every
        field of the request, or those that do are left alone after failures."""
        if not self.allows(caller, request):
            return None
        for provider in in_order(self.directory.hosted_providers()):
            target = target_of(provider, request.model)
            if target is None or target.id in excluded or not can_be_hosted(request, target):
                continue
            if self._circuits[target.id].may_try(self._now_ms()):
                return target
        return None

    def begin(self, target: HostedTarget) -> bool:
        """Take the circuit's leave for one attempt; then exactly one of the next three follows."""
        return self._circuits[target.id].begin(self._now_ms())

    def succeeded(self, target: HostedTarget) -> None:
        """The provider answered, if only with a refusal of this request."""
        self._circuits[target.id].succeeded()
        self._show(target)

    def failed(self, target: HostedTarget) -> None:
        """The provider could not be reached, failed, or had no room."""
        self._circuits[target.id].failed(self._now_ms())
        self._show(target)

    def circuit(self, provider_id: str) -> CircuitState:
        """What this gateway lets through to the provider now."""
        return self._circuits[provider_id].state(self._now_ms())

    def abandoned(self, target: HostedTarget) -> None:
        """The attempt tells nothing of the provider."""
        self._circuits[target.id].abandoned()

    def _now_ms(self) -> int:
        return self.clock.monotonic_us() // 1000

    def _show(self, target: HostedTarget) -> None:
        state = self._circuits[target.id].state(self._now_ms())
        metrics.HOSTED_CIRCUIT.labels(provider=target.provider).set(_STATES[state])


@dataclass(frozen=True)
class HostedRoute:
    """The fallback for one request."""

    fallback: HostedFallback
    caller: Caller
    request: CompletionRequest

    def target(self, *, excluded: Collection[str] = ()) -> HostedTarget | None:
        """See `HostedFallback.target`."""
        return self.fallback.target(self.caller, self.request, excluded=excluded)

    def check_send(self) -> None:
        """The last look before the first byte. Raises HostedSendRefused."""
        if not self.fallback.allows(self.caller, self.request):
            raise HostedSendRefused
