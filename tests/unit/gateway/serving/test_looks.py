"""What a long prompt is told while its limits have no room: the same as a short one."""

import asyncio
from dataclasses import replace
from typing import Any

import engine_events as events
import msgspec
import pytest
from budget_gateway import MONTH, PRICE, USD
from memory_gateway import MemoryGateway, error_of, until
from scripted_engine import RecordingConnection
from tenant_examples import a_model, a_tenant

from billing.domain.price_book import PriceBook
from billing.domain.usage_record import Outcome
from gateway.domain.admission import Demand
from gateway.domain.scopes import ScopeUse, scopes_of
from gateway.domain.tenant import Limits
from gateway.errors import Overloaded
from gateway.serving.looks import LOOKED_AT_CHARACTERS

LONG = [{"role": "user", "content": "abc " * 4_125}]
LEAST = 1 + 16_500 // 256
"""Tokens that so many characters are at least."""


class Busy:
    """A gateway of a tenant with use in two seconds of its window, and how often it counted."""

    def __init__(self, limits: Limits, *, counts: int = 4_125, model_tokens: int = 10**6) -> None:
        assert sum(len(m["content"]) for m in LONG) > LOOKED_AT_CHARACTERS
        self.gateway = MemoryGateway()
        self.gateway.directory.all_models = [a_model(context_tokens=model_tokens)]
        self.gateway.directory.one_tenant = a_tenant(limits)
        self.gateway.tokenizer.tokens = counts
        self.gateway.tokenizer.on_count = self._count
        self.counted = 0
        self.requests = 0

    def _count(self) -> None:
        self.counted += 1

    async def use(self, tokens: int, sequences: int = 1) -> None:
        """Use up so much now; no limit stops it."""
        self.requests += 1
        tenant, (key,) = a_tenant(limits_version=0), self.gateway.directory.keys
        demand = Demand(f"used-{self.requests}", sequences, tokens, tokens)
        await self.gateway.ledger.acquire("acme", key.id, "m", demand, scopes_of(tenant, key, "m"))

    async def use_twice(self, first: int, second: int) -> None:
        """Two charges twelve seconds apart; now is three seconds after the second."""
        await self.use(first)
        self.gateway.clock.advance(12_000)
        await self.use(second)
        self.gateway.clock.advance(3_000)

    async def ask(self, **changes: Any) -> RecordingConnection:
        """A long prompt's answer."""
        return await self.gateway.post(messages=LONG, **changes)

    async def ask_shortly(self, tokens: int, **changes: Any) -> RecordingConnection:
        """A short prompt's answer, that is counted as so many tokens."""
        self.gateway.tokenizer.tokens, counted = tokens, self.gateway.tokenizer.tokens
        client = await self.gateway.post(**changes)
        self.gateway.tokenizer.tokens = counted
        return client


def seen_too_early(gateway: MemoryGateway) -> None:
    """A look finds the minute full that no longer is when it is decided on."""
    observe = gateway.ledger.observe

    async def full(*asked: Any) -> tuple[ScopeUse, ...]:
        return tuple(replace(use, tokens=60_000) for use in await observe(*asked))

    gateway.ledger.observe = full  # type: ignore[method-assign,assignment]


async def test_the_wait_for_tokens_is_computed() -> None:
    """R02, R23: until the older charge ends to count, not until the window is empty; as for a short
    prompt, and uncounted. The need is told as what it is: the least."""
    busy = Busy(Limits(tpm=60_000))
    await busy.use_twice(30_000, 29_900)
    long = await busy.ask(max_tokens=100)
    assert (long.status, busy.counted) == (429, 0)
    assert f"this request needs at least {LEAST + 100}" in error_of(long)["message"]
    short = await busy.ask_shortly(LEAST, max_tokens=100)
    assert f"this request needs {LEAST + 100}" in error_of(short)["message"]
    assert long.headers[b"retry-after-ms"] == short.headers[b"retry-after-ms"] == b"46000"
    assert long.headers[b"x-ratelimit-remaining-tokens"] == b"100"
    assert set(busy.gateway.ledger.states["acme"].leases) == {"used-1", "used-2"}


@pytest.mark.parametrize(
    ("limits", "kind", "wait_ms"),
    [
        (Limits(rpm=2, tpm=10**6), "requests", 46_000),
        (Limits(max_sequences=1, tpm=10**6), "sequences", 1_000),
    ],
)
async def test_other_waits_are_computed_too(limits: Limits, kind: str, wait_ms: int) -> None:
    """And told with what the request needs of them, which is no guess."""
    busy = Busy(limits)
    await busy.use_twice(10, 10)
    client = await busy.ask()
    assert (client.status, error_of(client)["type"], busy.counted) == (429, kind, 0)
    assert client.headers[b"retry-after-ms"] == str(wait_ms).encode()
    assert "this request needs 1" in error_of(client)["message"]


