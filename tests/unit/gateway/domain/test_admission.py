from collections.abc import Callable

import pytest
from admission_store import Store, granted, refused, scopes

from gateway.domain import admission
from gateway.domain.admission import Granted, Kind, Settled
from gateway.domain.tenant import Limits, ModelLimits


def test_five_at_once_never_pass_the_limit() -> None:
    """R01, R20: TPM 100, five calls of 40: exactly two; of 130: none, and waiting cannot help."""
    store = Store(Limits(tpm=100))
    decisions = [store.acquire(str(i), 40) for i in range(5)]
    assert sum(isinstance(d, Granted) for d in decisions) == 2
    assert store.tokens == 80
    assert refused(Store(Limits(tpm=100)).acquire("a", 130)).retry_after_ms is None


def test_a_small_limit_has_no_hidden_floor() -> None:
    """R02: 5 prompt tokens and 20 at most reserve 25 of 100."""
    assert granted(Store(Limits(tpm=100)).acquire("a", 25)).reserved_tokens == 25


def test_an_expectation_is_cut_down_to_the_limit() -> None:
    """R02, R24: without a maximum, what is only expected never makes a request impossible."""
    assert granted(Store(Limits(tpm=100)).acquire("a", 261, floor=6)).reserved_tokens == 100


def test_a_maximum_beyond_the_limit_can_never_pass() -> None:
    """R23: need and limit are named, nothing is consumed, no retry is offered."""
    store = Store(Limits(tpm=100))
    no = refused(store.acquire("a", 101))
    assert (no.kind, no.limit, no.need, no.retry_after_ms) == (Kind.TOKENS, 100, 101, None)
    assert store.tokens == 0


def test_a_refusal_by_concurrency_consumes_no_request() -> None:
    """R09: with one request a minute and one at once, the refused one took neither (INV-4)."""
    store = Store(Limits(rpm=1, max_sequences=1, tpm=1000))
    assert isinstance(store.acquire("a", 10), Granted)
    no = refused(store.acquire("b", 10))
    assert no.kind is Kind.SEQUENCES
    store.settle("a", 10)
    assert refused(store.acquire("c", 10)).kind is Kind.REQUESTS
    assert (store.requests, store.tokens) == (1, 10)


def test_both_limits_are_read_back_as_they_were_set() -> None:
    """R14: a limit on requests says nothing about tokens."""
    use = granted(Store(Limits(rpm=5, tpm=7)).acquire("a", 1)).uses[0]
    assert (use.limits.rpm, use.limits.tpm, use.limits.max_sequences) == (5, 7, None)


def test_a_stream_is_charged_once() -> None:
    """R16, R29, L20: 10 in and 20 out count 30, whatever was reserved."""
    store = Store(Limits(tpm=1000))
    store.acquire("a", 500)
    assert store.settle("a", 30) is Settled.LIVE
    assert store.tokens == 30


def test_use_grows_with_every_call() -> None:
    """R18: two calls of 40 at TPM 100 leave 60, then 20."""
    store = Store(Limits(tpm=100))
    left = []
    for name in ("a", "b"):
        use = granted(store.acquire(name, 40)).uses[0]
        left.append(100 - use.tokens)
        store.settle(name, 40)
    assert left == [60, 20]


def test_an_excess_is_a_debt_that_blocks_what_follows() -> None:
    """R15, INV-3: what used more than it reserved is charged now, and the next one waits."""
    store = Store(Limits(tpm=100))
    store.acquire("a", 30, floor=6)
    store.now_ms += 5_000
    store.settle("a", 120)
    no = refused(store.acquire("b", 11))
    assert (no.used, no.retry_after_ms) == (120, 61_000)


def test_what_nothing_was_sent_for_costs_nothing() -> None:
    """A request that never reached an engine gives back its tokens and its request."""
    store = Store(Limits(rpm=1, tpm=100))
    store.acquire("a", 100)
    store.settle("a", 0, ran=False)
    assert isinstance(store.acquire("b", 100), Granted)


def test_choices_and_prompts_count_one_each() -> None:
    """C10, INV-2: n=4 takes four of four; n=5 can never pass."""
    store = Store(Limits(max_sequences=4))
    assert granted(store.acquire("a", sequences=4)).uses[0].sequences == 4
    assert refused(store.acquire("b")).retry_after_ms is not None
    assert refused(store.acquire("c", sequences=5)).retry_after_ms is None


def test_a_model_is_narrowed_without_touching_another() -> None:
    """C09: two at once on one model; the third waits there and passes elsewhere."""
    limits = Limits(max_sequences=10, models={"m": ModelLimits(max_sequences=2)})
    store = Store()
    on_m, on_other = scopes(key=limits), scopes(key=limits, model="other")
    for name in ("a", "b"):
        assert isinstance(store.acquire(name, offered=on_m), Granted)
    assert refused(store.acquire("c", offered=on_m)).limits.scope == "key:key-1/model:m"
    assert isinstance(store.acquire("d", offered=on_other), Granted)


def test_zero_is_none_at_all_and_null_no_limit() -> None:
    """A limit of 0 refuses for good, each kind by its name."""
    for limits, kind in (
        (Limits(max_sequences=0), Kind.SEQUENCES),
        (Limits(rpm=0), Kind.REQUESTS),
        (Limits(tpm=0), Kind.TOKENS),
    ):
        no = refused(Store(limits).acquire("a"))
        assert (no.kind, no.retry_after_ms) == (kind, None)
    assert isinstance(Store(Limits()).acquire("a", 10**9, sequences=100), Granted)


def test_newer_limits_win_whoever_offers_older_ones() -> None:
    """A replica that has not seen the change yet decides by it all the same."""
    store = Store()
    store.acquire("a", offered=scopes(tenant=Limits(max_sequences=1), version=2))
    no = refused(store.acquire("b", offered=scopes(tenant=Limits(max_sequences=9), version=1)))
    assert no.limit == 1


@pytest.mark.parametrize("call", ["acquire", "observe"])
def test_looking_and_being_refused_change_nothing(call: str) -> None:
    """INV-4: neither leases nor windows differ afterwards."""
    store = Store(Limits(max_sequences=1, tpm=10, rpm=1))
    store.acquire("a", 5)
    leases, cells = dict(store.state.leases), store.window.cells.copy()
    calls: dict[str, Callable[[], object]] = {
        "acquire": lambda: store.acquire("b", 10),
        "observe": lambda: admission.observe(store.state, store.offered, now_ms=store.now_ms),
    }
    calls[call]()
    assert store.state.leases == leases
    assert store.window.cells == cells
