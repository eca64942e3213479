"""What an engine's parser would fail on is refused before."""

import json

import pytest

from gateway.errors import InvalidRequest
from gateway.wire.request import read_request
from gateway.wire.shape import DIGITS_MAX, NESTING_MAX, refuse_unreadable


def nested(depth: int, opened: str = "[", closed: str = "]") -> bytes:
    return (opened * depth + "1" + closed * depth).encode()


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": %b}' % (b"9" * DIGITS_MAX),
        b'{"a": "%b"}' % (b"9" * (DIGITS_MAX + 1)),
        b'{"a": 0.%b}' % (b"9" * (DIGITS_MAX + 1)),
        nested(NESTING_MAX),
        json.dumps({"text": "[{" * 5000}).encode(),
        json.dumps([{"a": [i]} for i in range(500)]).encode(),
    ],
)
def test_what_every_parser_reads_passes(body: bytes) -> None:
    """Digits and brackets within texts count for nothing, nor does breadth."""
    json.loads(body)
    refuse_unreadable(body)


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": %b}' % (b"9" * (DIGITS_MAX + 1)),
        b'{"a": -%b}' % (b"1" * 100_000),
        nested(NESTING_MAX + 1),
        nested(900, '{"a":', "}"),
    ],
)
def test_what_a_parser_may_fail_on_is_refused(body: bytes) -> None:
    """As the client's error, not the worker's."""
    with pytest.raises(InvalidRequest):
        refuse_unreadable(body)


@pytest.mark.parametrize("value", [b"9" * 5000, nested(500)])
def test_it_is_looked_for_in_every_open_field(value: bytes) -> None:
    """Which go upstream as they came."""
    body = b'{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"a":%b}]}' % value
    with pytest.raises(InvalidRequest):
        read_request("chat", body, {})
