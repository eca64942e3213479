"""W3C Trace Context, as the standard's own tests have it."""

import pytest

from gateway.wire.traceparent import RemoteSpan, read_traceparent, traceparent

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
REMOTE = RemoteSpan(int(TRACE, 16), int(SPAN, 16))


@pytest.mark.parametrize(
    "value",
    [
        f"00-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-00",
        f"00-{TRACE}-{SPAN}-ff",
        f" \t00-{TRACE}-{SPAN}-01 ",
        f"01-{TRACE}-{SPAN}-01",
        f"cc-{TRACE}-{SPAN}-01-what-the-future-will-be-like",
    ],
)
def test_what_is_well_formed_is_read(value: str) -> None:
    """Whatever its flags, and of a newer version what is known of it."""
    assert read_traceparent(value.encode()) == REMOTE


@pytest.mark.parametrize(
    "value",
    [
        "",
        "00",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-1",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE}-{SPAN}-01-",
        f"cc-{TRACE}-{SPAN}-01.more",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE[1:]}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}-0x",
        f"00-{TRACE}-{SPAN}-01,00-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01\n",
        "\xe9" * 55,
    ],
)
def test_what_is_not_is_no_parent(value: str) -> None:
    """It is as if nothing had been sent: a trace of our own begins."""
    assert read_traceparent(value.encode("latin-1")) is None


def test_no_header_is_no_parent() -> None:
    """As of nearly every client."""
    assert read_traceparent(None) is None


@pytest.mark.parametrize(("sampled", "flags"), [(True, "01"), (False, "00")])
def test_what_is_told_is_what_the_standard_wants(sampled: bool, flags: str) -> None:
    """Of fixed length also where an id begins with zeros."""
    told = traceparent(REMOTE.trace_id, 7, sampled=sampled)
    assert told == f"00-{TRACE}-0000000000000007-{flags}"
    assert read_traceparent(told.encode()) == RemoteSpan(REMOTE.trace_id, 7)
