"""Which addresses mean one server."""

import pytest
from tenant_examples import a_worker

from gateway.domain.origin import at_no_provider, name_sharing, origin_of

ONE_SERVER = [
    ("http://ai.example", "https://AI.Example:80/v1"),
    ("https://ai.example/v1", "http://ai.example:443"),
    ("https://ai.example", "https://ai.example:443/other/v1?x=1"),
    ("http://127.0.0.1:9", "http://localhost:9/v1"),
    ("http://[::1]:9", "http://[0:0:0:0:0:0:0:1]:9"),
    ("http://[::ffff:10.0.0.1]:9", "http://10.0.0.1:9"),
    ("http://ai.example.:9", "http://ai.example:9"),
]
OTHER_SERVERS = [
    ("http://ai.example", "https://ai.example"),
    ("http://ai.example:1", "http://ai.example:2"),
    ("http://ai.example:1", "http://a.ai.example:1"),
    ("http://127.0.0.1:9", "http://127.0.0.2:9"),
]


@pytest.mark.parametrize(("one", "other"), ONE_SERVER)
def test_spellings_of_one_server_are_one(one: str, other: str) -> None:
    """Host without regard to case, ports filled in, scheme and path their own affair."""
    assert origin_of(one) == origin_of(other) is not None


@pytest.mark.parametrize(("one", "other"), OTHER_SERVERS)
def test_other_servers_are_others(one: str, other: str) -> None:
    """Host or port differs."""
    assert origin_of(one) != origin_of(other)


@pytest.mark.parametrize(
    "url", ["", "ai.example", "http://", "http://[::1", "http://h:x", "ftp://h"]
)
def test_what_is_no_address_is_no_server(url: str) -> None:
    """And shares one with nothing."""
    assert origin_of(url) is None
    assert name_sharing(url, {"other": url}) is None


def test_the_first_by_name_that_shares_a_server_is_named() -> None:
    """Whatever the order in which they are told."""
    others = {"c": "http://h:1/v1", "b": "http://H:1", "a": "http://h:2"}
    assert name_sharing("http://h:1", others) == "b"
    assert name_sharing("http://h:3", others) is None


def test_a_worker_at_a_providers_server_is_left_out() -> None:
    """And no other, also where an address is none."""
    good, bad = a_worker("good", url="none"), a_worker("bad", url="http://AI.example:443")
    assert at_no_provider([good, bad], ["none", "https://ai.example/v1"]) == {"good": good}
    assert at_no_provider([good, bad], []) == {"good": good, "bad": bad}
