"""What a stream must be for any SDK, for both of them."""

from sdk.failures import once
from sdk.seen import Caller
from sdk.systems import KEEPALIVE_MS, STALL_TIMEOUT_MS, call, fault
from weir_dev import WeirDev


def assert_reads_over_comments(system: WeirDev, caller: Caller) -> None:
    """S16, S18: comments come before the first token; the SDK reads the whole stream, and nothing
    of them."""
    delay_ms = 3 * KEEPALIVE_MS // 2
    assert KEEPALIVE_MS < delay_ms < STALL_TIMEOUT_MS
    asked = call(system, stream=True, max_tokens=1)
    with fault(system, kind="slow", delay_ms=delay_ms):
        raw = system.post({**asked.fields, "temperature": 0})
    assert raw.raw.startswith(b":"), "no comment was sent"
    with fault(system, kind="slow", delay_ms=delay_ms):
        seen = caller(asked)
    assert seen.error is None
    assert seen.elapsed_s * 1000 > KEEPALIVE_MS
    assert seen.text() == raw.text
    assert seen.finish() == "length"
    assert seen.usages == []


async def assert_row_is_complete(system: WeirDev, caller: Caller) -> None:
    """S01, S22: a stream without `include_usage` shows the client no usage; the row has all of it,
    as the engine counted."""
    seen = caller(call(system, stream=True, max_tokens=8))
    assert seen.usages == []
    assert all(chunk["choices"] for chunk in seen.answers)
    row = await system.record(seen.headers["x-request-id"])
    entry = system.ledger()[seen.headers["x-request-id"].replace("-", "")]
    counted = (row["prompt_tokens"], row["output_tokens"])
    assert counted == (entry["prompt_tokens"], entry["completion_tokens"])
    assert row["output_tokens"] == 8
    assert (row["usage_source"], row["outcome"]) == ("engine_final", "completed")


async def assert_class(system: WeirDev, caller: Caller) -> None:
    """`service_tier="flex"` and `x-weir-class` ask for batch, and the record says so."""
    for fields, expected in (
        ({"service_tier": "flex"}, "batch"),
        ({"extra_headers": {"x-weir-class": "batch"}}, "batch"),
        ({}, "interactive"),
    ):
        seen = caller(call(system, **fields))
        assert (await system.record(seen.headers["x-request-id"]))["class"] == expected


def assert_limit_headers(system: WeirDev, caller: Caller) -> None:
    """S21: the refusal's headers are OpenAI's, the reset a duration."""
    system.set_limits(rpm=1, tpm=1000)
    once(system, lambda: system.chat(max_tokens=8).status == 429, call(system))
    seen = caller(call(system))
    assert seen.error is not None
    assert set(seen.error) >= {"message", "type", "param", "code"}
    assert seen.error["code"] == "rate_limit_exceeded"
    assert seen.headers["x-ratelimit-limit-requests"] == "1"
    assert seen.headers["x-ratelimit-remaining-requests"] == "0"
    # The window forgets in whole seconds.
    assert 0 < _seconds(seen.headers["x-ratelimit-reset-requests"]) <= 61
    assert int(seen.headers["x-ratelimit-limit-tokens"]) == 1000


def _seconds(duration: str) -> float:
    """OpenAI's durations: `1s`, `6m0s`, `20ms`."""
    units = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
    total, number, rest = 0.0, "", duration
    while rest:
        number = rest[: len(rest) - len(rest.lstrip("0123456789."))]
        rest = rest[len(number) :]
        unit = next(unit for unit in units if rest.startswith(unit))
        total, rest = total + float(number) * units[unit], rest[len(unit) :]
    return total
