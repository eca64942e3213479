from dataclasses import replace

import pytest
from tenant_examples import a_key, a_tenant

from gateway.domain.admission import Demand
from gateway.domain.held_share import Asked, EndedLease, is_held, lease_to_take_over
from gateway.domain.scopes import ScopeLimits, scopes_of
from gateway.domain.tenant import Limits, ModelLimits

TTL_MS = 10_000
STORE_MS = 1_800_000_000_000
ASKED_US = 5_000_000


def scopes(tenant: Limits | None = None, key: Limits | None = None) -> tuple[ScopeLimits, ...]:
    return scopes_of(a_tenant(tenant), a_key(key), "m")


ENDED = EndedLease(
    request_id="a",
    tenant_id="acme",
    key_id="key-1",
    model="m",
    sequences=2,
    reserved_tokens=100,
    used_tokens=40,
    ran=True,
    second=STORE_MS // 1000 - 5,
    limits=scopes(),
    confirmed_ms=STORE_MS,
    asked_us=ASKED_US,
)
ASKED = Asked("acme", "key-1", "m", Demand("b", 2, 60, 60), is_bounded=True, limits=scopes())


def taken(
    *ended: EndedLease, asked: Asked = ASKED, after_ms: int = 0, ttl_ms: int = TTL_MS
) -> str | None:
    now_us = ASKED_US + after_ms * 1000
    found = lease_to_take_over(ended, asked, now_us=now_us, ttl_ms=ttl_ms)
    return None if found is None else found.request_id


def demanding(sequences: int, tokens: int) -> Asked:
    return replace(ASKED, demand=Demand("b", sequences, tokens, tokens))


def test_what_is_left_of_an_ended_lease_may_be_used() -> None:
    """Up to its sequences and to what it reserved and did not use."""
    assert taken(ENDED) == "a"
    assert taken() is None
    assert taken(ENDED, asked=demanding(3, 1)) is None
    assert taken(ENDED, asked=demanding(1, 61)) is None


@pytest.mark.parametrize(
    "change", [{"tenant_id": "globex"}, {"key_id": "key-2"}, {"model": "other"}]
)
def test_only_its_own_scopes_count_it(change: dict[str, str]) -> None:
    """INV-2, INV-12: another tenant, key or model has no part in it."""
    assert taken(replace(ENDED, **change)) is None  # type: ignore[arg-type]


def test_an_expectation_bounds_nothing() -> None:
    """INV-3: without a maximum of the client's the request could use more than is left."""
    assert taken(ENDED, asked=replace(ASKED, is_bounded=False)) is None


def test_it_is_held_for_less_than_one_lease_time_from_when_it_was_asked() -> None:
    """INV-2: a hundredth less, since two clocks do not run alike."""
    assert taken(ENDED, after_ms=9_899) == "a"
    assert taken(ENDED, after_ms=9_900) is None
    assert not is_held(ENDED, now_us=ASKED_US + 10**12, ttl_ms=TTL_MS)


@pytest.mark.parametrize(("age_s", "unheard", "wanted"), [
    (51, 0, "a"), (52, 0, None), (41, 1, "a"), (42, 1, None), (31, 2, "a"), (32, 2, None),
])  # fmt: skip
def test_its_cell_counts_until_it_lapses(age_s: int, unheard: int, wanted: str | None) -> None:
    """INV-3: the store charges it anew only where it was still counted when it lapsed; each
    renewal without an answer may have put that off by one lease time."""
    old = replace(ENDED, second=STORE_MS // 1000 - age_s, unheard=unheard)
    assert taken(old) == wanted


def test_a_reservation_charged_to_no_cell_is_none() -> None:
    """What an earlier life of this gateway held."""
    assert taken(replace(ENDED, second=0)) is None


@pytest.mark.parametrize("ran", [True, False])
@pytest.mark.parametrize(
    ("tenant", "key"),
    [
        (Limits(rpm=10**6), None),
        (None, Limits(rpm=10**6)),
        (Limits(models={"m": ModelLimits(rpm=10**6)}), None),
        (None, Limits(models={"m": ModelLimits(rpm=10**6)})),
    ],
)
def test_a_request_is_used_once(ran: bool, tenant: Limits | None, key: Limits | None) -> None:
    """With requests a minute limited in any scope only one that never ran leaves its own."""
    limits = scopes(tenant, key)
    ended = replace(ENDED, ran=ran, limits=limits)
    assert taken(ended, asked=replace(ASKED, limits=limits)) == (None if ran else "a")


@pytest.mark.parametrize(
    ("tenant", "key"),
    [
        (Limits(monthly_budget="1000000.00"), None),
        (None, Limits(monthly_budget="1000000.00")),
        (Limits(models={"m": ModelLimits(monthly_budget="1000000.00")}), None),
        (None, Limits(models={"m": ModelLimits(monthly_budget="1000000.00")})),
    ],
)
def test_no_share_of_a_budget(tenant: Limits | None, key: Limits | None) -> None:
    """DESIGN 10: a tenant with a hard budget is refused at once, whatever is left."""
    limits = scopes(tenant, key)
    assert taken(replace(ENDED, limits=limits), asked=replace(ASKED, limits=limits)) is None


@pytest.mark.parametrize("name", ["max_sequences", "tpm"])
@pytest.mark.parametrize(
    ("then", "now", "wanted"),
    [(9, 9, "a"), (9, 10, "a"), (9, None, "a"), (None, None, "a"), (9, 8, None), (None, 9, None)],
)
def test_a_lowered_limit_holds_at_once(
    name: str, then: int | None, now: int | None, wanted: str | None
) -> None:
    """INV-2: the limit in force, not the one that the lease was granted under."""
    ended = replace(ENDED, limits=scopes(Limits(**{name: then})))  # type: ignore[arg-type]
    asked = replace(ASKED, limits=scopes(Limits(**{name: now})))  # type: ignore[arg-type]
    assert taken(ended, asked=asked) == wanted


def test_the_smallest_that_holds_enough_is_taken() -> None:
    """Room for a larger one is kept; in one order, whatever order they ended in."""
    large = replace(ENDED, request_id="large", sequences=3)
    roomy = replace(ENDED, request_id="roomy", used_tokens=0)
    small = replace(ENDED, request_id="small", sequences=1)
    twin = replace(ENDED, request_id="twin")
    every = (large, roomy, small, twin, ENDED)
    assert taken(*every) == taken(*reversed(every)) == "a"
    assert taken(*every, asked=demanding(1, 60)) == "small"
    assert taken(*every, asked=demanding(2, 61)) == "roomy"
    assert taken(*every, asked=demanding(3, 60)) == "large"
