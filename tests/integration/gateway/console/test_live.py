"""The live page over a real gateway: what it shows of tenants, queues, workers and providers, and
what while a store is away."""

import asyncio
import re
from typing import Any

import pytest
from console_visitor import ME, Visitor

from gateway.app import Gateway
from gateway.console.figures import UNKNOWN
from gateway.domain.account import Role
from gateway.domain.hosted import HostedModel, HostedProvider
from gateway.domain.tenant import Model
from gateway.errors import StoreUnavailable
from gateway.serving.live_view import LiveView

PATHS = ("/console/live", "/console/live/now")
SCRIPT = "<script>alert(1)</script>\"'"


def figures(use: int, limit: int | None) -> dict[str, Any]:
    """One tenant's row of the live view."""
    return {
        "suspended": False,
        "max_sequences": limit,
        "sequences_running": use,
        "tpm": None,
        "tokens_last_minute": 1_234,
        "rpm": None,
        "requests_last_minute": 3,
        "max_queued": 64,
        "sequences_queued": 0,
    }


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Parts of the live view that a test puts in the place of what is so."""
    parts: dict[str, Any] = {}
    real = LiveView.look

    async def look(view: LiveView) -> dict[str, Any]:
        return {**await real(view), **parts}

    monkeypatch.setattr(LiveView, "look", look)
    return parts


async def text_of(visitor: Visitor, path: str = "/console/live") -> str:
    """A page's text, for reading: one space for whatever stands between words."""
    answer = await visitor.get(path)
    assert answer.status_code == 200, answer.text
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.text))


async def test_a_gateway_at_rest_says_what_it_has(visitor: Visitor) -> None:
    """Zeros where nothing runs, words where there is nothing, and that nobody serves the model."""
    await visitor.log_in(Role.VIEWER)
    for path in PATHS:
        said = await text_of(visitor, path)
        assert "No healthy worker serves m." in said
        assert "No tenant is active" in said
        assert "Running 0 sequences on workers" in said
        assert "Queued, interactive 0 tokens 0 requests wait for a worker" in said
        assert "Last minute 0 tokens" in said
        assert "0 of 1 1 not healthy" in said
        assert "no provider is registered" in said
        assert "no interactive request ended in the last minute" in said
        assert "starting or unreachable" in said
    assert "<html" not in visitor.page


async def test_what_a_tenants_own_limits_hold_is_told_from_what_waits_for_a_worker(
    visitor: Visitor, changed: dict[str, Any]
) -> None:
    """No worker would help those."""
    await visitor.log_in(Role.VIEWER)
    pools = (await visitor.client.get("/admin/v1/live")).json()["pools"]
    for parked, words in ((1, "1 request is held by its"), (12, "12 requests are held by their")):
        changed["pools"] = [{**pools[0], "parked": parked}, *pools[1:]]
        said = await text_of(visitor)
        assert f"Running 0 sequences on workers; {words}" in said
        assert "Queued, interactive 0 tokens 0 requests wait for a worker" in said


async def test_without_scripts_it_says_that_it_stands_still(visitor: Visitor) -> None:
    """On the page alone, which is not read anew."""
    await visitor.log_in(Role.VIEWER)
    pages = [(await visitor.get(path)).text for path in PATHS]
    found = [re.search(r"<noscript>(.*?)</noscript>", page, re.DOTALL) for page in pages]
    assert found[0] is not None
    assert "This page stands still without scripts." in found[0][1]
    assert found[1] is None


async def test_no_figure_of_money_is_on_it(visitor: Visitor, changed: dict[str, Any]) -> None:
    """Whoever watches may not see what tenants spend."""
    spent = {"spent_this_month": "987.65", "monthly_budget": "4321.00", "currency": "USD"}
    changed["tenants"] = [{"id": "acme", "name": "Acme", **figures(1, 2), **spent}]
    await visitor.log_in(Role.OPERATOR)
    page = (await visitor.get("/console/live")).text
    assert "Acme" in page
    assert "987" not in page
    assert "4321" not in page


async def test_who_is_nearest_to_a_limit_comes_first_and_fifty_are_shown(
    visitor: Visitor, changed: dict[str, Any]
) -> None:
    """The others are counted, and found by name."""
    changed["tenants"] = [
        {"id": f"t{use}", "name": f"Name {use}", **figures(use, 1_000)} for use in range(1_000)
    ]
    await visitor.log_in()
    page = (await visitor.get("/console/live")).text
    shown = re.findall(r'id="tenant-t(\d+)"', page)
    assert shown == [str(use) for use in range(999, 949, -1)]
    said = await text_of(visitor)
    assert "At least 1,000 tenants are active" in said
    assert "950 more are further from their limits" in said
    for path in PATHS:
        answer = await visitor.get(f"{path}?search=name+77")
        assert re.findall(r'id="tenant-t(\d+)"', answer.text) == [
            *(str(use) for use in range(779, 769, -1)),
            "77",
        ]
    page = (await visitor.get("/console/live?search=a%26b")).text
    assert "/console/live/now?search=a%26b" in page
    assert "No active tenant matches" in page


