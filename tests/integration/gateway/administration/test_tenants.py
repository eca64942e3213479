"""Tenants: create, change, suspend, list."""

import pytest

from gateway.administration import Administration
from gateway.domain.tenant import BillingProfile, Limits
from gateway.errors import Conflict, NotFound, Unprocessable

ME = "cli:test"


async def test_a_tenant_is_created_as_given(administration: Administration) -> None:
    """Every field is stored and read back."""
    profile = BillingProfile(legal_name="Acme GmbH", address=("Weg 1", "Berlin"), country="DE")
    created = await administration.create_tenant(
        ME,
        "acme",
        " Acme ",
        Limits(max_sequences=8, tpm=60_000),
        currency="EUR",
        time_zone="Europe/Berlin",
        billing_profile=profile,
    )
    found = await administration.get_tenant("acme")
    assert found == created
    assert (found.name, found.currency, found.time_zone) == ("Acme", "EUR", "Europe/Berlin")
    assert found.billing_profile == profile
    assert (found.limits.max_sequences, found.limits.tpm) == (8, 60_000)


async def test_an_id_is_taken_once(administration: Administration) -> None:
    """A second tenant of the same id is a Conflict and changes nothing."""
    await administration.create_tenant(ME, "acme", "First")
    with pytest.raises(Conflict):
        await administration.create_tenant(ME, "acme", "Second")
    assert (await administration.get_tenant("acme")).name == "First"


REFUSED: list[tuple[dict[str, object], str]] = [
    ({"tenant_id": "Acme"}, "id"),
    ({"tenant_id": "a{b}"}, "id"),
    ({"tenant_id": ""}, "id"),
    ({"tenant_id": "-a"}, "id"),
    ({"tenant_id": "a" * 64}, "id"),
    ({"name": " "}, "name"),
    ({"name": "a\x00b"}, "name"),
    ({"currency": "ZZZ"}, "currency"),
    ({"currency": "usd"}, "currency"),
    ({"time_zone": "Mars/Olympus"}, "time_zone"),
    ({"time_zone": "../etc/passwd"}, "time_zone"),
    ({"limits": Limits(monthly_budget="5.00")}, "monthly_budget"),
    ({"limits": Limits(max_sequences=-1)}, "max_sequences"),
]


async def test_what_cannot_be_a_tenant_is_refused(
    administration: Administration,
) -> None:
    """Unprocessable names the field, and nothing is stored or audited."""
    for fields, param in REFUSED:
        wanted: dict[str, object] = {"tenant_id": "acme", "name": "Acme", **fields}
        with pytest.raises(Unprocessable) as refused:
            await administration.create_tenant(ME, **wanted)  # type: ignore[arg-type]  # on purpose
        assert refused.value.param == param
    assert (await administration.list_tenants()).items == []
    actions = [entry.action for entry in (await administration.list_audit()).items]
    assert actions == ["model.register"]


async def test_a_change_leaves_the_rest(administration: Administration) -> None:
    """Only what is given changes, and the audit log shows before and after."""
    await administration.create_tenant(ME, "acme", "Acme", Limits(tpm=5), currency="EUR")
    changed = await administration.update_tenant(ME, "acme", name="Acme Ltd")
    assert (changed.name, changed.currency, changed.limits.tpm) == ("Acme Ltd", "EUR", 5)
    entry = (await administration.list_audit(1)).items[0]
    assert (entry.actor, entry.action, entry.subject_id) == (ME, "tenant.update", "acme")
    assert entry.before is not None
    assert entry.after is not None
    assert (entry.before["name"], entry.after["name"]) == ("Acme", "Acme Ltd")


async def test_nothing_to_change_is_no_change(administration: Administration) -> None:
    """Suspending twice leaves one audit entry."""
    await administration.create_tenant(ME, "acme", "Acme")
    for _ in range(2):
        assert (await administration.update_tenant(ME, "acme", suspended=True)).suspended
    assert not (await administration.update_tenant(ME, "acme", suspended=False)).suspended
    actions = [entry.action for entry in (await administration.list_audit()).items]
    assert actions.count("tenant.update") == 2


async def test_an_unknown_tenant_is_not_found(administration: Administration) -> None:
    """NotFound from looking, changing and limiting."""
    with pytest.raises(NotFound):
        await administration.get_tenant("nobody")
    with pytest.raises(NotFound):
        await administration.update_tenant(ME, "nobody", name="X")
    with pytest.raises(NotFound):
        await administration.put_tenant_limits(ME, "nobody", Limits())


async def test_pages_hold_every_tenant_once(administration: Administration) -> None:
    """Following the cursors yields all, in order, also where the last page is full."""
    ids = [f"t{number:02}" for number in range(6)]
    for tenant_id in reversed(ids):
        await administration.create_tenant(ME, tenant_id, "T")
    found, cursor, pages = [], None, 0
    while True:
        page = await administration.list_tenants(2, cursor)
        found += [tenant.id for tenant in page.items]
        pages += 1
        cursor = page.next_cursor
        if cursor is None:
            break
    assert (found, pages) == (ids, 3)
