"""Limits of many tenants in one change."""

import pytest

from gateway.administration import Administration, AuditFilters
from gateway.domain.tenant import Limits
from gateway.errors import NotFound, Unprocessable

ME = "cli:test"


@pytest.fixture(autouse=True)
async def tenants(administration: Administration) -> list[str]:
    """Fifty, t00 to t49, with one limit."""
    names = [f"t{number:02}" for number in range(50)]
    for name in names:
        await administration.create_tenant(ME, name, "T", Limits(rpm=5))
    return names


async def test_b11_fifty_limits_are_fifty_entries(
    administration: Administration, tenants: list[str]
) -> None:
    """B11: each with before, after and actor, all with the id of the one change."""
    wanted = [(name, {"tpm": 100 + number}) for number, name in enumerate(tenants)]
    done = await administration.put_many_limits("user:boss@weir.local", wanted)
    assert done.changed == tuple(tenants)
    page = await administration.list_audit(1000, filters=AuditFilters(change_id=done.id))
    assert [entry.subject_id for entry in reversed(page.items)] == tenants
    for number, entry in enumerate(reversed(page.items)):
        assert (entry.actor, entry.action) == ("user:boss@weir.local", "tenant.limits")
        assert entry.before is not None
        assert entry.after is not None
        assert (entry.before["rpm"], entry.before["tpm"]) == (5, None)
        assert (entry.after["rpm"], entry.after["tpm"]) == (None, 100 + number)
        assert entry.tenant_id == entry.subject_id
    assert (await administration.get_tenant_limits("t49")).tpm == 149


async def test_what_is_so_already_is_no_change(
    administration: Administration, tenants: list[str]
) -> None:
    """No entry, and no new version."""
    before = await administration.get_tenant("t00")
    done = await administration.put_many_limits(ME, [("t00", {"rpm": 5}), ("t01", {"rpm": 6})])
    assert done.changed == ("t01",)
    assert await administration.get_tenant("t00") == before
    page = await administration.list_audit(filters=AuditFilters(change_id=done.id))
    assert [entry.subject_id for entry in page.items] == ["t01"]


@pytest.mark.parametrize(
    ("last", "param"),
    [
        (("t02", {"tpm": -1}), "changes[2].limits.tpm"),
        (("t02", {"models": {"x": {"tpm": 1}}}), "changes[2].limits.models.x"),
        (("t02", {"monthly_budget": "5.00"}), "changes[2].limits.monthly_budget"),
        (("nobody", {}), "changes[2].tenant_id"),
        (("t01", {}), "changes[2].tenant_id"),
    ],
)
async def test_one_that_is_refused_leaves_all(
    administration: Administration, last: tuple[str, dict[str, object]], param: str
) -> None:
    """The item and its field are named."""
    head = (await administration.list_audit(1)).items
    with pytest.raises(Unprocessable) as refused:
        await administration.put_many_limits(ME, [("t00", {"rpm": 6}), ("t01", {"rpm": 6}), last])
    assert refused.value.param == param
    assert refused.value.message.startswith(f"{param}:")
    assert (await administration.get_tenant_limits("t00")).rpm == 5
    assert (await administration.list_audit(1)).items == head


@pytest.mark.parametrize("count", [0, 1001])
async def test_so_many_and_no_more(administration: Administration, count: int) -> None:
    """One to a thousand."""
    with pytest.raises(Unprocessable, match="1 to 1000 tenants"):
        await administration.put_many_limits(ME, [(f"x{n}", {}) for n in range(count)])


async def test_a_field_of_many_is_changed_and_the_others_stay(
    administration: Administration, tenants: list[str]
) -> None:
    """Of those that are named, or of all; an unknown one is refused before any is written."""
    done = await administration.change_many_limits(ME, ["t03", "t04", "t03"], {"tpm": 7})
    assert done.changed == ("t03", "t04")
    assert (await administration.get_tenant("t03")).limits == Limits(rpm=5, tpm=7)
    done = await administration.change_many_limits(ME, None, {"tpm": 7})
    assert done.changed == tuple(name for name in tenants if name not in ("t03", "t04"))
    with pytest.raises(NotFound, match="there is no tenant nobody"):
        await administration.change_many_limits(ME, ["t00", "nobody"], {"tpm": 8})
    with pytest.raises(Unprocessable, match="t00: tpm: "):
        await administration.change_many_limits(ME, ["t00", "t01"], {"tpm": -1})
    assert (await administration.get_tenant_limits("t00")).tpm == 7
