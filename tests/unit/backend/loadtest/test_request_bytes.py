"""Requests are made ahead, whole and in order."""

import json

import pytest
from made_up_runs import outcome

from backend.loadtest.chat_body import chat_bodies
from backend.loadtest.http_connection import address_of
from backend.loadtest.plan import PlannedRequest, TrafficClass
from backend.loadtest.request_bytes import RequestBytes


def planned(number: int, traffic_class: TrafficClass = "interactive") -> PlannedRequest:
    return outcome(number, output_tokens=7, traffic_class=traffic_class).planned


class Bodies:
    """Makes a body of ten bytes, and counts."""

    made = 0

    def __call__(self, request: PlannedRequest) -> bytes:
        self.made += 1
        return b"%010d" % request.number


def test_a_request_is_whole() -> None:
    """Head, key and body; the URL's own path stays in front."""
    address = address_of("http://user:pw@localhost:8080/base/v1/")
    requests = [planned(3)]
    made = RequestBytes(requests, address, body_of=Bodies(), api_key_of=lambda _: "sk-x")
    assert made.take() == (
        b"POST /base/v1/chat/completions HTTP/1.1\r\nhost: localhost:8080\r\n"
        b"content-type: application/json\r\naccept: text/event-stream\r\ncontent-length: 10\r\n"
        b"authorization: Bearer sk-x\r\n\r\n0000000003"
    )


def test_as_many_as_fit_are_made_before_the_run() -> None:
    """The others one by one as those go out, and in any case when they are taken."""
    bodies = Bodies()
    requests = [planned(n) for n in range(6)]
    address = address_of("http://h")
    size = len(
        RequestBytes(requests[:1], address, body_of=Bodies(), api_key_of=lambda _: None).take()
    )
    made = RequestBytes(
        requests, address, body_of=bodies, api_key_of=lambda _: None, ahead_bytes_max=2 * size
    )
    assert bodies.made == 2
    assert not made.make_one()
    assert made.take().endswith(b"\r\n\r\n0000000000")
    assert made.make_one()
    assert bodies.made == 3
    assert [made.take()[-1:] for _ in range(5)] == [b"1", b"2", b"3", b"4", b"5"]
    with pytest.raises(IndexError):
        made.take()


@pytest.mark.parametrize("key", ["a\r\nx-evil: 1", "schlüssel"])
def test_a_key_that_no_header_can_carry(key: str) -> None:
    """It is refused before the run, and not shown."""
    with pytest.raises(ValueError, match="no header can carry") as raised:
        RequestBytes(
            [planned(0)], address_of("http://h"), body_of=Bodies(), api_key_of=lambda _: key
        )
    assert key not in str(raised.value)


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://h", "http://", "http://h:port"])
def test_urls_that_are_none(url: str) -> None:
    """They are refused before anything is sent."""
    with pytest.raises(ValueError, match=r"URL|[Pp]ort"):
        address_of(url)


@pytest.mark.parametrize("min_tokens", [True, False])
@pytest.mark.parametrize("flex", [True, False])
def test_bodies_ask_for_what_is_planned(*, min_tokens: bool, flex: bool) -> None:
    """As a stream that reports its usage; the batch class only where the target knows it."""
    body_of = chat_bodies(
        "m", lambda _: [{"role": "user", "content": "x"}], min_tokens=min_tokens, flex=flex
    )
    body = json.loads(body_of(planned(0, "batch")))
    assert body.pop("min_tokens", None) == (7 if min_tokens else None)
    assert body.pop("service_tier", None) == ("flex" if flex else None)
    assert body == {
        "model": "m",
        "messages": [{"role": "user", "content": "x"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 7,
    }
    assert "service_tier" not in json.loads(body_of(planned(0)))