async def test_a_name_is_text_whatever_is_in_it(visitor: Visitor, changed: dict[str, Any]) -> None:
    """Of a tenant, and of what is searched for."""
    changed["tenants"] = [{"id": "acme", "name": SCRIPT, **figures(1, 2)}]
    changed["degraded"] = [f"redis:{SCRIPT}", SCRIPT]
    await visitor.log_in()
    for path in PATHS:
        answer = await visitor.client.get(path, params={"search": SCRIPT})
        assert answer.text.count("&lt;script&gt;alert(1)&lt;/script&gt;&#34;&#39;") >= 3
        assert "<script>alert" not in answer.text


async def test_latencies_stand_against_their_targets(
    visitor: Visitor, changed: dict[str, Any]
) -> None:
    """Over the target is said in words."""
    slow = {"ttft_p95_ms": 900.0, "ttft_count": 12, "tpot_p95_ms": 20.0, "tpot_count": 1}
    none = {"ttft_p95_ms": None, "ttft_count": 0, "tpot_p95_ms": None, "tpot_count": 0}
    targets = {"ttft_target_ms": 800, "tpot_target_ms": 40}
    changed["latency"] = [
        {
            "model": "m",
            "class": "interactive",
            "last_minute": slow,
            "last_five_minutes": none,
            **targets,
        }
    ]
    await visitor.log_in()
    said = await text_of(visitor)
    assert "900 ms over target target 800 ms · 12 interactive requests" in said
    assert "in the last minute, waits included" in said
    assert "20 ms on target target 40 ms · 1 interactive request in the last minute" in said
    assert "over target 900 ms target 800 ms · 12 requests none target 800 ms" in said


async def test_a_provider_in_use_is_named_with_since_when(
    visitor: Visitor, changed: dict[str, Any]
) -> None:
    """And how its circuit is."""
    changed["hosted"] = [
        {
            "name": "near",
            "enabled": True,
            "models": ["m"],
            "circuit": "open",
            "running": 3,
            "in_use_since": "2026-11-30T10:00:00Z",
            "latency": None,
        }
    ]
    await visitor.log_in()
    said = await text_of(visitor)
    assert "3 running in use at near, since" in said
    assert "left alone after failures" in said


async def test_without_redis_it_shows_what_this_gateway_knows(
    visitor: Visitor, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers and circuits; tenants, queues and latencies are not known, and are no zeros."""
    provider = HostedProvider(
        name="near", url="https://near.test", models={"m": HostedModel(name="m")}
    )
    await visitor.administration.register_hosted_provider(ME, provider, api_key=None)
    await gateway.directory.refresh()
    await visitor.log_in()

    async def away(_: object) -> None:
        raise StoreUnavailable("Redis cannot be reached")

    monkeypatch.setattr(LiveView, "look", away)
    for path in PATHS:
        page = (await visitor.get(path)).text
        said = await text_of(visitor, path)
        assert "Redis cannot be reached." in said
        assert "What tenants use is not known while Redis is away" in said
        assert "Running – not known sequences on workers" in said
        assert "Queued, batch – not known not known" in said
        assert "Last minute – not known" in said
        assert "No tenant is active" not in said
        row = page[page.index('id="worker-w"') :]
        assert "starting or unreachable" in row
        assert str(UNKNOWN) in row
        assert 'id="hosted-near"' in page


async def test_a_model_that_is_registered_has_its_queue(visitor: Visitor, gateway: Gateway) -> None:
    """One that no worker serves too."""
    await visitor.administration.register_model(
        ME, Model(id="n", context_tokens=1000, max_output_tokens=300)
    )
    await gateway.directory.refresh()
    await visitor.log_in()
    page = (await visitor.get("/console/live")).text
    assert 'id="pool-n-both"' in page
    assert "No healthy worker serves m, n." in page


async def test_a_tenant_that_used_its_limit_is_shown_with_it(
    visitor: Visitor, changed: dict[str, Any]
) -> None:
    """A suspended one says so."""
    changed["tenants"] = [
        {"id": "acme", "name": "Acme", **figures(2, 2), "suspended": True},
        {"id": "b", "name": "b", **figures(1, None)},
    ]
    await visitor.log_in()
    said = await text_of(visitor)
    assert "Acme acme suspended 2 of 2 sequences 1.2k tokens · no limit" in said
    assert "b 1 sequences · no limit" in said


async def test_many_who_watch_are_answered_at_once(visitor: Visitor) -> None:
    """From one look."""
    await visitor.log_in()
    answers = await asyncio.gather(*(visitor.client.get("/console/live/now") for _ in range(20)))
    assert {answer.status_code for answer in answers} == {200}
