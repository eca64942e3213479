"""`docs/admission.md` says what the code does: its worked examples, its knobs, its names."""

import re
from pathlib import Path

import msgspec
from admission_store import Store, refused
from memory_ports import TTL_MS
from price_examples import a_price

from billing.domain.rating import cost_pico, most_pico
from gateway.domain import admission
from gateway.domain.admission import Demand, Granted, Refused
from gateway.domain.tenant import Limits, ModelLimits, TenantLimits
from gateway.serving.condition import WORDS
from gateway.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "admission.md").read_text()
MONTH = "2027-01"
CENT = 10**10
TIMED = re.compile(r"^\| 12:(\d\d):(\d\d)\.(\d{3}) \| (.+?) \| (.+?) \| (\d+) \|$", re.MULTILINE)
PAID = re.compile(r"^\| ([A-D](?:'s)? .+?) \| (.+?) \| (\d+) \| (\d+) \|$", re.MULTILINE)
KNOB = re.compile(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \| [^|]+ \|$", re.MULTILINE)


def test_the_example_of_a_window_is_what_happens() -> None:
    """Each row: what is asked or ends, the answer, and the use afterwards."""
    store = Store(Limits(tpm=1000))
    start_ms, rows = store.now_ms, TIMED.findall(PAGE)
    assert len(rows) == 10
    for minute, second, ms, what, answer, use in rows:
        store.now_ms = start_ms + (int(minute) * 60 + int(second)) * 1000 + int(ms)
        if asked := re.fullmatch(r"(\w) asks for (\d+)", what):
            decision = store.acquire(asked[1], int(asked[2]))
            if answer == "granted":
                assert isinstance(decision, Granted), what
            elif answer == "400, never":
                assert refused(decision).retry_after_ms is None
            else:
                assert answer == f"429, `retry-after-ms: {refused(decision).retry_after_ms}`"
        else:
            ended = re.fullmatch(r"(\w) ends, it used (\d+)", what)
            assert ended is not None, what
            before = store.tokens
            store.settle(ended[1], int(ended[2]))
            assert answer == f"{before - store.tokens} given back"
        assert store.tokens == int(use), what


def test_the_example_of_a_budget_is_what_happens() -> None:
    """The same of money, at the prices that the page names."""
    assert "price 10.00 for a million prompt tokens and 40.00 for a million output tokens" in PAGE
    assert "budget 0.12" in PAGE
    price = a_price(input_pico=10_000_000, output_pico=40_000_000)
    most = most_pico(price, prompt_tokens=1_000, output_tokens=1_000)
    assert most == 5 * CENT
    store = Store(Limits(monthly_budget="0.12"))
    begun = admission.begin_month(store.state, MONTH, now_ms=store.now_ms)
    assert begun is not None
    assert admission.finish_month(store.state, MONTH, begun.at_ms, {}, now_ms=store.now_ms)
    rows = PAID.findall(PAGE)
    assert len(rows) == 10
    for what, answer, spent, reserved in rows:
        name = what[0]
        if what.endswith(" asks"):
            demand = Demand(name, 1, 1, 1, most, MONTH)
            decision = admission.acquire(
                store.state, demand, store.offered, now_ms=store.now_ms, ttl_ms=TTL_MS
            )
            assert isinstance(decision, Granted if answer == "granted" else Refused), what
        elif tokens := re.search(r"(\d+) tokens", what):
            cost = cost_pico(
                price, prompt_tokens=1_000, cached_tokens=0, output_tokens=int(tokens[1])
            )
            settle(store, name, cost)
        else:
            others = {rid: le for rid, le in store.state.leases.items() if rid != name}
            store.now_ms += TTL_MS - 1
            admission.renew(store.state, others, now_ms=store.now_ms, ttl_ms=TTL_MS)
            store.now_ms += 1
        (use, *_) = admission.observe(store.state, store.offered, now_ms=store.now_ms, month=MONTH)
        assert (use.spent_pico, use.reserved_pico) == (int(spent) * CENT, int(reserved) * CENT)


def settle(store: Store, rid: str, cost: int) -> None:
    admission.settle(
        store.state, rid, actual_tokens=1, ran=True, now_ms=store.now_ms, actual_cost_pico=cost
    )


def test_every_knob_is_named_with_its_default() -> None:
    """All fields of limits, in their order; settings as they are read."""
    named = dict(KNOB.findall(PAGE))
    fields = msgspec.to_builtins(TenantLimits())
    of_a_key = msgspec.to_builtins(Limits())
    shown = {name: "null" if value is None else str(value) for name, value in fields.items()}
    for name in ("max_queued", "max_wait_ms"):
        shown[name] += "; of a key null"
        assert of_a_key[name] is None
    shown["models"] = "none"
    assert {name: default.strip() for name, default in named.items() if name in fields} == shown
    settings = [name for name in named if name.startswith("WEIR_")]
    assert set(settings) <= {"WEIR_" + name.upper() for name in Settings.__annotations__}
    assert "WEIR_REDIS_TIMEOUT_MS" in settings
    for name in settings:
        default = getattr(Settings, name.removeprefix("WEIR_").lower(), "–")
        assert named[name].strip() == str(default), name
    narrowed = list(ModelLimits.__struct_fields__)
    assert narrowed == ["max_sequences", "tpm", "rpm", *narrowed[3:]]
    assert (narrowed[3], narrowed[-1]) == ("monthly_budget", "max_output_tokens")


def test_metrics_and_words_are_those_of_the_code() -> None:
    """An alert on a name that nothing sets would never fire."""
    sources = "".join(path.read_text() for path in (ROOT / "gateway" / "telemetry").glob("*.py"))
    metrics = set(re.findall(r"\bweir_[a-z_]+\b", PAGE))
    known = {name.removesuffix("_total") for name in re.findall(r'"(weir_[a-z_]+)"', sources)}
    assert {name.removesuffix("_total") for name in metrics} <= known
    assert len(metrics) >= 8
    assert {"redis", "redis_empty", "directory"} <= set(WORDS)
    assert all(f"`{word}`" in PAGE for word in ("redis", "redis_empty", "directory"))
