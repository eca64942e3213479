"""What a request asks of its pool's queue."""

from typing import Any
from uuid import UUID

import pytest
from memory_ports import MemoryDirectory
from scripted_engine import RecordingConnection
from tenant_examples import a_key, a_model, a_tenant
from virtual_time import LoopClock

from gateway.domain.queue.tickets import Band
from gateway.domain.tenant import Limits, RequestClass
from gateway.errors import InvalidRequest
from gateway.serving.arrival import Arrival
from gateway.serving.asking import Asking
from gateway.serving.authenticate import Caller
from gateway.serving.estimate import Estimate
from gateway.serving.hosted import HostedFallback, HostedRoute
from gateway.serving.queue.asked import PlaceAsked, QueueSettings, place_asked
from gateway.serving.spending import spending_of
from gateway.wire.request import read_request

BODY = b'{"model": "m", "prompt": "hi", "max_tokens": 50, "n": 2}'
NEEDS = Estimate(
    prompt_tokens=300,
    prompt_counts=(300,),
    exact=True,
    sequences=2,
    output_tokens=100,
    output_is_maximum=True,
    max_tokens=50,
)


def asked(
    headers: dict[bytes, bytes] | None = None,
    *,
    tenant: Limits | None = None,
    key: Limits | None = None,
    **changes: Any,
) -> PlaceAsked:
    headers = headers or {}
    caller = Caller(
        a_tenant(tenant or Limits()),
        a_key(key or Limits(), **changes),
    )
    directory = MemoryDirectory()
    request = read_request("completions", BODY, headers)
    arrival = Arrival(
        endpoint="completions",
        headers=headers,
        client_ip=None,
        connection=RecordingConnection(),
        request_id=UUID(int=7),
        at_ms=0,
        at_us=0,
    )
    spending = spending_of(caller, "m", directory, at_ms=0, request_class=RequestClass.INTERACTIVE)
    route = HostedRoute(HostedFallback(directory, LoopClock()), caller, request, spending)
    return place_asked(
        Asking(arrival, caller, request, a_model(), "m", route), NEEDS, QueueSettings()
    )


def test_an_interactive_request() -> None:
    """A weighted token of the prompt counts one, one of the output two."""
    found = asked(tenant=Limits(weight=3))
    assert found == PlaceAsked(
        id=UUID(int=7).hex,
        pool="m",
        tenant="acme",
        key=a_key().id,
        band=Band.INTERACTIVE,
        sequences=2,
        need_tokens=400,
        cost=300 + 2 * 100,
        weight=3,
        max_queued=64,
        wait_ms=10_000,
        promote_after_ms=7_500,
    )


def test_batch_waits_for_as_long_as_the_operator_says() -> None:
    for found in (
        asked({b"x-weir-class": b"batch"}),
        asked(request_class=RequestClass.BATCH),
    ):
        assert (found.band, found.wait_ms) == (Band.BATCH, 600_000)
        assert found.promote_after_ms == 450_000


@pytest.mark.parametrize(
    ("tenant", "key", "header", "wait_ms"),
    [
        (4_000, 9_000, None, 4_000),
        (9_000, 4_000, None, 4_000),
        (9_000, 9_000, b"1500", 1_500),
        (9_000, 9_000, b"0", 0),
        (9_000, 9_000, b"999999", 9_000),
    ],
)
def test_the_shortest_wait_holds(tenant: int, key: int, header: bytes | None, wait_ms: int) -> None:
    headers = {} if header is None else {b"x-weir-max-wait-ms": header}
    found = asked(headers, tenant=Limits(max_wait_ms=tenant), key=Limits(max_wait_ms=key))
    assert found.wait_ms == wait_ms


@pytest.mark.parametrize(
    ("tenant", "key", "queued", "wait_ms"),
    [
        (Limits(), Limits(), 64, 10_000),
        (Limits(max_wait_ms=60_000, max_queued=500), Limits(), 500, 60_000),
        (Limits(max_wait_ms=60_000, max_queued=500), Limits(tpm=100), 500, 60_000),
        (Limits(max_wait_ms=60_000, max_queued=500), Limits(max_queued=5), 5, 60_000),
        (Limits(max_wait_ms=60_000, max_queued=500), Limits(max_wait_ms=20_000), 500, 20_000),
        (Limits(), Limits(max_wait_ms=60_000, max_queued=500), 64, 10_000),
        (Limits(max_wait_ms=0), Limits(), 64, 0),
        (Limits(max_queued=0), Limits(), 0, 10_000),
        (Limits(max_wait_ms=60_000), Limits(max_wait_ms=0), 64, 0),
    ],
)
def test_a_key_that_says_nothing_leaves_it_at_its_tenants(
    tenant: Limits, key: Limits, queued: int, wait_ms: int
) -> None:
    """What it says narrows, and never widens; 0 is none at all."""
    found = asked(tenant=tenant, key=key)
    assert (found.max_queued, found.wait_ms) == (queued, wait_ms)


def test_batch_waits_for_less_where_it_says_so() -> None:
    headers = {b"x-weir-class": b"batch", b"x-weir-max-wait-ms": b"20000"}
    assert asked(headers, tenant=Limits(max_wait_ms=1)).wait_ms == 20_000


def test_the_narrower_of_tenant_and_key_may_queue() -> None:
    found = asked(tenant=Limits(max_queued=5), key=Limits(max_queued=0))
    assert found.max_queued == 0


@pytest.mark.parametrize("value", [b"", b"-1", b"1.5", b"1e3", b"soon", b"9" * 40, "٣".encode()])
def test_a_wait_that_is_no_number_is_refused(value: bytes) -> None:
    with pytest.raises(InvalidRequest) as refused:
        asked({b"x-weir-max-wait-ms": value})
    assert refused.value.param == "x-weir-max-wait-ms"
