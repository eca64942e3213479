"""The audit log, read in pages and by filters."""

from typing import Any

import pytest

from gateway.administration import Administration, AuditFilters
from gateway.errors import Unprocessable


async def test_the_latest_come_first_in_pages(administration: Administration) -> None:
    """Following the cursors yields every entry once."""
    for number in range(5):
        await administration.create_tenant("cli:test", f"t{number}", "T")
    first = await administration.list_audit(4)
    rest = await administration.list_audit(4, first.next_cursor)
    subjects = [entry.subject_id for entry in first.items + rest.items]
    assert subjects == ["t4", "t3", "t2", "t1", "t0", "m"]
    assert rest.next_cursor is None


async def test_filters_narrow(administration: Administration) -> None:
    """Each alone and all together."""
    await administration.create_tenant("cli:one", "acme", "Acme")
    await administration.update_tenant("cli:two", "acme", name="Acme Ltd")
    await administration.create_tenant("cli:two", "globex", "Globex")

    async def found(**wanted: Any) -> list[tuple[str, str]]:
        page = await administration.list_audit(filters=AuditFilters(**wanted))
        return [(entry.action, entry.subject_id) for entry in page.items]

    assert await found(actor="cli:one") == [("tenant.create", "acme")]
    assert await found(action="tenant.update") == [("tenant.update", "acme")]
    assert await found(subject_kind="model") == [("model.register", "m")]
    assert await found(subject_id="acme", actor="cli:two") == [("tenant.update", "acme")]
    assert await found(subject_id="nobody") == []


async def test_a_foreign_cursor_is_refused(administration: Administration) -> None:
    """Unprocessable, whatever it decodes to."""
    for cursor in ("", "%", "YWJj", "LTE", "MTIzNDU2Nzg5MDEyMzQ1Njc4OTA"):
        with pytest.raises(Unprocessable) as refused:
            await administration.list_audit(cursor=cursor)
        assert refused.value.param == "cursor"


async def test_pages_of_a_time_are_whole(administration: Administration) -> None:
    """Where a time is asked for, too, the cursors yield every entry of it once."""
    for number in range(7):
        await administration.create_tenant("cli:test", f"t{number}", "T")
    everything = (await administration.list_audit()).items
    since = AuditFilters(since_ms=everything[-1].at_ms, until_ms=everything[0].at_ms + 1)
    found, cursor = [], None
    while True:
        page = await administration.list_audit(3, cursor, since)
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            break
    assert found == everything
    later = AuditFilters(since_ms=everything[0].at_ms + 1)
    assert (await administration.list_audit(filters=later)).items == []


async def test_an_action_that_ends_with_a_star(administration: Administration) -> None:
    """Is all that begin so, with no other sign that stands for any."""
    await administration.create_tenant("cli:test", "acme", "Acme")
    await administration.update_tenant("cli:test", "acme", name="A")

    async def found(action: str) -> list[str]:
        page = await administration.list_audit(filters=AuditFilters(action=action))
        return [entry.action for entry in page.items]

    assert await found("tenant.*") == ["tenant.update", "tenant.create"]
    assert await found("tenant.u*") == ["tenant.update"]
    assert await found("ten_nt*") == []
    for wrong in ("*", "tenant.*x", "t%*"):
        with pytest.raises(Unprocessable):
            await found(wrong)
