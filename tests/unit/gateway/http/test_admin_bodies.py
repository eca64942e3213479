"""Bodies of admin requests are read strictly."""

from datetime import UTC, datetime
from typing import Any

import pytest
from litestar import Request
from litestar.testing import RequestFactory
from msgspec import UNSET

from gateway.errors import InvalidRequest, Unprocessable
from gateway.http.admin_bodies import (
    DrainBody,
    KeyBody,
    TenantChanges,
    instant_ms,
    read_body,
    unless_absent,
)


def a_request(raw: bytes) -> Request[Any, Any, Any]:
    """A request with that body."""
    request: Request[Any, Any, Any] = RequestFactory().post("/")
    request._body = raw
    return request


@pytest.mark.parametrize("raw", [b"", b" ", b"{", b"\xff", b'{"name": "\xff"}', b"nil", b"{}{}"])
async def test_what_is_not_json_is_400(raw: bytes) -> None:
    """Whatever is wrong with it."""
    with pytest.raises(InvalidRequest):
        await read_body(a_request(raw), KeyBody)


async def test_deep_nesting_is_400() -> None:
    """The parser's own limit is an answer, not a crash."""
    with pytest.raises(InvalidRequest):
        await read_body(a_request(b"[" * 100_000), list[Any])


@pytest.mark.parametrize(
    ("raw", "param"),
    [
        (b"[]", None),
        (b'{"class": "batch"}', "name"),
        (b'{"name": "k", "class": "slow"}', "class"),
        (b'{"name": "k", "class": "batch", "request_class": "batch"}', "request_class"),
        (b'{"name": "k", "class": "batch", "models": [1]}', "models[0]"),
        (b'{"name": "k", "class": "batch", "expires_at": 5}', "expires_at"),
    ],
)
async def test_json_of_another_shape_is_422(raw: bytes, param: str | None) -> None:
    """Naming the field as the client spelt it."""
    with pytest.raises(Unprocessable) as refused:
        await read_body(a_request(raw), KeyBody)
    assert refused.value.param == param


async def test_no_body_may_stand_for_defaults() -> None:
    """Only where the route says so."""
    assert (await read_body(a_request(b""), DrainBody, empty=DrainBody())).draining
    sent = a_request(b'{"draining": false}')
    assert not (await read_body(sent, DrainBody, empty=DrainBody())).draining


async def test_absent_is_not_null() -> None:
    """A field that was not sent changes nothing; null is not a name."""
    changes = await read_body(a_request(b'{"suspended": true}'), TenantChanges)
    assert changes.name is UNSET
    assert (unless_absent(changes.name), unless_absent(changes.suspended)) == (None, True)
    with pytest.raises(Unprocessable):
        await read_body(a_request(b'{"name": null}'), TenantChanges)


def test_a_time_without_offset_is_refused() -> None:
    """Whose midnight it would be is anybody's guess."""
    assert instant_ms(None, field="expires_at") is None
    assert instant_ms(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), field="expires_at") == 1000
    with pytest.raises(Unprocessable) as refused:
        instant_ms(datetime(1970, 1, 1), field="expires_at")  # noqa: DTZ001 - wrong on purpose
    assert refused.value.param == "expires_at"
