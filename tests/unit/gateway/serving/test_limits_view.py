from typing import Any

import pytest
from memory_ports import START_MS, MemoryLedger, StandingClock
from tenant_examples import a_key, a_tenant

from gateway.domain.admission import Demand
from gateway.domain.scopes import scopes_of
from gateway.domain.tenant import Limits, ModelLimits
from gateway.errors import Overloaded
from gateway.http.openapi_v1 import LimitsAnswer, OwnScopeUse, OwnUse
from gateway.serving.authenticate import Caller
from gateway.serving.limits_view import limits_view

TENANT = Limits(max_sequences=8, tpm=1000, max_queued=3, max_prompt_tokens=900)
KEY = Limits(
    rpm=5, max_output_tokens=70, models={"m": ModelLimits(max_sequences=2, max_prompt_tokens=80)}
)
MONEY = (
    "monthly_budget",
    "spent_this_month",
    "reserved_this_month",
    "remaining_this_month",
    "month_resets_at",
)
CALLER = Caller(a_tenant(TENANT), a_key(KEY))


async def test_limits_and_use_of_every_scope() -> None:
    """`null` is no limit; a model is shown where tenant or key narrows it."""
    ledger = MemoryLedger(StandingClock())
    scopes = scopes_of(CALLER.tenant, CALLER.key, "m")
    await ledger.acquire("acme", "key-1", "m", Demand("r", 2, 40, 40), scopes)
    view = await limits_view(CALLER, ledger, now_ms=START_MS, uses={})
    used = {"sequences_running": 2, "tokens_last_minute": 40, "requests_last_minute": 1,
            "reset_ms": 61_000 - START_MS % 1000}  # fmt: skip
    money = dict.fromkeys(MONEY) | {"currency": "USD"}

    def alone(prompt: int | None = None, output: int | None = None) -> dict[str, int | None]:
        return {"max_prompt_tokens": prompt, "max_output_tokens": output}

    assert view == {
        "object": "limits",
        "tenant": {"max_sequences": 8, "tpm": 1000, "rpm": None, **used, **money,
                   "max_queued": 3, "sequences_queued": 0, **alone(900)},
        "key": {"max_sequences": None, "tpm": None, "rpm": 5, **used, **money,
                "max_queued": None, "sequences_queued": None, **alone(output=70)},
        "models": {
            "m": {
                "tenant": {"max_sequences": None, "tpm": None, "rpm": None, **used, **money,
                           **alone()},
                "key": {"max_sequences": 2, "tpm": None, "rpm": None, **used, **money,
                        **alone(80)},
            }
        },
        "queue": {"queued": 0, "models": {}},
    }  # fmt: skip


async def test_the_document_has_what_is_answered() -> None:
    """Every field, and no other."""
    view: Any = await limits_view(CALLER, MemoryLedger(StandingClock()), now_ms=START_MS, uses={})
    assert {*view} == {*LimitsAnswer.__struct_fields__}
    assert {*view["tenant"]} == {*view["key"]} == {*OwnUse.__struct_fields__}
    assert {*view["models"]["m"]["key"]} == {*OwnScopeUse.__struct_fields__}


async def test_what_holds_of_waiting_is_shown() -> None:
    """The tenant's in any case, a key's where it has one of its own."""
    caller = Caller(a_tenant(Limits()), a_key(Limits(max_queued=2)))
    view: Any = await limits_view(caller, MemoryLedger(StandingClock()), now_ms=START_MS, uses={})
    assert (view["tenant"]["max_queued"], view["key"]["max_queued"]) == (64, 2)


async def test_looking_consumes_nothing() -> None:
    """INV-4: any number of looks."""
    ledger = MemoryLedger(StandingClock())
    assert await limits_view(CALLER, ledger, now_ms=START_MS, uses={}) == await limits_view(
        CALLER, ledger, now_ms=START_MS, uses={}
    )
    assert ledger.states["acme"].leases == {}


async def test_a_store_that_is_away_is_no_zero() -> None:
    """M23: 503, never a use of nothing."""
    ledger = MemoryLedger(StandingClock())
    ledger.away = True
    with pytest.raises(Overloaded) as caught:
        await limits_view(CALLER, ledger, now_ms=START_MS, uses={})
    assert caught.value.code == "admission_unavailable"


async def test_a_queue_that_is_not_seen_leaves_the_rest() -> None:
    """Limits are told; of what waits that it is not known."""
    ledger = MemoryLedger(StandingClock())
    view: Any = await limits_view(CALLER, ledger, now_ms=START_MS, uses={"m": None})
    assert view["tenant"]["max_sequences"] == 8
    assert view["tenant"]["sequences_queued"] is None
    assert view["queue"] == {"queued": None, "models": {"m": None}}