@pytest.mark.parametrize(
    ("limits", "maximum", "says"),
    [
        (Limits(tpm=6_000), 3_000, "needs 7125 tokens a minute; the limit of the tenant is 6000"),
        (Limits(tpm=4_125), None, "needs 4126 tokens a minute; the limit of the tenant is 4125"),
        (Limits(tpm=60_000, max_prompt_tokens=4_000), 10, "the prompt has 4125 tokens"),
        (Limits(tpm=60_000), 16_000, "4125 prompt tokens and up to 16000 output tokens do not fit"),
    ],
)
async def test_never_is_told_whatever_is_in_use(
    limits: Limits, maximum: int | None, says: str
) -> None:
    """R23: what exceeds a limit itself, or the context, is the 400 that it is when nothing runs;
    where requests a minute have no room too."""
    for use in (0, limits.tpm or 0):
        for rpm in (None, 1):
            busy = Busy(msgspec.structs.replace(limits, rpm=rpm), model_tokens=20_000)
            await busy.use_twice(use, 0)
            client = await busy.ask(max_tokens=maximum)
            assert client.status == 400
            assert says in error_of(client)["message"]
            assert busy.counted == 1


async def test_what_fits_by_its_count_is_told_to_wait_by_its_count() -> None:
    """Its bytes do not fit the limit, its tokens do."""
    busy = Busy(Limits(tpm=6_000))
    await busy.use_twice(3_000, 2_990)
    client = await busy.ask(max_tokens=10)
    assert (client.status, busy.counted) == (429, 1)
    assert "5990 in use, this request needs 4135" in error_of(client)["message"]
    assert client.headers[b"retry-after-ms"] == b"58000"


async def test_one_at_a_time_is_counted_that_has_no_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A tenant without allowance cannot keep workers counting: the others are told the wait, and
    the next one is counted when the first is done."""
    busy = Busy(Limits(tpm=6_000))
    await busy.use_twice(3_000, 2_990)
    goes_on, count = asyncio.Event(), busy.gateway.tokenizer.count

    async def slow(*asked: Any) -> list[int] | None:
        counts = await count(*asked)
        await goes_on.wait()
        return counts

    monkeypatch.setattr(busy.gateway.tokenizer, "count", slow)
    first = asyncio.create_task(busy.ask(max_tokens=3_000))
    await until(lambda: busy.counted == 1)
    for _ in range(3):
        other = await busy.ask(max_tokens=3_000)
        assert (other.status, other.headers[b"retry-after-ms"]) == (429, b"58000")
    assert busy.counted == 1
    goes_on.set()
    assert (await first).status == 400
    assert (await busy.ask(max_tokens=3_000)).status == 400
    assert busy.counted == 2


async def test_where_nobody_counts_in_time_the_wait_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has no room now, whatever a count would say; and it is counted the next time."""
    busy = Busy(Limits(tpm=6_000))
    await busy.use(6_000)

    async def full(*_: object) -> list[int] | None:
        raise Overloaded("busy", code="no_capacity")

    monkeypatch.setattr(busy.gateway.tokenizer, "count", full)
    client = await busy.ask(max_tokens=3_000)
    assert (client.status, client.headers[b"retry-after-ms"]) == (429, b"60000")
    monkeypatch.undo()
    assert (await busy.ask(max_tokens=3_000)).status == 400


async def test_what_has_room_after_all_is_given_back_and_served() -> None:
    """INV-1, INV-4: room came between the look and the decision. The least is held no longer when
    the request asks for what it needs, and counts nowhere."""
    busy = Busy(Limits(max_sequences=1, tpm=60_000, rpm=1))
    gateway = busy.gateway
    gateway.engine.scripts = [events.answer(["a"])]
    seen_too_early(gateway)
    assert (await busy.ask(max_tokens=100)).status == 200
    assert gateway.record.outcome is Outcome.COMPLETED
    (_, _, ran, _), (_, used, ran_then, _) = gateway.ledger.settlements
    assert (ran, ran_then) == (False, True)
    window = gateway.ledger.states["acme"].scopes["tenant"].window
    assert (window.tokens, window.requests) == (used, 1)
    gateway.assert_at_rest()


async def test_a_limit_that_only_the_store_knows_is_told_as_such() -> None:
    """400 by the least alone, uncounted: the number is named as the bound that it is."""
    busy = Busy(Limits(tpm=60_000))
    newer, (key,) = a_tenant(Limits(tpm=100), limits_version=2), busy.gateway.directory.keys
    await busy.gateway.ledger.observe("acme", scopes_of(newer, key, "m"))
    client = await busy.ask(max_tokens=100)
    assert (client.status, busy.counted) == (400, 0)
    assert f"needs at least {LEAST + 100} tokens a minute" in error_of(client)["message"]


async def test_a_budget_is_refused_by_a_count() -> None:
    """What it may cost is no guess, also where the minute seemed to have no room."""
    busy = Busy(Limits(tpm=60_000, monthly_budget="60.00"))
    gateway = busy.gateway
    gateway.directory.prices = PriceBook([PRICE])
    gateway.months.spent[MONTH] = {"tenant": 70 * USD}
    seen_too_early(gateway)
    client = await busy.ask(max_tokens=1_000)
    assert (client.status, error_of(client)["code"], busy.counted) == (429, "insufficient_quota", 1)
    assert "this request may cost 51.25 USD" in error_of(client)["message"]
    gateway.assert_nothing_admitted()
