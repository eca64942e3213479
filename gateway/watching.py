"""What people see of a gateway and of all of them: the live view, what limits would do, the life of
a request; and what tells the others what this one sees."""

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from litestar.types import ControllerRouterHandler

from gateway.adapters.hosted_use import RedisHostedUses
from gateway.adapters.latencies import RedisSlices
from gateway.adapters.redis import RedisClient
from gateway.adapters.request_story import RequestStories
from gateway.adapters.second_copy_records import Copies
from gateway.domain.latency import Targets
from gateway.domain.tenant import RequestClass
from gateway.http.limit_effect import limit_effect_handler
from gateway.http.live import live_handler
from gateway.http.requests import request_handlers
from gateway.serving.hosted import HostedFallback
from gateway.serving.hosted_use import HostedUse
from gateway.serving.latencies import Latencies
from gateway.serving.live_view import LiveView
from gateway.serving.ports import Clock
from gateway.serving.queue.ceilings import rule_for
from gateway.settings import Settings

if TYPE_CHECKING:
    from gateway.app import Gateway


def told_to_others(redis: RedisClient, clock: Clock) -> tuple[Latencies, HostedUse]:
    """What this gateway measures and uses, for all to see; `watching_loops` tells it."""
    latencies = Latencies(RedisSlices(redis), clock)
    return latencies, HostedUse(RedisHostedUses(redis), clock)


def live_view(gateway: "Gateway", fallback: HostedFallback) -> LiveView:
    """One for a gateway: it remembers for all who look."""
    return LiveView(
        directory=gateway.directory,
        ledger=gateway.ledger,
        fleet=gateway.fleet,
        watch=gateway.watch,
        fallback=fallback,
        clock=gateway.clock,
        looks=gateway.looks,
        latencies=gateway.latencies,
        hosted_use=gateway.hosted_use,
        targets=targets_of(gateway.settings),
    )


def targets_of(settings: Settings) -> dict[RequestClass, Targets]:
    """What each class's latencies are held against."""
    rule = rule_for(settings.queue_tpot_ms)
    return {
        RequestClass.INTERACTIVE: Targets(settings.ttft_target_ms, rule.tpot_us // 1000),
        RequestClass.BATCH: Targets(settings.ttft_batch_target_ms, rule.alone_tpot_us // 1000),
    }


def request_stories(gateway: "Gateway") -> RequestStories:
    """Who reads requests: on connections that serve no request."""
    return RequestStories(gateway.usage_postgres, gateway.gateways, Copies(gateway.redis))


def watching_parts(gateway: "Gateway", fallback: HostedFallback) -> tuple[LiveView, RequestStories]:
    """What is looked through: one of each for a gateway."""
    return live_view(gateway, fallback), request_stories(gateway)


def watching_handlers(view: LiveView, stories: RequestStories) -> list[ControllerRouterHandler]:
    """Their routes below `/admin/v1`."""
    return [live_handler(view), limit_effect_handler(view), *request_handlers(stories)]


def watching_loops(gateway: "Gateway") -> list[Coroutine[Any, Any, None]]:
    """What tells the other gateways what this one measures and uses."""
    return [gateway.latencies.run(), gateway.hosted_use.run()]
