"""What is reserved, and whether the prompt was counted for it: the whole straight line."""

import asyncio

import engine_events as events
import pytest
from hosted_gateway import sent
from memory_gateway import MemoryGateway, error_of
from tenant_examples import COUNTED, a_tenant, a_worker

from billing.domain.usage_record import Outcome, UsageSource
from gateway.domain.expected_output import OBSERVATIONS_MIN
from gateway.domain.scopes import scopes_of
from gateway.domain.tenant import EngineKind, Limits
from gateway.errors import Overloaded
from gateway.serving.estimator import COUNT_AFTERWARDS_S

SILENT = [events.role(), events.content("a"), events.content("b"), events.finish()]
"""An answer without any usage."""


class Counted:
    """How often a gateway's prompts were counted."""

    def __init__(self, gateway: MemoryGateway) -> None:
        self.times = 0
        gateway.tokenizer.on_count = self._add

    def _add(self) -> None:
        self.times += 1


def limited(gateway: MemoryGateway, limits: Limits, version: int = 1) -> None:
    gateway.directory.one_tenant = a_tenant(limits, limits_version=version)


async def test_without_limits_no_prompt_is_counted() -> None:
    """One call less a request; the record has the engine's own count."""
    gateway = MemoryGateway(events.answer(["a"]))
    counted = Counted(gateway)
    await gateway.post()
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert counted.times == 0
    assert (record.prompt_tokens, record.usage_flags) == (5, ())


async def test_s05_what_was_spared_is_counted_where_the_engine_tells_nothing() -> None:
    """S05: afterwards, by the worker's own tokenizer, and flagged so."""
    gateway = MemoryGateway(SILENT)
    counted = Counted(gateway)
    await gateway.post(stream=True)
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert counted.times == 1
    assert (record.prompt_tokens, record.output_tokens) == (5, 2)
    assert record.usage_flags == ("prompt_counted",)
    assert record.usage_source is UsageSource.COUNTED


async def test_what_no_engine_took_up_is_not_counted_afterwards() -> None:
    """There is nothing to record of it."""
    gateway = MemoryGateway([events.error(400, "no")])
    counted = Counted(gateway)
    await gateway.post()
    gateway.assert_one_of_each(Outcome.REFUSED)
    assert counted.times == 0


