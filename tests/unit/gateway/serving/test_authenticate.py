import hashlib
import ipaddress

import pytest
from memory_ports import START_MS, MemoryDirectory
from tenant_examples import SECRET, a_key, a_model, a_tenant

from gateway.domain.tenant import ApiKey, RequestClass
from gateway.errors import InvalidApiKey, ModelNotFound, Overloaded, PermissionDenied, WeirError
from gateway.serving.authenticate import (
    Caller,
    authenticate,
    request_class,
    usable_model,
    usable_models,
)

BEARER = b"Bearer " + SECRET.encode()


def ask(
    directory: MemoryDirectory, header: bytes | None = BEARER, client_ip: str | None = "10.0.0.7"
) -> Caller:
    headers = {} if header is None else {b"authorization": header}
    return authenticate(
        headers,
        client_ip,
        directory,
        now_ms=START_MS,
        directory_stale_ms_max=3_600_000,
        stores_unseen_ms_max=60_000,
    )


def with_key(key: ApiKey) -> MemoryDirectory:
    directory = MemoryDirectory()
    directory.keys = [key]
    return directory


@pytest.mark.parametrize("header", [BEARER, b"bearer " + SECRET.encode(), b"  " + BEARER + b" "])
def test_a_key_is_known_by_its_digest(header: bytes) -> None:
    """The secret itself is stored nowhere."""
    caller = ask(MemoryDirectory(), header)
    assert (caller.tenant.id, caller.key.id) == ("acme", "key-1")
    assert caller.key.digest == hashlib.sha256(SECRET.encode()).digest()


@pytest.mark.parametrize(
    "header", [None, b"", b"Bearer", b"Bearer  ", b"Basic eDp5", SECRET.encode(), b"Bearer nope"]
)
def test_anything_else_is_401(header: bytes | None) -> None:
    """No scheme, another one, no key, a wrong key; the key given is never repeated."""
    with pytest.raises(InvalidApiKey) as caught:
        ask(MemoryDirectory(), header)
    assert SECRET not in caught.value.message
    assert "nope" not in caught.value.message


@pytest.mark.parametrize(
    "key",
    [
        a_key(revoked_at_ms=START_MS),
        a_key(expires_at_ms=START_MS),
        a_key(expires_at_ms=START_MS - 1),
        a_key(tenant_id="gone"),
    ],
)
def test_a_key_that_is_over_is_401(key: ApiKey) -> None:
    """B07, B09: revoked, expired (at the very instant), or without its tenant."""
    with pytest.raises(InvalidApiKey):
        ask(with_key(key))


def test_a_key_lives_until_it_expires() -> None:
    """B09: within the grace of a rotation the old one still works."""
    assert ask(with_key(a_key(expires_at_ms=START_MS + 1, rotated_to="key-2"))).key.id == "key-1"


def test_a_suspended_tenant_is_401() -> None:
    """All its keys stop with it."""
    directory = MemoryDirectory()
    directory.one_tenant = a_tenant(suspended=True)
    with pytest.raises(InvalidApiKey):
        ask(directory)


@pytest.mark.parametrize(
    ("age", "bound_ms"), [("age_ms", 3_600_000), ("revocations_age_ms", 60_000)]
)
def test_a_directory_too_old_is_not_believed(age: str, bound_ms: int) -> None:
    """DESIGN 10: Postgres unseen for an hour, or both stores for a minute: a revocation could be
    missed; up to the bound keys work from memory."""
    directory = MemoryDirectory()
    setattr(directory, age, bound_ms)
    assert ask(directory)
    setattr(directory, age, bound_ms + 1)
    with pytest.raises(Overloaded) as caught:
        ask(directory)
    assert caught.value.code == "admission_unavailable"


@pytest.mark.parametrize(
    ("client_ip", "allowed"),
    [
        ("10.0.0.7", True),
        ("10.1.0.7", False),
        ("::ffff:10.0.0.7", True),
        ("2001:db8::1", True),
        ("2001:db9::1", False),
        ("fe80::1%eth0", False),
        (None, False),
        ("", False),
        ("somewhere", False),
    ],
)
def test_a_key_may_be_bound_to_networks(client_ip: str | None, allowed: bool) -> None:
    """403 elsewhere, also where the peer's address is unknown or none."""
    directory = with_key(a_key(ip_allow=("10.0.0.0/24", "2001:db8::/32")))
    if allowed:
        assert ask(directory, client_ip=client_ip)
        return
    with pytest.raises(PermissionDenied) as caught:
        ask(directory, client_ip=client_ip)
    assert caught.value.code == "ip_not_allowed"


@pytest.mark.parametrize(
    ("client_ip", "allowed"),
    [
        ("10.0.0.0", True),
        ("10.0.3.255", True),
        ("10.0.4.0", False),
        ("10.0.7.255", False),
        ("10.0.8.1", True),
        ("10.0.8.2", False),
        ("0.0.0.1", False),
        ("255.255.255.255", False),
        ("::a00:801", False),
        ("::5", True),
    ],
)
def test_networks_hold_in_any_order_and_within_each_other(client_ip: str, allowed: bool) -> None:
    """Their first and last addresses, neighbours, one inside another; a number of one version of IP
    is not the other's."""
    networks = ("10.0.8.1/32", "10.0.2.0/23", "::5/128", "10.0.0.0/23", "10.0.1.7/32")
    directory = with_key(a_key(ip_allow=networks))
    if allowed:
        assert ask(directory, client_ip=client_ip)
        return
    with pytest.raises(PermissionDenied):
        ask(directory, client_ip=client_ip)


def test_networks_are_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred networks, on the event loop, at every request: only the first pays for parsing."""
    parsed: list[str] = []
    parse = ipaddress.ip_network

    def counted(text: str, *, strict: bool) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        parsed.append(text)
        return parse(text, strict=strict)

    monkeypatch.setattr(ipaddress, "ip_network", counted)
    networks = tuple(f"192.0.2.{each}/32" for each in range(100))
    for _ in range(3):
        assert ask(with_key(a_key(ip_allow=networks)), client_ip="192.0.2.99")
    assert len(parsed) == 100


def test_models_are_those_of_the_key() -> None:
    """404 for what does not exist, 403 for what the key may not use; both name the field."""
    directory = with_key(a_key(models=("m",)))
    directory.all_models = [a_model(), a_model(id="other")]
    caller = ask(directory)
    assert [model.id for model in usable_models(caller, directory)] == ["m"]
    assert usable_model(caller, "m", directory).id == "m"
    errors: list[WeirError] = []
    for name in ("other", "missing", "x" * 200, "line\nend"):
        with pytest.raises((ModelNotFound, PermissionDenied)) as caught:
            usable_model(caller, name, directory)
        errors.append(caught.value)
    assert [error.status for error in errors] == [403, 404, 404, 404]
    assert {error.param for error in errors} == {"model"}
    assert "\n" not in errors[3].message
    assert "x" * 200 not in errors[2].message


@pytest.mark.parametrize(
    ("highest", "asked_batch", "expected"),
    [
        (RequestClass.INTERACTIVE, False, RequestClass.INTERACTIVE),
        (RequestClass.INTERACTIVE, True, RequestClass.BATCH),
        (RequestClass.BATCH, False, RequestClass.BATCH),
        (RequestClass.BATCH, True, RequestClass.BATCH),
    ],
)
def test_a_request_can_only_go_down(
    highest: RequestClass, asked_batch: bool, expected: RequestClass
) -> None:
    """A batch key never becomes interactive."""
    caller = Caller(a_tenant(), a_key(request_class=highest))
    assert request_class(caller, asked_batch=asked_batch) is expected
