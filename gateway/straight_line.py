"""The straight line of a gateway, put together of its parts, and where its traces go."""

from typing import TYPE_CHECKING

from gateway.adapters.tokenizer import WorkerTokenizer
from gateway.gauges import resource_of
from gateway.serving.attempt import Upstream
from gateway.serving.completion import Completions
from gateway.serving.hosted import HostedFallback
from gateway.serving.policy import Policy
from gateway.serving.tracing import NO_TRACING, Tracing
from gateway.telemetry.trace_export import SpanExport
from gateway.telemetry.trace_keeping import Keeping
from gateway.watching import targets_of

if TYPE_CHECKING:
    from gateway.app import Gateway

_TOKENIZER_TIMEOUT_MS = 5_000


def completions_of(gateway: "Gateway", fallback: HostedFallback) -> Completions:
    """What serves completions, once the gateway is open."""
    settings = gateway.settings
    return Completions(
        directory=gateway.directory,
        room=gateway.body_room,
        reader=gateway.bodies,
        tokenizer=WorkerTokenizer(gateway.engine, gateway.fleet, timeout_ms=_TOKENIZER_TIMEOUT_MS),
        leases=gateway.leases,
        places=gateway.places,
        journal=gateway.copied.journal,
        upstream=Upstream(
            gateway.engine, gateway.fleet, gateway.clock, fallback, gateway.ceilings.pace
        ),
        live=gateway.live,
        clock=gateway.clock,
        on_ended=gateway.latencies.ended,
        policy=Policy(
            directory_stale_ms_max=settings.directory_stale_ms_max,
            stores_unseen_ms_max=settings.stores_unseen_ms_max,
            keepalive_ms=settings.keepalive_ms,
            cache_salt_secret=settings.cache_salt_secret,
            show_worker_header=settings.show_worker_header,
        ),
        tracing=gateway.tracing,
    )


def open_traces(gateway: "Gateway") -> tuple[Tracing, SpanExport | None]:
    """The traces of its requests and their way to a collector; nothing is noted where none is
    named."""
    settings = gateway.settings
    if not settings.otlp_traces_endpoint:
        return NO_TRACING, None
    export = SpanExport(settings.otlp_traces_endpoint, resource_of(gateway.journal.gateway_id))
    keeping = Keeping(
        gateway.clock,
        ratio_permille=settings.trace_ratio_permille,
        kept_per_s=settings.trace_kept_per_s,
    )
    tracing = Tracing(
        gateway.clock,
        keeping,
        export,
        context=settings.trace_context,
        targets=targets_of(settings),
    )
    return tracing, export