async def test_a_count_that_does_not_come_holds_nothing_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither the record nor the settlement waits for it for long: then the prompt is unknown."""
    assert COUNT_AFTERWARDS_S <= 2
    monkeypatch.setattr("gateway.serving.estimator.COUNT_AFTERWARDS_S", 0.01)
    gateway = MemoryGateway(SILENT)

    async def never(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(gateway.tokenizer, "count", never)
    await gateway.post()
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert record.usage_flags == ("prompt_unknown",)

    async def full(*_: object) -> None:
        raise Overloaded("busy", code="no_capacity")

    gateway = MemoryGateway(SILENT)
    monkeypatch.setattr(gateway.tokenizer, "count", full)
    await gateway.post()
    assert gateway.assert_one_of_each(Outcome.COMPLETED).usage_flags == ("prompt_unknown",)


async def test_r02_a_small_limit_has_no_hidden_floor() -> None:
    """R02: a limit of 100, 5 tokens of prompt and a maximum of 20 reserve 25; without a maximum
    what is expected, cut down to the limit; a second one finds what the first left."""
    gateway = MemoryGateway(*[events.answer(["a"])] * 2)
    limited(gateway, Limits(tpm=100))
    assert (await gateway.post(max_tokens=20)).status == 200
    assert gateway.journal.admissions[0].reserved_tokens == 25
    assert (await gateway.post(max_tokens=None)).status == 200
    assert gateway.journal.admissions[1].reserved_tokens == 25
    limited(gateway, Limits(tpm=24), version=2)
    client = await gateway.post(max_tokens=20)
    assert client.status == 400
    assert "the limit of the tenant is 24" in error_of(client)["message"]


async def test_r03_the_engine_is_told_the_maximum_that_is_reserved() -> None:
    """R03: 1 and 80: 80 are reserved, and 80 the engine is told."""
    gateway = MemoryGateway(events.answer(["a"]))
    limited(gateway, COUNTED)
    await gateway.post(max_tokens=1, max_completion_tokens=80)
    assert gateway.journal.admissions[0].reserved_tokens == 85
    assert sent(gateway)["max_tokens"] == 80


async def test_r24_the_expectation_follows_what_the_tenant_is_answered() -> None:
    """R24: from the model's default of 20 to the 3 that answers have; the engine is told 100
    throughout. Answers to requests with a maximum, and what failed, teach nothing."""
    short = [events.answer(["a"] * 3)] * OBSERVATIONS_MIN
    odd = [[events.content("a")] * 90, events.answer(["a"] * 50)]
    gateway = MemoryGateway(*odd, *short, events.answer(["a"]))
    limited(gateway, COUNTED)
    await gateway.post(max_tokens=None)
    await gateway.post(max_tokens=50)
    for _ in short:
        await gateway.post(max_tokens=None)
    assert {entry.reserved_tokens for entry in gateway.journal.admissions[2:]} == {25}
    await gateway.post(max_tokens=None)
    assert gateway.journal.admissions[-1].reserved_tokens == 8
    assert sent(gateway)["max_tokens"] == 100


async def test_a_refusal_rests_on_a_count() -> None:
    """A limit that the store knows and this gateway does not yet: what 291 bytes do not fit, 5
    tokens do. Counted and asked for once more; and refused where the count does not fit either."""
    gateway = MemoryGateway(events.answer(["a"]))
    counted = Counted(gateway)
    newer = a_tenant(Limits(tpm=100), limits_version=2)
    (key,) = gateway.directory.keys
    await gateway.ledger.observe("acme", scopes_of(newer, key, "m"))
    assert (await gateway.post(max_tokens=60)).status == 200
    assert counted.times == 1
    assert gateway.journal.admissions[0].reserved_tokens == 65
    client = await gateway.post(max_tokens=96)
    assert client.status == 400
    assert "needs 101 tokens" in error_of(client)["message"]
    assert counted.times == 2


async def test_a_tenant_that_was_just_refused_is_refused_by_a_count_too() -> None:
    """Its limits are looked at before it has a place; what was not counted is not told so."""
    gateway = MemoryGateway(events.answer(["a"]), events.answer(["b"]))
    newer = a_tenant(Limits(tpm=100), limits_version=2)
    (key,) = gateway.directory.keys
    await gateway.ledger.observe("acme", scopes_of(newer, key, "m"))
    for _ in range(2):
        assert (await gateway.post(max_tokens=96)).status == 400
        assert (await gateway.post(max_tokens=40)).status == 200
    assert len(gateway.journal.admissions) == 2


@pytest.mark.parametrize("limits", [Limits(max_sequences=0), Limits(rpm=0)])
async def test_what_no_count_changes_is_refused_uncounted(limits: Limits) -> None:
    """A tenant at its limit of sequences or requests costs no worker anything."""
    gateway = MemoryGateway()
    counted = Counted(gateway)
    limited(gateway, limits)
    assert (await gateway.post()).status == 400
    assert counted.times == 0


async def test_a_worker_that_never_counts_is_not_asked_to() -> None:
    """Nobody could count its prompts afterwards: as before, by the bound."""
    gateway = MemoryGateway(SILENT)
    gateway.directory.all_workers = [a_worker(kind=EngineKind.OPENAI)]
    gateway.tokenizer.tokens = None
    await gateway.post()
    record = gateway.assert_one_of_each(Outcome.COMPLETED)
    assert (record.prompt_tokens, record.usage_flags) == (0, ("prompt_unknown",))
