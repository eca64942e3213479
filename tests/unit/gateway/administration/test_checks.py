"""What names, networks, zones and addresses may be."""

import zoneinfo
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest

from gateway.administration import checks
from gateway.errors import Unprocessable

Check = Callable[[str], object]


@pytest.mark.parametrize(
    ("check", "good"),
    [
        (checks.check_tenant_id, "a"),
        (checks.check_tenant_id, "0-a_b"),
        (checks.check_tenant_id, "a" * 63),
        (checks.check_name, "Straße & Söhne"),
        (checks.check_currency, "KWD"),
        (checks.check_time_zone, "Asia/Kathmandu"),
        (checks.check_time_zone, "UTC"),
        (checks.check_time_zone, "America/Argentina/Buenos_Aires"),
        (checks.check_time_zone, "EST5EDT"),
        (checks.check_time_zone, "Etc/GMT+12"),
        (checks.check_token_name, "ci: deploy.sh"),
        (checks.check_email, "a.b+c@weir.local"),
        (checks.check_email, "root@localhost"),
        (checks.check_password, "twelve chars"),
    ],
)
def test_good_values_come_back(check: Check, good: str) -> None:
    """As they were."""
    assert check(good) == good


@pytest.mark.parametrize(
    ("check", "bad", "param"),
    [
        (checks.check_tenant_id, "", "id"),
        (checks.check_tenant_id, "a" * 64, "id"),
        (checks.check_tenant_id, "a{b}", "id"),
        (checks.check_tenant_id, "a\n", "id"),
        (checks.check_tenant_id, "_a", "id"),
        (checks.check_tenant_id, "ä", "id"),
        (checks.check_name, "a\tb", "name"),
        (checks.check_name, "a" * 201, "name"),
        (checks.check_currency, "XXX", "currency"),
        (checks.check_time_zone, "", "time_zone"),
        (checks.check_time_zone, "/etc/localtime", "time_zone"),
        (checks.check_time_zone, "Europe/Berlin\x00", "time_zone"),
        (checks.check_time_zone, "Europe", "time_zone"),
        (checks.check_time_zone, "localtime", "time_zone"),
        (checks.check_time_zone, "posixrules", "time_zone"),
        (checks.check_time_zone, "Factory", "time_zone"),
        (checks.check_time_zone, "right/Europe/Berlin", "time_zone"),
        (checks.check_time_zone, "posix/Europe/Berlin", "time_zone"),
        (checks.check_time_zone, "europe/berlin", "time_zone"),
        (checks.check_time_zone, "utc", "time_zone"),
        (checks.check_time_zone, "Europe//Berlin", "time_zone"),
        (checks.check_time_zone, "Asia/../UTC", "time_zone"),
        (checks.check_time_zone, "UTC ", "time_zone"),
        (checks.check_token_name, "ci/deploy", "name"),
        (checks.check_token_name, "..", "name"),
        (checks.check_token_name, " . ", "name"),
        (checks.check_token_name, "", "name"),
        (checks.check_email, "a@", "email"),
        (checks.check_email, "@b.c", "email"),
        (checks.check_email, "a@b..c", "email"),
        (checks.check_email, "a" * 250 + "@b.c", "email"),
        (checks.check_password, "eleven char", "password"),
    ],
)
def test_bad_values_name_their_field(check: Check, bad: str, param: str) -> None:
    """Each refusal says which field and what it must be."""
    with pytest.raises(Unprocessable) as refused:
        check(bad)
    assert refused.value.param == param
    assert refused.value.message.startswith(f"{param}: must be ")


def test_time_zones_do_not_depend_on_the_host(
    tmp_path: Path,
) -> None:
    """What a host calls a zone is none; each name that is taken can be reckoned with on a host
    without any."""
    (tmp_path / "localtime").write_bytes(files("tzdata.zoneinfo").joinpath("UTC").read_bytes())
    zoneinfo.reset_tzpath(to=[str(tmp_path)])
    try:
        assert zoneinfo.ZoneInfo.no_cache("localtime")
        with pytest.raises(Unprocessable):
            checks.check_time_zone("localtime")
        names = files("tzdata").joinpath("zones").read_text().split()
        for name in set(names) - {"Factory"}:
            assert zoneinfo.ZoneInfo.no_cache(checks.check_time_zone(name))
    finally:
        zoneinfo.reset_tzpath()


def test_networks_become_canonical() -> None:
    """A single address is its own network; None allows all; host bits are refused."""
    assert checks.check_networks(None) is None
    assert checks.check_networks(["10.0.0.0/8", "192.0.2.1", "2001:DB8::/32"]) == [
        "10.0.0.0/8",
        "192.0.2.1/32",
        "2001:db8::/32",
    ]
    for bad in ([], ["10.0.0.1/8"], ["10.0.0.0/33"], [""], ["::/129"], ["fe80::%eth0/64"]):
        with pytest.raises(Unprocessable):
            checks.check_networks(bad)
    with pytest.raises(Unprocessable, match=r"; '10\.0\.0\.1/8' is none"):
        checks.check_networks(["10.0.0.0/8", "10.0.0.1/8"])


def test_a_key_has_so_many_networks_at_most() -> None:
    """Each of its requests looks through them."""
    networks = [f"10.0.0.{each}" for each in range(checks.NETWORKS_MAX)]
    assert len(checks.check_networks(networks) or []) == 100
    with pytest.raises(Unprocessable, match="ip_allow: must be null, or 1 to 100 networks"):
        checks.check_networks([*networks, "10.0.1.0"])


def test_an_expiry_lies_in_the_future() -> None:
    """Not now, and not beyond what a date can say."""
    assert checks.check_expiry(None, now_ms=5) is None
    assert checks.check_expiry(6, now_ms=5) == 6
    for bad in (5, 0, -1, checks.EXPIRY_MAX_MS + 1):
        with pytest.raises(Unprocessable):
            checks.check_expiry(bad, now_ms=5)
