"""URLs of one server, of Sentinels and of a cluster; a malformed one never shows its password."""

import ssl

import pytest

from gateway.adapters.redis import connect_redis
from gateway.adapters.redis_url import Kind, parse_redis_url
from gateway.settings import SettingsError


@pytest.mark.parametrize(
    ("url", "kind", "nodes", "database"),
    [
        ("redis://h", Kind.SINGLE, [("h", 6379)], 0),
        ("redis://u:p%40w@h:1/2", Kind.SINGLE, [("h", 1)], 2),
        ("redis://h?username=u&password=p%40w&db=3", Kind.SINGLE, [("h", 6379)], 3),
        ("redis://u:p%40w@[::1]:7", Kind.SINGLE, [("::1", 7)], 0),
        ("redis+sentinel://u:p%40w@a:1,b,[::1]:3/weir", Kind.SENTINEL,
         [("a", 1), ("b", 26379), ("::1", 3)], 0),
        ("redis+sentinel://a/weir/4", Kind.SENTINEL, [("a", 26379)], 4),
        ("redis+cluster://u:p%40w@a:1,b:2", Kind.CLUSTER, [("a", 1), ("b", 2)], 0),
        ("redis+cluster://a/0", Kind.CLUSTER, [("a", 6379)], 0),
    ],
)  # fmt: skip
def test_what_a_url_says(url: str, kind: Kind, nodes: list[tuple[str, int]], database: int) -> None:
    """Kind, places and database; user and password where they are given."""
    address = parse_redis_url(url)
    assert (address.kind, list(address.nodes), address.login.database) == (kind, nodes, database)
    given = "p%40w" in url
    assert address.login.password == ("p@w" if given else None)
    assert address.login.username == ("u" if given else None)
    assert address.login.tls is None
    assert "p@w" not in repr(address)


def test_a_socket() -> None:
    """`unix://` with a database and a password."""
    address = parse_redis_url("unix://u:pw@/run/redis.sock?db=3")
    assert (address.path, address.login.database) == ("/run/redis.sock", 3)
    assert address.login.password == "pw"


def test_sentinels_have_a_service_and_a_login_of_their_own() -> None:
    """The password before the hosts is the servers'."""
    address = parse_redis_url("redis+sentinel://:servers@a:1/weir/0?sentinel_password=own")
    assert address.service == "weir"
    assert (address.login.password, address.sentinel_login.password) == ("servers", "own")
    assert "own" not in repr(address)


@pytest.mark.parametrize("scheme", ["rediss", "rediss+sentinel", "rediss+cluster"])
def test_tls_checks_certificates_unless_told_otherwise(scheme: str) -> None:
    """`rediss` in all three."""
    strict = parse_redis_url(f"{scheme}://a:1/{'weir' if 'sentinel' in scheme else ''}")
    assert strict.login.tls is not None
    assert strict.login.tls.verify_mode is ssl.CERT_REQUIRED
    assert strict.login.tls.check_hostname
    loose = parse_redis_url(
        f"{scheme}://a:1/{'weir' if 'sentinel' in scheme else ''}"
        "?ssl_cert_reqs=none&ssl_check_hostname=false"
    )
    assert loose.login.tls is not None
    assert loose.login.tls.verify_mode is ssl.CERT_NONE


@pytest.mark.parametrize(
    "url",
    [
        "",
        "hunter2",
        "redi://:hunter2@h/0",
        "http://:hunter2@h",
        "unix://",
        "redis://u:hunter2@h:port",
        "redis://u:hunter2@h:99999",
        "redis://u:hunter2@h:0",
        "redis://h/hunter2",
        "redis://[hunter2",
        "redis://u:hunter2@a,b",
        "redis+sentinel://u:hunter2@a:1",
        "redis+sentinel://u:hunter2@a:1/weir/hunter2",
        "redis+cluster://u:hunter2@a:1/1",
        "redis+cluster://u:hunter2@a:1,b:x",
        "redis+other://u:hunter2@a",
        "unix+cluster://u:hunter2@a",
        "rediss://u:hunter2@h?ssl_ca_certs=/no/such/hunter2",
    ],
)
def test_a_malformed_url_shows_nothing_of_itself(url: str) -> None:
    """A SettingsError of one line, without password, and without the cause that quotes it."""
    with pytest.raises(SettingsError) as caught:
        connect_redis(url, timeout_ms=100)
    assert "hunter2" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.__suppress_context__
